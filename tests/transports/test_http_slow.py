"""Clients that keep the door waiting: each is let go in time, and the others never notice."""

import asyncio
import contextlib
import http.client
import itertools
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from starlette.requests import ClientDisconnect
from tests.transports.http_client import (
    OpenDoor,
    Reply,
    installed,
    open_door,
    reply_of,
    until_closed,
)
from tests.waiting import PATIENCE_S, until

from obsidian_rag.engine.events import EventKind
from obsidian_rag.transports.http.messages import Refusal
from obsidian_rag.transports.http.threads import ToolThreads

QUICK_S = 1.0
SLOW = {"server.read_timeout_s": QUICK_S, "server.max_body_kb": 64}
TOOL = "/tools/obsidian_rag_status"


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDoor]:
    root = tmp_path_factory.mktemp("slow")
    with open_door(installed(root, SLOW, is_indexed=False)) as opened:
        yield opened


def reply_from(raw: socket.socket) -> Reply:
    with http.client.HTTPResponse(raw) as response:
        response.begin()
        return reply_of(response)


def drip(raw: socket.socket, content: Iterator[bytes]) -> float:
    """Send a little at a time until the other side closes or answers; how long it took."""
    started = time.monotonic()
    raw.settimeout(QUICK_S / 8)
    for part in content:
        try:
            raw.sendall(part)
            with contextlib.suppress(TimeoutError):
                raw.recv(1, socket.MSG_PEEK)
                break
        except (ConnectionResetError, BrokenPipeError):
            break
        assert time.monotonic() - started < PATIENCE_S
    raw.settimeout(PATIENCE_S)
    return time.monotonic() - started


def test_a_connection_that_says_nothing_is_closed(door: OpenDoor) -> None:
    assert door.exchange(b"") == b""


def test_half_a_head_is_answered_with_408(door: OpenDoor) -> None:
    with door.connect() as raw:
        raw.sendall(door.head("GET", "/healthz")[:-2])
        reply = reply_from(raw)
        assert until_closed(raw) == b""
    assert (reply.status, reply.code) == (408, "INVALID_ARGUMENT")
    assert reply.headers["connection"] == "close"


def test_a_head_that_comes_byte_by_byte_has_no_more_time(door: OpenDoor) -> None:
    with door.connect() as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\n")
        took = drip(raw, itertools.repeat(b"x"))
        assert reply_from(raw).status == 408
    assert took > QUICK_S * 0.8


def test_the_second_request_of_a_connection_has_no_more_time_either(door: OpenDoor) -> None:
    with door.connect() as raw:
        raw.sendall(door.head("GET", "/healthz"))
        assert reply_from(raw).status == 200
        raw.sendall(b"GET /heal")
        assert reply_from(raw).status == 408
        assert until_closed(raw) == b""


def test_a_slow_body_is_answered_with_408_and_the_connection_closed(door: OpenDoor) -> None:
    with door.connect() as raw:
        raw.sendall(door.head("POST", TOOL, {"Content-Length": "100"}) + b"{")
        reply = reply_from(raw)
        assert until_closed(raw) == b""
    assert (reply.status, reply.code) == (408, "INVALID_ARGUMENT")


def test_a_body_that_comes_byte_by_byte_has_no_more_time(door: OpenDoor) -> None:
    with door.connect() as raw:
        raw.sendall(door.head("POST", TOOL, {"Transfer-Encoding": "chunked"}))
        took = drip(raw, itertools.repeat(b"1\r\n \r\n"))
        assert reply_from(raw).status == 408
    assert took > QUICK_S * 0.8


def test_a_refused_body_that_never_ends_is_not_waited_for(door: OpenDoor) -> None:
    head = door.head("POST", TOOL, {"Content-Length": "1000", "Authorization": None})
    with door.connect() as raw:
        raw.sendall(head)
        assert reply_from(raw).status == 401
        drip(raw, itertools.repeat(b" "))
        assert until_closed(raw) == b""


def test_a_body_declared_too_large_is_refused_before_it_is_sent(door: OpenDoor) -> None:
    with door.connect() as raw:
        raw.sendall(door.head("POST", TOOL, {"Content-Length": str(64 * 1024 + 1)}))
        reply = reply_from(raw)
    assert (reply.status, reply.code) == (413, "INVALID_ARGUMENT")


def test_a_body_that_grows_too_large_is_refused_and_not_read_to_its_end(door: OpenDoor) -> None:
    chunk = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
    sent = 0
    with door.connect() as raw:
        raw.sendall(door.head("POST", TOOL, {"Transfer-Encoding": "chunked"}) + chunk * 3)
        reply = reply_from(raw)
        assert (reply.status, reply.code) == (413, "INVALID_ARGUMENT")
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            while sent < 200_000_000:
                raw.sendall(chunk)
                sent += len(chunk)
    assert sent < 50_000_000


@pytest.mark.parametrize("kind", ["length", "chunked"])
def test_a_body_of_just_the_largest_size_is_read(door: OpenDoor, kind: str) -> None:
    body = b"{" + b" " * (64 * 1024 - 2) + b"}"
    headers = {"Content-Type": "application/json"}
    if kind == "length":
        sent = door.head("POST", TOOL, {**headers, "Content-Length": str(len(body))}) + body
    else:
        head = door.head("POST", TOOL, {**headers, "Transfer-Encoding": "chunked"})
        sent = head + f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
    with door.connect() as raw:
        raw.sendall(sent)
        assert reply_from(raw).status == 200


def test_a_connection_goes_on_after_a_body_that_was_a_little_too_large(door: OpenDoor) -> None:
    body = b" " * (65 * 1024)
    with door.connect() as raw:
        raw.sendall(door.head("POST", TOOL, {"Content-Length": str(len(body))}) + body)
        assert reply_from(raw).status == 413
        raw.sendall(door.head("GET", "/healthz"))
        assert reply_from(raw).status == 200


def test_a_broken_chunk_is_refused(door: OpenDoor) -> None:
    with door.connect() as raw:
        raw.sendall(door.head("POST", TOOL, {"Transfer-Encoding": "chunked"}) + b"zz\r\n")
        reply = reply_from(raw)
    assert (reply.status, reply.code) == (400, "INVALID_ARGUMENT")


def test_a_head_without_end_is_refused(door: OpenDoor) -> None:
    endless = b"GET /healthz HTTP/1.1\r\n" + b"X-Long: " + b"x" * 70_000
    assert door.exchange(endless).startswith(b"HTTP/1.1 400")


def test_a_listener_that_does_not_read_is_cut_off(door: OpenDoor) -> None:
    with door.connect(receive_buffer=4096) as raw:
        raw.sendall(door.head("GET", "/events"))
        until(lambda: door.app.streams.listeners == 1)
        for _ in range(600):
            door.live.bus.publish(EventKind.PROGRESS, {"text": "x" * 100_000})
        # Reading would save the stream, so the server's side tells when it has ended.
        until(lambda: door.app.streams.listeners == 0)
        assert not until_closed(raw).endswith(b"0\r\n\r\n")


def test_idle_connections_keep_nobody_out(tmp_path_factory: pytest.TempPathFactory) -> None:
    engine = installed(tmp_path_factory.mktemp("idle"), is_indexed=False)
    with open_door(engine, most_connections=4) as door, contextlib.ExitStack() as stack:
        idle = [stack.enter_context(door.connect()) for _ in range(12)]
        assert door.get("/healthz").status == 200
        assert door.tool("status").status == 200
        # Those that had said nothing for the longest time made room.
        assert until_closed(idle[0]) == b""


def test_there_are_only_so_many_connections(tmp_path_factory: pytest.TempPathFactory) -> None:
    engine = installed(tmp_path_factory.mktemp("many"), is_indexed=False)
    with open_door(engine, most_connections=2) as door, door.listen(), door.listen():
        reply = door.get("/healthz")
        assert (reply.status, reply.code) == (503, "BUSY")


def test_everyone_else_is_served_while_slow_clients_wait(door: OpenDoor) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(door.connect()).sendall(b"GET /healthz HTTP/1.1\r\nHost: ")
        assert door.get("/healthz").status == 200
        assert door.tool("status").status == 200


def test_too_many_waiting_calls_are_refused_and_a_client_that_left_is_not_worked_for() -> None:
    go_on = threading.Event()
    done: list[str] = []

    def work(name: str) -> str:
        assert go_on.wait(PATIENCE_S)
        done.append(name)
        return name

    async def stays() -> dict[str, str]:
        await asyncio.Event().wait()
        raise AssertionError

    async def scenario() -> None:
        threads = ToolThreads(threads=1, most_waiting=1)
        left = asyncio.Event()

        async def leaves() -> dict[str, str]:
            await left.wait()
            return {"type": "http.disconnect"}

        first = asyncio.create_task(threads.run(lambda: work("first"), stays))
        second = asyncio.create_task(threads.run(lambda: work("second"), leaves))
        await asyncio.sleep(0)  # lets both begin
        with pytest.raises(Refusal) as refused:
            await threads.run(lambda: work("third"), stays)
        error = refused.value.envelope("healthy")["error"]
        assert error is not None
        assert (refused.value.status, error["code"]) == (429, "BUSY")
        left.set()
        with pytest.raises(ClientDisconnect):
            await second
        fourth = asyncio.create_task(threads.run(lambda: work("fourth"), stays))
        go_on.set()
        assert (await first, await fourth) == ("first", "fourth")
        threads.close()

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
    assert done == ["first", "fourth"]
