"""A proxy on loopback that spoils chosen conversations with a server.

    with FaultyProxy(server_port) as proxy:
        proxy.answer(503, "POST /notes/_bulk_docs")  # the server never sees the request
        proxy.cut_after(100, "_all_docs")            # it does; 100 bytes of its answer pass
        proxy.cut_after(0, "_bulk_docs")             # it does; nobody hears of it
        proxy.delay(0.5)                             # every request waits before it goes on
        proxy.hold("feed=continuous")                # an answer passes only when it is whole
        proxy.cut()                                  # the open connections are cut, once
        proxy.refuse()                               # they are, and new ones too, until `heal`
        proxy.heal()                                 # all is well again

Each fault stays until `heal`. A fault is for requests whose first line (`GET /path?query`)
contains the given text, or for which the given function is true.
"""

import contextlib
import re
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

_PIECE = 64 * 1024
_LENGTH = re.compile(rb"^content-length:\s*(\d+)", re.I | re.M)
_RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asked for: method and target, all header lines, and the body."""

    line: str
    head: bytes = field(repr=False)
    body: bytes = field(repr=False)


Match = str | Callable[[Request], bool]


@dataclass(frozen=True, slots=True)
class _Fault:
    match: Match
    status: int | None = None
    cut_after: int | None = None
    delay_s: float = 0.0
    is_held: bool = False
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def concerns(self, request: Request) -> bool:
        if isinstance(self.match, str):
            return self.match in request.line
        return self.match(request)


class FaultyProxy:
    """Forwards to a server, except where it was told otherwise."""

    def __init__(self, target_port: int, host: str = "127.0.0.1") -> None:
        self._target = (host, target_port)
        self._faults: tuple[_Fault, ...] = ()
        self._is_refusing = False
        self._healed = threading.Event()
        self._lock = threading.Lock()
        self._open: set[_Conversation] = set()
        self.requests: list[Request] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name="faulty-proxy", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(
        self,
        status: int,
        match: Match = "",
        content: bytes = b'{"error":"injected"}',
        content_type: str = "application/json",
        location: str = "",
    ) -> None:
        """Answer chosen requests ourselves; the server does not get them."""
        headers = {"Content-Type": content_type} | ({"Location": location} if location else {})
        self._add(_Fault(match, status=status, content=content, headers=headers))

    def cut_after(self, n_bytes: int, match: Match = "") -> None:
        """Cut the connection after so many bytes of the server's answer, headers included."""
        self._add(_Fault(match, cut_after=n_bytes))

    def delay(self, seconds: float, match: Match = "") -> None:
        """Let requests wait before they go on to the server."""
        self._add(_Fault(match, delay_s=seconds))

    def hold(self, match: Match = "") -> None:
        """Keep an answer back until the server has ended it."""
        self._add(_Fault(match, is_held=True))

    def refuse(self) -> None:
        """Cut every connection, and every new one at once."""
        self._is_refusing = True
        self.cut()

    def cut(self) -> None:
        """Cut every connection that is open now; new ones are welcome."""
        with self._lock:
            open_now = list(self._open)
        for conversation in open_now:
            conversation.cut()

    def lead_to(self, port: int) -> None:
        """Forward new connections to another server."""
        self._target = (self._target[0], port)
        self.cut()

    def heal(self) -> None:
        """Forget all faults."""
        self._faults, self._is_refusing = (), False
        self._healed.set()
        self._healed = threading.Event()

    def close(self) -> None:
        """Cut everything, and leave no thread behind."""
        self._healed.set()
        # A blocked accept() does not notice that its socket was closed.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)
        with self._lock:
            open_now = list(self._open)
        for conversation in open_now:
            conversation.cut()
            conversation.join()

    def _add(self, fault: _Fault) -> None:
        # The newest one first; and a new tuple, because threads read it.
        self._faults = (fault, *self._faults)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._is_refusing:
                _reset(client)
                continue
            conversation = _Conversation(client, self)
            with self._lock:
                self._open.add(conversation)
            conversation.start()

    def fault_of(self, request: Request) -> _Fault | None:
        return next((fault for fault in self._faults if fault.concerns(request)), None)

    def wait(self, seconds: float) -> None:
        self._healed.wait(seconds)

    def connect(self) -> socket.socket:
        return socket.create_connection(self._target)

    def forget(self, conversation: "_Conversation") -> None:
        with self._lock:
            self._open.discard(conversation)


class _Conversation:
    """One client's connection, and ours to the server for it; a thread for each direction."""

    def __init__(self, client: socket.socket, proxy: FaultyProxy) -> None:
        self._client = client
        self._proxy = proxy
        self._server: socket.socket | None = None
        self._left: int | None = None
        self._held: bytearray | None = None
        self._threads = [threading.Thread(target=self._run, name="faulty-proxy", daemon=True)]

    def start(self) -> None:
        self._threads[0].start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(5)

    def cut(self) -> None:
        """End both connections; whoever waits in one of them gets to know."""
        for one in (self._client, self._server):
            if one is not None:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        try:
            self._serve()
        except OSError:
            # A side went away, which is what this is for.
            pass
        finally:
            self.cut()
            for thread in self._threads[1:]:
                thread.join(5)
            self._client.close()
            if self._server is not None:
                self._server.close()
            self._proxy.forget(self)

    def _serve(self) -> None:
        rest = b""
        while True:
            request, rest = _request(self._client, rest)
            if request is None:
                return
            self._proxy.requests.append(request)
            fault = self._proxy.fault_of(request) or _Fault("")
            if fault.delay_s:
                self._proxy.wait(fault.delay_s)
            if fault.status is not None:
                self._client.sendall(_response(fault))
                continue
            self._left = fault.cut_after
            self._held = bytearray() if fault.is_held else None
            self._forward(request)

    def _forward(self, request: Request) -> None:
        if self._server is None:
            self._server = self._proxy.connect()
            thread = threading.Thread(target=self._answers, name="faulty-proxy", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._server.sendall(request.head + request.body)

    def _answers(self) -> None:
        assert self._server is not None
        with contextlib.suppress(OSError):
            while piece := self._server.recv(_PIECE):
                if self._held is not None:
                    self._held += piece
                    if not _is_whole(self._held):
                        continue
                    piece, self._held = bytes(self._held), None
                if self._left is not None:
                    piece = piece[: self._left]
                    self._left -= len(piece)
                self._client.sendall(piece)
                if self._left == 0:
                    break
        self.cut()


def _request(client: socket.socket, rest: bytes) -> tuple[Request | None, bytes]:
    """The next whole request, and what came after it; None when the client has left."""
    while b"\r\n\r\n" not in rest:
        if not (piece := client.recv(_PIECE)):
            return None, b""
        rest += piece
    head, _, body = rest.partition(b"\r\n\r\n")
    length = int(found[1]) if (found := _LENGTH.search(head)) else 0
    pieces, size = [body], len(body)
    while size < length:
        if not (piece := client.recv(_PIECE)):
            return None, b""
        pieces.append(piece)
        size += len(piece)
    body = b"".join(pieces)
    line = head.split(b"\r\n", 1)[0].decode("latin-1").rpartition(" ")[0]
    return Request(line, head + b"\r\n\r\n", body[:length]), body[length:]


def _is_whole(answer: bytes | bytearray) -> bool:
    head, end, body = bytes(answer).partition(b"\r\n\r\n")
    if found := _LENGTH.search(head):
        return bool(end) and len(body) >= int(found[1])
    return body.endswith(b"0\r\n\r\n")


def _response(fault: _Fault) -> bytes:
    headers = {**fault.headers, "Content-Length": str(len(fault.content))}
    lines = [f"HTTP/1.1 {fault.status} Injected", *(f"{n}: {v}" for n, v in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + fault.content


def _reset(connection: socket.socket) -> None:
    """Close without a farewell, as a machine that lost power."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    connection.close()
