"""Follow a database's feed of changes, over a connection that may break."""

import queue
import random
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from obsidian_rag.errors import LivesyncUnreachable
from obsidian_rag.livesync.couchdb.answers import (
    Change,
    ChangePage,
    Silence,
    parse_change,
    parse_json,
    parse_page,
    seq_text,
    unexpected_answer,
)
from obsidian_rag.livesync.couchdb.http import MAX_ANSWER_BYTES, CouchServer, Trace

_JOIN_TIMEOUT_S = 0.5
_CHECK_INTERVAL_S = 0.25
_MAX_QUEUED_PIECES = 64


class FeedConnection:
    """A streamed answer, read by a thread while the `with` block runs."""

    def __init__(self, open_: Callable[[Trace], AbstractContextManager[Iterator[bytes]]]) -> None:
        self._open = open_
        self._pieces: queue.Queue[bytes | BaseException | None] = queue.Queue(_MAX_QUEUED_PIECES)
        self._leaving = threading.Event()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._read, name="livesync-feed", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leaving.set()
        self._shut_down()
        # Only a thread that is still connecting can take longer, until its timeout.
        self._thread.join(_JOIN_TIMEOUT_S)

    def take(self, timeout_s: float) -> bytes | None:
        """The next piece; an empty one on timeout, None at the end."""
        try:
            piece = self._pieces.get(timeout=timeout_s)
        except queue.Empty:
            return b""
        if isinstance(piece, BaseException):
            raise piece
        return piece

    def _read(self) -> None:
        try:
            with self._open(self._trace) as pieces:
                for piece in pieces:
                    if piece:
                        self._put_piece(piece)
                    if self._leaving.is_set():
                        return
            self._put_piece(None)
        except BaseException as error:  # noqa: BLE001  (handed to the consumer, who raises it)
            self._put_piece(error)

    def _put_piece(self, piece: bytes | BaseException | None) -> None:
        while not self._leaving.is_set():
            try:
                self._pieces.put(piece, timeout=_CHECK_INTERVAL_S)
            except queue.Full:
                continue
            return

    def _trace(self, event: str, info: Mapping[str, object]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            stream = info.get("return_value")
            with self._lock:
                self._socket = stream.get_extra_info("socket")  # type: ignore[attr-defined]
            if self._leaving.is_set():
                self._shut_down()

    def _shut_down(self) -> None:
        with self._lock:
            if self._socket is not None:
                try:
                    self._socket.shutdown(socket.SHUT_RDWR)
                except OSError:
                    # The other side closed it first.
                    return


Report = Callable[[LivesyncUnreachable | None], None]

_FIRST_PAUSE_S = 1.0
_MAX_PAUSE_S = 60.0
_TICK_INTERVAL_S = 1.0
_POLL_LIMIT = 1000


class Backoff:
    """Pauses that double up to a minute, with jitter."""

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        self._chance = chance
        self._next_s = _FIRST_PAUSE_S

    def pause_s(self) -> float:
        """The next pause; each call lengthens it."""
        pause_s, self._next_s = self._next_s, min(_MAX_PAUSE_S, self._next_s * 2)
        return pause_s * (1 - self._chance() / 2)

    def reset(self) -> None:
        """Start again with a short pause, after a success."""
        self._next_s = _FIRST_PAUSE_S


class Feed:
    """One listener's position in the feed of a database."""

    def __init__(
        self,
        server: CouchServer,
        since: str,
        stop: threading.Event,
        heartbeat_s: float,
        report: Report | None = None,
    ) -> None:
        self._server = server
        self._since = since
        self._stop = stop
        self._heartbeat_s = heartbeat_s
        self._report = report or (lambda _trouble: None)
        self._backoff = Backoff()
        self._is_polling = False
        self._has_received = False
        self._is_lost = True
        self._ticked_at = time.monotonic()

    def rows(self) -> Generator[Change | None, None, None]:
        """Changes as they arrive, and None now and then while idle; ends with `stop`."""
        while not self._is_over():
            try:
                yield from self._resolve_now()
                yield from self._poll() if self._is_polling else self._listen()
            except LivesyncUnreachable as trouble:
                self._is_lost = True
                self._report(trouble)
                yield from self._pause()

    def _listen(self) -> Iterator[Change | None]:
        """Rows of one continuous feed; it ends only on errors."""
        heartbeat = {"feed": "continuous", "heartbeat": _milliseconds(self._heartbeat_s)}
        rest = b""
        try:
            with self._open(heartbeat) as connection:
                for piece in self._pieces(connection):
                    *lines, rest = (rest + piece).split(b"\n")
                    if len(rest) > MAX_ANSWER_BYTES:
                        raise unexpected_answer(self._server.remote)
                    for line in lines:
                        yield from self._row(line)
                    yield from self._tick()
        except Silence:
            if self._has_received:
                raise
            # A proxy buffers incomplete answers.
            self._is_polling = True
            return
        if not self._is_over():
            raise self._ended_error()

    def _row(self, line: bytes) -> Iterator[Change | None]:
        if not line.strip():
            # A heartbeat.
            yield from self._tick(is_due=True)
            return
        row = parse_json(line)
        if not isinstance(row, dict):
            raise self._ended_error()
        # A row without an id is the last one of a feed that the server ends.
        self._since = seq_text(row.get("seq", row.get("last_seq", self._since)))
        if change := parse_change(row):
            self._ticked_at = time.monotonic()
            yield change

    def _poll(self) -> Iterator[Change | None]:
        """Rows of one long poll; pauses if the server answers at once."""
        began = time.monotonic()
        # A complete answer passes a proxy that buffers heartbeats.
        wait = {"feed": "longpoll", "timeout": _milliseconds(self._heartbeat_s)}
        page = yield from self._page(wait, _POLL_LIMIT)
        if page is None:
            return
        has_waited = time.monotonic() - began >= _TICK_INTERVAL_S
        yield from page.rows
        is_moved, self._since = page.last_seq != self._since, page.last_seq
        if not (page.rows or has_waited or (is_moved and not page.is_last)):
            yield from self._pause()

    def _resolve_now(self) -> Iterator[None]:
        """Resolve `now` to a position, or changes before a reconnection would be lost."""
        if self._since == "now" and (page := (yield from self._page({}, 1))):
            self._since = page.last_seq

    def _page(
        self, query: Mapping[str, str], limit: int
    ) -> Generator[None, None, ChangePage | None]:
        """One complete answer; None if stopped before it arrived."""
        body = bytearray()
        with self._open({**query, "limit": str(limit)}) as connection:
            for piece in self._pieces(connection):
                body += piece
                if len(body) > MAX_ANSWER_BYTES:
                    raise unexpected_answer(self._server.remote)
                yield from self._tick()
        if self._is_over():
            return None
        if (page := parse_page(parse_json(bytes(body)), limit)) is None:
            raise self._ended_error()
        return page

    def _open(self, query: Mapping[str, str]) -> FeedConnection:
        self._has_received = False
        asked = {"style": "all_docs", "since": self._since or "0", **query}
        # Allow two missed heartbeats before treating the connection as dead.
        silence_s = 2.5 * self._heartbeat_s
        return FeedConnection(
            lambda trace: self._server.stream("/_changes", asked, silence_s, trace)
        )

    def _pieces(self, connection: FeedConnection) -> Iterator[bytes]:
        """The connection's pieces, and an empty one now and then while idle."""
        while not self._is_over():
            piece = connection.take(_CHECK_INTERVAL_S)
            if piece is None:
                return
            if piece and not self._has_received:
                self._has_received = True
                self._backoff.reset()
                if self._is_lost:
                    self._is_lost = False
                    self._report(None)
            yield piece

    def _pause(self) -> Iterator[None]:
        until = time.monotonic() + self._backoff.pause_s()
        while (left_s := until - time.monotonic()) > 0 and not self._is_over():
            self._stop.wait(min(_CHECK_INTERVAL_S, left_s))
            yield from self._tick()

    def _tick(self, *, is_due: bool = False) -> Iterator[None]:
        if is_due or time.monotonic() - self._ticked_at >= _TICK_INTERVAL_S:
            self._ticked_at = time.monotonic()
            yield None

    def _is_over(self) -> bool:
        return self._stop.is_set() or self._server.is_closed

    def _ended_error(self) -> LivesyncUnreachable:
        return LivesyncUnreachable(
            f"CouchDB at {self._server.remote.url} ended the feed of changes.",
            "If this continues, look at the server's log.",
        )


def _milliseconds(seconds: float) -> str:
    return str(int(seconds * 1000))
