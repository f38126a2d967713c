"""One long answer of the server, read by a thread of its own.

A thread that waits in a socket cannot look at anything else. So another one waits for it, and
can leave at any time: that shuts the socket, which ends the thread that reads.
"""

import queue
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from obsidian_rag.livesync.couchdb.http import Trace

_LEAVE_S = 0.5
_LOOK_S = 0.25
_WAITING_PIECES = 64


class FeedConnection:
    """An answer that is open while the `with` block runs."""

    def __init__(self, open_: Callable[[Trace], AbstractContextManager[Iterator[bytes]]]) -> None:
        self._open = open_
        self._pieces: queue.Queue[bytes | BaseException | None] = queue.Queue(_WAITING_PIECES)
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
        self._shut()
        # Only a thread that still looks for the server can stay longer, until it gives up.
        self._thread.join(_LEAVE_S)

    def take(self, timeout_s: float) -> bytes | None:
        """The next piece; an empty one if none came in time, None at the end."""
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
                        self._give(piece)
                    if self._leaving.is_set():
                        return
            self._give(None)
        except BaseException as error:  # noqa: BLE001  (handed to the consumer, who raises it)
            self._give(error)

    def _give(self, piece: bytes | BaseException | None) -> None:
        while not self._leaving.is_set():
            try:
                self._pieces.put(piece, timeout=_LOOK_S)
            except queue.Full:
                continue
            return

    def _trace(self, event: str, info: Mapping[str, object]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            stream = info.get("return_value")
            with self._lock:
                self._socket = stream.get_extra_info("socket")  # type: ignore[attr-defined]
            if self._leaving.is_set():
                self._shut()

    def _shut(self) -> None:
        with self._lock:
            if self._socket is not None:
                try:
                    self._socket.shutdown(socket.SHUT_RDWR)
                except OSError:
                    # The other side was faster.
                    return
