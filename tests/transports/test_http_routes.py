"""Every route of the HTTP door, and every refusal, as an envelope."""

import http.client
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from tests.transports.http_client import OpenDoor, encoded, installed, open_door, reply_of
from tests.waiting import PATIENCE_S

from obsidian_rag import __version__
from obsidian_rag.engine import Engine
from obsidian_rag.errors import IndexCorrupted, OllamaUnreachable
from obsidian_rag.tools import TOOLS, Caller, Envelope, Tool, call, success
from obsidian_rag.tools.dispatch import Params, schemas

SAFE = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'",
    "referrer-policy": "no-referrer",
}


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDoor]:
    with open_door(installed(tmp_path_factory.mktemp("routes"))) as opened:
        yield opened


def without_time(envelope: Any) -> Any:
    return {**envelope, "meta": {**envelope["meta"], "query_time_ms": 0}}


def test_a_tool_answers_over_http_as_it_does_in_this_process(door: OpenDoor) -> None:
    asked = {"query": "rain garden", "max_results": 1}
    reply = door.tool("search", asked)
    here = call(door.engine, "obsidian_rag_search", asked)
    assert reply.status == 200
    assert without_time(reply.json) == without_time(here)
    assert reply.json["data"]["results"][0]["source_file"] == "Projects/Plan.md"


def test_a_browser_without_a_token_is_told_what_this_is(door: OpenDoor) -> None:
    browser = {"Authorization": None, "Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    reply = door.get("/tools", browser)
    assert reply.status == 401
    assert reply.headers["content-type"].startswith("text/html")
    assert b"obsidian-rag open" in reply.body
    assert {name: reply.headers[name] for name in SAFE} == SAFE
    assert __version__.encode() not in reply.body
    assert str(door.engine.config.vault_root).encode() not in reply.body
    for headers in ({**browser, "Accept": "*/*"}, {**browser, "Accept": None}):
        assert door.get("/tools", headers).code == "SECURITY_VIOLATION"
    assert door.ask("POST", "/tools/obsidian_rag_status", b"{}", browser).code == (
        "SECURITY_VIOLATION"
    )


def test_no_body_means_no_arguments(door: OpenDoor) -> None:
    reply = door.ask("POST", "/tools/obsidian_rag_status", b"", {"Content-Type": None})
    assert (reply.status, reply.json["status"]) == (200, "healthy")


def test_only_who_says_so_is_the_owner(door: OpenDoor) -> None:
    asked = {"note": "Private/Diary.md"}
    for caller in (None, "agent", "Owner", ""):
        refused = door.tool("read", asked, {"X-Obsidian-Rag-Caller": caller})
        assert (refused.status, refused.code) == (403, "SENSITIVE_FILTERED")
        assert b"zephyr" not in refused.body
    reply = door.tool("read", asked, {"X-Obsidian-Rag-Caller": "owner"})
    assert reply.status == 200
    assert "zephyr" in reply.json["data"]["text"]


@pytest.mark.parametrize(
    ("tool", "arguments", "status", "code"),
    [
        ("search", {"query": ""}, 400, "INVALID_ARGUMENT"),
        ("search", {"question": "x"}, 400, "INVALID_ARGUMENT"),
        ("search", {"query": "x", "max_results": "five"}, 400, "INVALID_ARGUMENT"),
        ("read", {"note": "Nowhere.md"}, 404, "NOT_FOUND"),
        ("read", {"note": "../outside.md"}, 403, "SECURITY_VIOLATION"),
        ("cancel", {}, 404, "NOT_FOUND"),
    ],
)
def test_the_status_of_a_failed_call_is_that_of_its_code(
    door: OpenDoor, tool: str, arguments: dict[str, object], status: int, code: str
) -> None:
    reply = door.tool(tool, arguments)
    assert (reply.status, reply.code, reply.json["data"]) == (status, code, None)


def test_without_an_index_search_is_unavailable_and_status_still_answers(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with open_door(installed(tmp_path_factory.mktemp("new"), is_indexed=False)) as door:
        search, status = door.tool("search", {"query": "x"}), door.tool("status")
    assert (search.status, search.code) == (503, "INDEX_NOT_FOUND")
    assert (status.status, status.code) == (200, "INDEX_NOT_FOUND")
    assert status.json["data"]["total_docs"] == 0


def test_an_unknown_tool_is_not_found(door: OpenDoor) -> None:
    reply = door.ask("POST", "/tools/obsidian_rag_destroy", {"mode": "full"})
    assert (reply.status, reply.code) == (404, "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    "path", ["/tools/", "/tools/a/b", "/TOOLS", "/static/../tools", "//tools", "/events/"]
)
def test_an_unknown_path_is_not_found_and_nothing_redirects(door: OpenDoor, path: str) -> None:
    reply = door.get(path) if path != "/tools/" else door.ask("POST", path)
    assert (reply.status, reply.code) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/tools/obsidian_rag_search", "POST"),
        ("PUT", "/tools/obsidian_rag_search", "POST"),
        ("OPTIONS", "/tools/obsidian_rag_search", "POST"),
        ("POST", "/tools", "GET"),
        ("DELETE", "/events", "GET"),
        ("GET", "/shutdown", "POST"),
        ("TRACE", "/healthz", "GET"),
        ("BREW", "/openapi.json", "GET"),
    ],
)
def test_another_method_is_refused_and_told_the_right_one(
    door: OpenDoor, method: str, path: str, allowed: str
) -> None:
    reply = door.ask(method, path)
    assert (reply.status, reply.code, reply.headers["allow"]) == (405, "INVALID_ARGUMENT", allowed)


@pytest.mark.parametrize("path", ["/tools", "/healthz", "/events", "/openapi.json"])
def test_head_is_refused_without_a_body(door: OpenDoor, path: str) -> None:
    reply = door.ask("HEAD", path)
    assert (reply.status, reply.headers["allow"], reply.body) == (405, "GET", b"")


def test_the_list_of_tools_has_all_of_them_with_their_schemas(door: OpenDoor) -> None:
    reply = door.get("/tools")
    assert reply.status == 200
    assert reply.json["version"] == __version__
    assert {tool["name"]: tool["input_schema"] for tool in reply.json["tools"]} == schemas()
    assert {tool["name"] for tool in reply.json["tools"] if not tool["read_only"]} == {
        name for name, tool in TOOLS.items() if not tool.is_read_only
    }
    assert all(tool["description"] for tool in reply.json["tools"])


def test_health_is_told_to_anyone_here_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with open_door(installed(tmp_path_factory.mktemp("health"), is_indexed=False)) as door:
        health = door.live.health
        for troubles, state in (
            (None, "starting"),
            ({}, "healthy"),
            ({"embedder": OllamaUnreachable("at /secret/place")}, "degraded"),
            ({"store": IndexCorrupted("in /secret/place")}, "unavailable"),
        ):
            if troubles is not None:
                health.note(**troubles)
            reply = door.get("/healthz", {"Authorization": None})
            assert reply.status == 200
            assert reply.json == {"status": state, "version": __version__}


def test_a_refused_request_tells_the_health_of_the_engine_and_no_more(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with open_door(installed(tmp_path_factory.mktemp("refused"))) as door:
        with door.connect() as raw:
            raw.sendall(b"nonsense\r\n\r\n")
            response = http.client.HTTPResponse(raw)
            response.begin()
            assert reply_of(response).json["status"] == "unavailable", "nobody has looked yet"
        for troubles, state in (
            ({}, "healthy"),
            ({"embedder": OllamaUnreachable("at /secret/place")}, "degraded"),
        ):
            door.live.health.note(**troubles)
            with door.connect() as raw:
                raw.sendall(b"nonsense\r\n\r\n")
                response = http.client.HTTPResponse(raw)
                response.begin()
                malformed = reply_of(response)
            refused = {
                400: malformed,
                401: door.get("/tools", {"Authorization": None}),
                403: door.get("/tools", {"Origin": "http://evil.example"}),
                404: door.get("/nothing"),
                405: door.get("/tools/obsidian_rag_search"),
                413: door.tool("search", b"{" + b" " * 2_000_000),
                415: door.tool("search", {"query": "x"}, {"Content-Type": "text/plain"}),
                421: door.get("/tools", {"Host": "evil.example"}),
            }
            assert {status: reply.status for status, reply in refused.items()} == {
                status: status for status in refused
            }
            told = {status: reply.json["status"] for status, reply in refused.items()}
            assert told == dict.fromkeys(refused, state)
            assert not any(b"/secret/place" in reply.body for reply in refused.values())


def test_shutdown_is_accepted_and_ends_the_server(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with open_door(installed(tmp_path_factory.mktemp("stop"), is_indexed=False)) as door:
        assert door.ask("POST", "/shutdown", {}).status == 202
        door.thread.join(PATIENCE_S)
        assert not door.thread.is_alive()
        with pytest.raises(ConnectionRefusedError):
            door.get("/healthz")


DEEP = b'{"query":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
DEEP_OBJECTS = b'{"a":' * 20_000 + b"1" + b"}" * 20_000


@pytest.mark.parametrize(
    "body",
    [
        b"query=x",
        b"[]",
        b"null",
        b'"x"',
        b"{",
        b'{"query": "x"} {"query": "y"}',
        b'{"query": NaN}',
        b'{"query": "x", "max_results": Infinity}',
        b'{"query": "x", "max_results": -Infinity}',
        b'{"query": "x", "max_results": 1e999}',
        b'{"query": "x", "max_results": ' + b"9" * 5000 + b"}",
        b'{"query": "x", "query": "y"}',
        b'{"query": "x", "date_range": {"to": "2024-01-01", "to": "2024-01-02"}}',
        b'{"query": "\xff\xfe"}',
        b'\xef\xbb\xbf{"query": "x"}',
        '{"query": "x"}'.encode("utf-16"),
        b'{"query": "\\ud800"}',
        b'{"query": "\x00"}',
        DEEP,
        DEEP_OBJECTS,
        b'{"query":' + b"[" * 900 + b"]" * 900 + b"}",
    ],
    ids=lambda body: repr(body[:40]),
)
def test_what_is_not_one_strict_json_object_is_refused(door: OpenDoor, body: bytes) -> None:
    reply = door.ask("POST", "/tools/obsidian_rag_search", body)
    assert (reply.status, reply.code) == (400, "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "text/plain",
        "text/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-16",
        "application/jsonp",
    ],
)
def test_another_content_type_is_refused(door: OpenDoor, kind: str | None) -> None:
    reply = door.tool("search", {"query": "x"}, {"Content-Type": kind})
    assert (reply.status, reply.code) == (415, "INVALID_ARGUMENT")


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON"])
def test_json_may_say_that_it_is_utf8(door: OpenDoor, kind: str) -> None:
    assert door.tool("search", {"query": "garden"}, {"Content-Type": kind}).status == 200


def test_every_response_has_the_safe_headers_and_none_opens_the_door_to_other_sites(
    door: OpenDoor,
) -> None:
    raw = door.exchange(b"this is not HTTP\r\n\r\n")
    with door.connect() as sock:
        sock.sendall(b"nonsense\r\n\r\n")
        response = http.client.HTTPResponse(sock)
        response.begin()
        malformed = reply_of(response)
    assert raw.startswith(b"HTTP/1.1 400")
    assert (malformed.status, malformed.code) == (400, "INVALID_ARGUMENT")
    for reply in (
        malformed,
        door.get("/healthz"),
        door.get("/openapi.json"),
        door.get("/tools"),
        door.tool("status"),
        door.tool("search", b"{"),
        door.get("/nothing"),
        door.ask("OPTIONS", "/tools"),
        door.get("/tools", {"Authorization": None}),
        door.get("/tools", {"Host": "evil.example"}),
        door.get("/tools", {"Origin": f"http://127.0.0.1:{door.port}"}),
    ):
        assert SAFE.items() <= reply.headers.items()
        assert "server" not in reply.headers
        assert not [name for name in reply.headers if name.startswith("access-control")]
    with door.connect() as sock:
        sock.sendall(door.head("GET", "/events"))
        response = http.client.HTTPResponse(sock)
        response.begin()
        given = {name.lower(): value for name, value in response.getheaders()}
        assert SAFE.items() <= given.items()


def test_a_connection_serves_many_requests_even_after_refusals(door: OpenDoor) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", door.port, timeout=PATIENCE_S)
    with closing(connection):
        connection.connect()
        sock = connection.sock
        for body, token, status in (
            ({"query": "garden"}, door.token, 200),
            ({"query": "garden"}, "wrong", 401),
            ({"query": 1}, door.token, 400),
            ({"query": "debt"}, door.token, 200),
        ):
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            connection.request("POST", "/tools/obsidian_rag_search", encoded(body), headers)
            assert reply_of(connection.getresponse()).status == status
            assert connection.sock is sock, "the server closed it"


def test_a_kept_connection_answers_at_once(door: OpenDoor) -> None:
    with door.connect() as raw:
        took = []
        for _ in range(50):
            started = time.monotonic()
            raw.sendall(door.head("GET", "/healthz"))
            with http.client.HTTPResponse(raw) as response:
                response.begin()
                assert reply_of(response).status == 200
            took.append(time.monotonic() - started)
        # With Nagle's algorithm each would take 40 ms, on the quietest machine too.
        assert min(took) < 0.03


def test_pipelined_requests_are_answered_in_their_order(door: OpenDoor) -> None:
    sent = door.head("GET", "/healthz") + door.head("GET", "/nothing")
    found = door.exchange(sent + door.head("GET", "/tools", {"Connection": "close"}))
    assert re.findall(rb"HTTP/1\.1 (\d+)", found) == [b"200", b"404", b"200"]


class NoParams(Params):
    """Nothing to choose."""


def offer(monkeypatch: pytest.MonkeyPatch, run: Any) -> str:
    """A tool of this test's own: its short name."""
    tool = Tool("obsidian_rag_test", "For this test", NoParams, run, is_read_only=True)
    monkeypatch.setitem(TOOLS, tool.name, tool)
    return "test"


def test_a_tool_that_fails_unexpectedly_is_a_500_without_its_words(
    door: OpenDoor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Engine, __: NoParams, ___: Caller) -> Envelope:
        raise RuntimeError("the note says zephyr")

    reply = door.tool(offer(monkeypatch, fail))
    assert (reply.status, reply.code) == (500, "INDEXER_FAILED")
    assert b"zephyr" not in reply.body


def test_an_answer_that_is_not_json_is_a_500(
    door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = offer(monkeypatch, lambda *_: success({"score": float("nan")}))
    reply = door.tool(name)
    assert (reply.status, reply.code) == (500, "INDEXER_FAILED")
    assert SAFE.items() <= reply.headers.items()


def test_an_answer_may_hold_what_utf8_cannot(
    door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = door.tool(offer(monkeypatch, lambda *_: success({"file": "caf\udce9.md — ü"})))
    assert reply.json["data"] == {"file": "caf\udce9.md — ü"}


def test_tools_do_not_keep_the_door_from_answering(
    door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def wait(_: Engine, __: NoParams, ___: Caller) -> Envelope:
        assert go_on.wait(PATIENCE_S)
        return success({"waited": True})

    name = offer(monkeypatch, wait)
    with ThreadPoolExecutor(4) as clients:
        waiting = [clients.submit(door.tool, name) for _ in range(4)]
        try:
            assert door.tool("search", {"query": "garden"}).status == 200
            assert door.get("/healthz").status == 200
        finally:
            go_on.set()
        assert [one.result().status for one in waiting] == [200] * 4


def test_a_request_that_the_end_of_the_daemon_overtakes_is_told_so(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on = threading.Event(), threading.Event()

    def wait(_: Engine, __: NoParams, ___: Caller) -> Envelope:
        began.set()
        assert go_on.wait(PATIENCE_S)
        return success({})

    name = offer(monkeypatch, wait)
    engine = installed(tmp_path_factory.mktemp("overtaken"), is_indexed=False)
    with open_door(engine) as door, ThreadPoolExecutor(1) as client:
        door.server.config.timeout_graceful_shutdown = 0
        asked = client.submit(door.tool, name)
        assert began.wait(PATIENCE_S)
        door.close()
        reply = asked.result(PATIENCE_S)
        go_on.set()
    assert (reply.status, reply.code) == (503, "BUSY")
    assert SAFE.items() <= reply.headers.items()


def test_fifty_clients_at_once_are_all_answered(door: OpenDoor) -> None:
    def search(number: int) -> int:
        return door.tool("search", {"query": f"rain garden {number % 7}"}).status

    with ThreadPoolExecutor(50) as clients:
        assert set(clients.map(search, range(300))) == {200}
