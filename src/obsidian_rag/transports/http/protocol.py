"""uvicorn's HTTP protocol with a timeout for every kind of waiting.

Threat: a client that connects and sends nothing, sends its request a byte a minute, keeps sending
after it was refused, or never reads its answer. uvicorn waits for all of these without limit.
"""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from obsidian_rag.errors import Status
from obsidian_rag.transports.http.messages import JSON, SAFE_HEADERS, Refusal, encode

# Keep reading a little after a refusal: closing at once could lose the response in transit.
_LINGER_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The maximum number of connections, and how long to wait for each client."""

    most: int
    patience_s: float


class PatientProtocol(H11Protocol):
    """One connection, closed when its client is too slow."""

    def __init__(
        self,
        *arguments: Any,
        limits: ConnectionLimits,
        health: Callable[[], Status],
        **named: Any,
    ) -> None:
        super().__init__(*arguments, **named)
        self._health = health
        self._limits = limits
        self._read_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._discarded = 0
        self._connected_at = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request, unless there are too many connections."""
        super().connection_made(transport)
        # asyncio sets this only on sockets that name their protocol. Without it, the body of a
        # response waits 40 ms for the client to acknowledge its head.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connected_at = self.loop.time()
        self._make_room()
        self._watch_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        for timer in (self._read_timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received data, and start or stop the read timer."""
        if not self._is_answering and self.conn.their_state is h11.SEND_BODY:
            self._discarded += len(data)
            if self._discarded > _LINGER_BYTES:
                self.transport.abort()
                return
        super().data_received(data)
        self._watch_reading()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._watch_reading()

    def pause_writing(self) -> None:
        """Start the write timer: the client does not read."""
        super().pause_writing()
        self._write_timer = self.loop.call_later(self._limits.patience_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the write timer: the client reads again."""
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed request."""
        self._refuse(Refusal(400, "This is not an HTTP request we understand.", "Send HTTP/1.1."))

    def _make_room(self) -> None:
        """Above the limit, close the oldest connection without an open request.

        Only open requests may keep others out: opening connections costs an attacker nothing.
        """
        others = [one for one in self.connections if one is not self]
        staying = [
            one
            for one in others
            if isinstance(one, PatientProtocol) and not one.transport.is_closing()
        ]
        if len(staying) < self._limits.most:
            return
        idle = [one for one in staying if not one._is_answering]
        if idle:
            min(idle, key=lambda one: one._connected_at).transport.abort()
        else:
            self._refuse(Refusal(503, "There are too many connections.", "Close some."))

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _watch_reading(self) -> None:
        """Run one timer while no request is being answered; received data does not reset it."""
        if self._is_answering or self.transport.is_closing():
            if self._read_timer is not None:
                self._read_timer.cancel()
                self._read_timer = None
            self._discarded = 0
        elif self._read_timer is None and self.timeout_keep_alive_task is None:
            self._read_timer = self.loop.call_later(self._limits.patience_s, self._give_up)

    def _give_up(self) -> None:
        self._read_timer = None
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._refuse(Refusal(408, "The request took too long to arrive.", "Send it at once."))
        else:
            self.transport.close()

    def _refuse(self, refusal: Refusal) -> None:
        """Respond without the application, and close."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = encode(refusal.envelope(self._health()))
            headers = {
                "Content-Type": JSON,
                "Content-Length": str(len(body)),
                "Connection": "close",
            }
            response = h11.Response(
                status_code=refusal.status, headers=list({**SAFE_HEADERS, **headers}.items())
            )
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
