"""Server-sent events: what happens in the daemon, for clients that keep a connection open.

A listener that cannot keep up loses the oldest events and receives a `missed` event; it never slows
the daemon. Only the owner of the notes sees which files an event is about.
"""

import asyncio
import contextlib
import json
import re
import threading
from collections import deque
from collections.abc import Iterator

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from obsidian_rag.engine import Bus, Event
from obsidian_rag.tools import Caller, without_files
from obsidian_rag.transports.http.messages import Refusal, until_gone
from obsidian_rag.transports.http.web.sessions import CALLER

_MAX_LISTENERS = 32
_MAX_QUEUED = 512
_HEARTBEAT_S = 15.0
_NUMBER = re.compile(r"[0-9]{1,15}")


class Mailbox:
    """A thread-safe queue of events for one listener; when it is full, the oldest are dropped."""

    def __init__(self, size: int = _MAX_QUEUED) -> None:
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._waiting: deque[Event] = deque()
        self._size = size
        self._missed = 0
        self._wake = asyncio.Event()

    def put(self, event: Event) -> None:
        """Add an event; called by the thread that publishes it."""
        with self._lock:
            if len(self._waiting) == self._size:
                self._waiting.popleft()
                self._missed += 1
            self._waiting.append(event)
        self.wake()

    def count_gap(self, after: int) -> None:
        """Count events lost between the last one the listener saw and the first one here."""
        with self._lock:
            if self._waiting:
                self._missed += max(0, min(event.number for event in self._waiting) - after - 1)

    def wake(self) -> None:
        """Wake the listener."""
        with contextlib.suppress(RuntimeError):  # the loop has ended, and its listeners with it
            self._loop.call_soon_threadsafe(self._wake.set)

    async def take(self, patience_s: float) -> tuple[int, list[Event]]:
        """Wait up to `patience_s` for events; returns the number lost, and the events."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await self._wake.wait()
        self._wake.clear()
        with self._lock:
            missed, self._missed = self._missed, 0
            events = list(self._waiting)
            self._waiting.clear()
        return missed, events


class Streams:
    """`GET /events`, as an ASGI application; `close` ends every stream."""

    def __init__(self, bus: Bus, heartbeat_s: float = _HEARTBEAT_S) -> None:
        self._bus = bus
        self._heartbeat_s = heartbeat_s
        self._open: set[Mailbox] = set()
        self._is_closed = False

    @property
    def listeners(self) -> int:
        """The number of open streams."""
        return len(self._open)

    def close(self) -> None:
        """End all streams; called in the thread of the event loop."""
        self._is_closed = True
        for mailbox in self._open:
            mailbox.wake()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the client disconnects or the daemon stops."""
        headers = Headers(scope=scope)
        after = _last_seen(headers)
        caller: Caller = scope[CALLER]
        if caller.is_limited:
            raise Refusal(
                403, "Events are about all notes, and you may see only some.", "Use the tools."
            )
        if self.listeners >= _MAX_LISTENERS:
            raise Refusal(
                429,
                f"There are {_MAX_LISTENERS} listeners already.",
                "Close another one.",
                {"Retry-After": "5"},
            )
        mailbox = Mailbox()
        with self._listening(mailbox, after):
            client = asyncio.create_task(until_gone(receive))
            client.add_done_callback(lambda _: mailbox.wake())
            try:
                await send(_START)
                await send(_part(b"event: ready\ndata: {}\n\n"))
                while not self._is_closed and not client.done():
                    for text in _encode_events(
                        *await mailbox.take(self._heartbeat_s), caller.is_owner
                    ):
                        await send(_part(text))
                await send({"type": "http.response.body", "body": b""})
            finally:
                client.cancel()

    @contextlib.contextmanager
    def _listening(self, mailbox: Mailbox, after: int | None) -> Iterator[None]:
        self._open.add(mailbox)
        end = self._bus.subscribe(mailbox.put, after)
        if after is not None:
            mailbox.count_gap(after)
        try:
            yield
        finally:
            end()
            self._open.discard(mailbox)


_START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"text/event-stream; charset=utf-8")],
}


def _part(body: bytes) -> dict[str, object]:
    return {"type": "http.response.body", "body": body, "more_body": True}


def _encode_events(missed: int, events: list[Event], with_files: bool) -> Iterator[bytes]:
    """Encode events for the wire; with none, a comment as heartbeat."""
    if missed:
        yield f'event: missed\ndata: {{"count": {missed}}}\n\n'.encode()
    elif not events:
        yield b":\n\n"
    for event in events:
        shown = event.data if with_files else without_files(event.data)
        data = json.dumps({**shown, "at": event.at}, default=str)
        yield f"id: {event.number}\nevent: {event.kind}\ndata: {data}\n\n".encode()


def _last_seen(headers: Headers) -> int | None:
    given = headers.get("last-event-id")
    if given is None:
        return None
    if not _NUMBER.fullmatch(given):
        raise Refusal(400, "Last-Event-ID is not the id of an event.", "Send a number, or none.")
    return int(given)
