"""Server-sent events: first `ready`, then everything, and the truth about what was missed."""

import asyncio
import http.client
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.transports.http_client import Heard, Listener, OpenDoor, installed, open_door
from tests.waiting import PATIENCE_S, until

from obsidian_rag.engine import Bus
from obsidian_rag.engine.events import EventKind
from obsidian_rag.errors import OllamaUnreachable
from obsidian_rag.tools import Caller
from obsidian_rag.transports.http.events import Streams
from obsidian_rag.transports.http.web.sessions import CALLER


@pytest.fixture
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDoor]:
    with open_door(installed(tmp_path_factory.mktemp("events"), is_indexed=False)) as opened:
        yield opened


def tell(door: OpenDoor, *names: str) -> None:
    for name in names:
        door.live.bus.publish(EventKind.CHANGES, {"paths": [name]})


def test_an_event_arrives_with_its_number_kind_data_and_time(door: OpenDoor) -> None:
    with door.listen() as listener:
        tell(door, "Überschrift\n\u2028.md")
        door.live.health.note(embedder=OllamaUnreachable("Ollama is down."))
        changes, health = listener.take(), listener.take()
    assert changes is not None
    assert health is not None
    assert (changes.id, changes.kind) == ("1", "changes")
    assert changes.data["paths"] == ["Überschrift\n\u2028.md"]
    assert changes.data["at"].endswith("Z")
    assert (health.id, health.kind, health.data["state"]) == ("2", "health", "degraded")


def test_the_media_type_is_that_of_an_event_stream(door: OpenDoor) -> None:
    with door.listen() as listener:
        kind = listener.response.getheader("content-type")
    assert kind == "text/event-stream; charset=utf-8"


def test_a_new_listener_hears_nothing_old(door: OpenDoor) -> None:
    tell(door, "before")
    with door.listen() as listener:
        tell(door, "after")
        heard = listener.take()
    assert heard is not None
    assert (heard.id, heard.data["paths"]) == ("2", ["after"])


def test_a_listener_that_comes_back_hears_what_it_missed(door: OpenDoor) -> None:
    tell(door, "a", "b", "c")
    with door.listen(last_seen="1") as listener:
        tell(door, "d")
        heard = [listener.take() for _ in range(3)]
    assert [one.data["paths"] for one in heard if one] == [["b"], ["c"], ["d"]]


def test_a_listener_that_comes_back_too_late_is_told_how_much_is_lost(door: OpenDoor) -> None:
    tell(door, *(str(number) for number in range(1, 301)))
    with door.listen(last_seen="10") as listener:
        missed, first = listener.take(), listener.take()
    # 256 of 300 are remembered: 45 to 300; 11 to 44 are lost.
    assert missed == Heard(None, "missed", {"count": 34})
    assert first is not None
    assert first.id == "45"


@pytest.mark.parametrize("given", ["x", "-1", "1.5", "", "²", "9" * 40, "1e3"])
def test_a_last_event_that_is_no_number_is_refused(door: OpenDoor, given: str) -> None:
    reply = door.get("/events", {"Last-Event-ID": given})
    assert (reply.status, reply.code) == (400, "INVALID_ARGUMENT")


def test_a_listener_that_does_not_keep_up_loses_the_oldest_and_is_told(door: OpenDoor) -> None:
    text, total = "x" * 100_000, 1500
    with door.connect(receive_buffer=4096) as raw:
        raw.sendall(door.head("GET", "/events"))
        with http.client.HTTPResponse(raw) as response:
            listener = Listener(response)
            listener.begin()
            for _ in range(total):
                door.live.bus.publish(EventKind.PROGRESS, {"text": text})
            door.live.bus.publish(EventKind.CHANGES, {"paths": []})
            heard = listener.until("changes")
    missed = [one.data["count"] for one in heard if one.kind == "missed"]
    arrived = [int(one.id) for one in heard if one.id is not None]
    assert missed
    assert len(arrived) + sum(missed) == total + 1
    assert arrived == sorted(arrived)
    assert arrived[-512:] == list(range(total + 2 - 512, total + 2))


def test_there_are_32_listeners_at_most_and_one_that_goes_makes_room(door: OpenDoor) -> None:
    with ExitStack() as stack:
        listeners = [stack.enter_context(door.listen()) for _ in range(31)]
        with door.listen() as last:
            refused = door.get("/events")
            assert (refused.status, refused.code) == (429, "BUSY")
            assert int(refused.headers["retry-after"]) > 0
            tell(door, "x")
            assert {one.take().data["paths"][0] for one in (*listeners, last)} == {"x"}  # type: ignore[union-attr]
        until(lambda: door.app.streams.listeners < 32)
        with door.listen():
            pass


def test_streams_end_properly_when_the_door_closes(door: OpenDoor) -> None:
    with door.listen() as listener:
        tell(door, "x")
        door.close()
        # The last chunk of a chunked answer came: http.client would complain otherwise.
        assert listener.response.read().endswith(b"\n\n")


def test_a_quiet_stream_has_a_heartbeat() -> None:
    sent: asyncio.Queue[Any] = asyncio.Queue()

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def listen() -> list[bytes]:
        streams = Streams(Bus(), heartbeat_s=0.01)
        scope = {"type": "http", "headers": [], CALLER: Caller()}
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            group.create_task(streams(scope, receive, sent.put))
            messages = [await sent.get() for _ in range(4)]
            streams.close()
        return [message.get("body") for message in messages[1:]]

    assert asyncio.run(listen()) == [b"event: ready\ndata: {}\n\n", b":\n\n", b":\n\n"]
