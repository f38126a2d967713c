"""Following a database: rows of changes as they come, from a server that may go away."""

import random
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping

from obsidian_rag.errors import LivesyncUnreachable
from obsidian_rag.livesync.couchdb.answers import (
    Change,
    ChangePage,
    Silence,
    change_from,
    odd_answer,
    page_from,
    parsed,
    seq_text,
)
from obsidian_rag.livesync.couchdb.feed_connection import FeedConnection
from obsidian_rag.livesync.couchdb.http import LARGEST_ANSWER, CouchServer

Report = Callable[[LivesyncUnreachable | None], None]

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_TICK_S = 1.0
_LOOK_S = 0.25
_POLL_LIMIT = 1000


class Backoff:
    """Pauses that double up to a minute, each shortened by chance."""

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        self._chance = chance
        self._next_s = _FIRST_PAUSE_S

    def pause_s(self) -> float:
        """How long to wait now; the next time it is longer."""
        pause_s, self._next_s = self._next_s, min(_LONGEST_PAUSE_S, self._next_s * 2)
        return pause_s * (1 - self._chance() / 2)

    def reset(self) -> None:
        """Begin again with a short pause: something went well."""
        self._next_s = _FIRST_PAUSE_S


class Feed:
    """One listener's place in the changes of a database."""

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
        self._is_heard = False
        self._is_lost = True
        self._ticked_at = time.monotonic()

    def rows(self) -> Generator[Change | None, None, None]:
        """Changes as they come, and None now and then while none comes; ends with `stop`.

        Raises:
            LivesyncRefused: coming back later would not help.
        """
        while not self._is_over():
            try:
                yield from self._settle()
                yield from self._poll() if self._is_polling else self._listen()
            except LivesyncUnreachable as trouble:
                self._is_lost = True
                self._report(trouble)
                yield from self._pause()

    def _listen(self) -> Iterator[Change | None]:
        """Rows of one continuous feed; it never ends unless something went wrong."""
        heartbeat = {"feed": "continuous", "heartbeat": _milliseconds(self._heartbeat_s)}
        rest = b""
        try:
            with self._open(heartbeat) as connection:
                for piece in self._pieces(connection):
                    *lines, rest = (rest + piece).split(b"\n")
                    if len(rest) > LARGEST_ANSWER:
                        raise odd_answer(self._server.remote)
                    for line in lines:
                        yield from self._row(line)
                    yield from self._tick()
        except Silence:
            if self._is_heard:
                raise
            # Something in between holds back whatever is not a whole answer.
            self._is_polling = True
            return
        if not self._is_over():
            raise self._ended()

    def _row(self, line: bytes) -> Iterator[Change | None]:
        if not line.strip():
            # A heartbeat.
            yield from self._tick(is_due=True)
            return
        row = parsed(line)
        if not isinstance(row, dict):
            raise self._ended()
        # Without an id, it is the last row of a feed that the server ends.
        self._since = seq_text(row.get("seq", row.get("last_seq", self._since)))
        if change := change_from(row):
            self._ticked_at = time.monotonic()
            yield change

    def _poll(self) -> Iterator[Change | None]:
        """Rows of one long poll; if the server does not wait, we do."""
        began = time.monotonic()
        # An answer that ends by itself passes where heartbeats are held back.
        wait = {"feed": "longpoll", "timeout": _milliseconds(self._heartbeat_s)}
        page = yield from self._page(wait, _POLL_LIMIT)
        if page is None:
            return
        has_waited = time.monotonic() - began >= _TICK_S
        yield from page.rows
        is_moved, self._since = page.last_seq != self._since, page.last_seq
        if not (page.rows or has_waited or (is_moved and not page.is_last)):
            yield from self._pause()

    def _settle(self) -> Iterator[None]:
        """Turn `now` into a place, or what happens before a reconnection would be lost."""
        if self._since == "now" and (page := (yield from self._page({}, 1))):
            self._since = page.last_seq

    def _page(
        self, query: Mapping[str, str], limit: int
    ) -> Generator[None, None, ChangePage | None]:
        """One whole answer; None if we are to stop before it is here."""
        body = bytearray()
        with self._open({**query, "limit": str(limit)}) as connection:
            for piece in self._pieces(connection):
                body += piece
                if len(body) > LARGEST_ANSWER:
                    raise odd_answer(self._server.remote)
                yield from self._tick()
        if self._is_over():
            return None
        if (page := page_from(parsed(bytes(body)), limit)) is None:
            raise self._ended()
        return page

    def _open(self, query: Mapping[str, str]) -> FeedConnection:
        self._is_heard = False
        asked = {"style": "all_docs", "since": self._since or "0", **query}
        # Two heartbeats may be late before we take the silence for an end.
        silence_s = 2.5 * self._heartbeat_s
        return FeedConnection(
            lambda trace: self._server.stream("/_changes", asked, silence_s, trace)
        )

    def _pieces(self, connection: FeedConnection) -> Iterator[bytes]:
        """What the connection gives, and an empty piece now and then while it gives nothing."""
        while not self._is_over():
            piece = connection.take(_LOOK_S)
            if piece is None:
                return
            if piece and not self._is_heard:
                self._is_heard = True
                self._backoff.reset()
                if self._is_lost:
                    self._is_lost = False
                    self._report(None)
            yield piece

    def _pause(self) -> Iterator[None]:
        until = time.monotonic() + self._backoff.pause_s()
        while (left_s := until - time.monotonic()) > 0 and not self._is_over():
            self._stop.wait(min(_LOOK_S, left_s))
            yield from self._tick()

    def _tick(self, *, is_due: bool = False) -> Iterator[None]:
        if is_due or time.monotonic() - self._ticked_at >= _TICK_S:
            self._ticked_at = time.monotonic()
            yield None

    def _is_over(self) -> bool:
        return self._stop.is_set() or self._server.is_closed

    def _ended(self) -> LivesyncUnreachable:
        return LivesyncUnreachable(
            f"CouchDB at {self._server.remote.url} ended the feed of changes.",
            "If it stays so, look at the server's log.",
        )


def _milliseconds(seconds: float) -> str:
    return str(int(seconds * 1000))
