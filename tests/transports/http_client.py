"""Drivers of the HTTP door: a real server in a thread, a real daemon, and raw sockets to both."""

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psutil
from tests.folders import write_notes
from tests.waiting import PATIENCE_S

from obsidian_rag import __version__, config
from obsidian_rag.engine import Bus, Engine
from obsidian_rag.engine.health import Health
from obsidian_rag.engine.jobs import Jobs
from obsidian_rag.engine.live import OFFLINE, Live
from obsidian_rag.tools import call
from obsidian_rag.transports.daemon_client import RunningDaemon, find_daemon
from obsidian_rag.transports.http.app import Door
from obsidian_rag.transports.http.protocol import ConnectionLimits
from obsidian_rag.transports.http.server import DoorServer

T = TypeVar("T")
TOKEN = "a-token-for-tests"
NOTES = {
    "Finance/Debts.md": "# Debts\n\nI owe Sreenivas two hundred dollars.\n",
    "Projects/Plan.md": "# Plan\n\nDig the rain garden before the autumn.\n",
    "Private/Diary.md": "---\nrag: private\n---\n# Diary\n\nzephyr thoughts\n",
}
SERVE = (
    "from obsidian_rag.config import load;"
    " from obsidian_rag.transports.servers import ServeOptions, serve_http;"
    " import sys; pid = int(sys.argv[2]) or None;"
    " raise SystemExit(serve_http(load(), ServeOptions(float(sys.argv[1]), pid)))"
)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The error's code; whatever has one is a whole envelope."""
        envelope = self.json
        assert set(envelope) == {"status", "data", "error", "meta"}, envelope
        assert set(envelope["error"]) == {"code", "message", "recoverable", "suggestion"}
        assert set(envelope["meta"]) == {
            "query_time_ms",
            "chunks_scanned",
            "index_version",
            "vault_mtime",
        }
        assert self.headers["content-type"] == "application/json"
        return str(envelope["error"]["code"])


@dataclass
class Address:
    """A door to talk to; headers may be changed or, with None, left out."""

    port: int
    token: str = TOKEN

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def headers(self, changed: Mapping[str, str | None] | None = None) -> dict[str, str]:
        wanted = {"Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {self.token}"}
        merged = {**wanted, **(changed or {})}
        return {name: value for name, value in merged.items() if value is not None}

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> Reply:
        """One request on a connection of its own; a body is JSON unless it is bytes."""
        given = self.headers({"Content-Type": "application/json", **(headers or {})})
        content = body if isinstance(body, bytes) else b"" if body is None else encoded(body)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.request(method, path, content, given)
            return reply_of(connection.getresponse())

    def get(self, path: str, headers: Mapping[str, str | None] | None = None) -> Reply:
        return self.ask("GET", path, None, headers)

    def tool(
        self, name: str, arguments: object = None, headers: Mapping[str, str | None] | None = None
    ) -> Reply:
        """Ask a tool by its short name."""
        return self.ask("POST", f"/tools/obsidian_rag_{name}", arguments, headers)

    def connect(self, receive_buffer: int | None = None) -> socket.socket:
        raw = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        raw.settimeout(PATIENCE_S)
        raw.connect(("127.0.0.1", self.port))
        return raw

    def head(
        self, method: str, path: str, headers: Mapping[str, str | None] | None = None
    ) -> bytes:
        """A request's head as bytes."""
        lines = [f"{name}: {value}" for name, value in self.headers(headers).items()]
        return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode("latin-1")

    def exchange(self, sent: bytes) -> bytes:
        """Send bytes as they are; all that comes until the other side closes."""
        with self.connect() as raw:
            raw.sendall(sent)
            return until_closed(raw)

    @contextlib.contextmanager
    def listen(
        self, last_seen: str | None = None, caller: str | None = "owner"
    ) -> "Iterator[Listener]":
        """The events of this door, after `ready`."""
        headers = {"Last-Event-ID": last_seen, "X-Obsidian-Rag-Caller": caller}
        with self.connect() as raw:
            raw.sendall(self.head("GET", "/events", headers))
            with http.client.HTTPResponse(raw) as response:
                listener = Listener(response)
                listener.begin()
                yield listener


class Listener:
    """One stream of server-sent events."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.response = response

    def begin(self) -> None:
        self.response.begin()
        assert self.response.status == 200, self.response.read()
        assert self.take() == Heard(None, "ready", {})

    def take(self) -> "Heard | None":
        """The next event or comment; None at the end."""
        fields: dict[str, str] = {}
        while line := self.response.readline():
            text = line.decode().rstrip("\n")
            if text.startswith(":"):
                fields["event"] = ":"
            elif text:
                name, _, value = text.partition(": ")
                fields[name] = value
            elif fields:
                return Heard(
                    fields.get("id"), fields["event"], json.loads(fields.get("data", "null"))
                )
        return None

    def until(self, kind: str) -> "list[Heard]":
        """Everything up to the first event of a kind."""
        found: list[Heard] = []
        while not found or found[-1].kind != kind:
            heard = self.take()
            assert heard is not None, found
            found.append(heard)
        return found


@dataclass(frozen=True, slots=True)
class Heard:
    """An event as it arrived."""

    id: str | None
    kind: str
    data: Any


@dataclass
class OpenDoor(Address):
    """A server in a thread of this process."""

    engine: Engine = field(kw_only=True)
    app: Door = field(kw_only=True)
    live: Live = field(kw_only=True)
    server: DoorServer = field(kw_only=True)
    over: threading.Event = field(kw_only=True)
    thread: threading.Thread = field(kw_only=True)

    def close(self) -> None:
        """Stop it as a signal would."""
        self.over.set()
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()


def encoded(body: object) -> bytes:
    return json.dumps(body).encode()


def reply_of(response: http.client.HTTPResponse) -> Reply:
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Reply(response.status, headers, response.read())


def until_closed(raw: socket.socket) -> bytes:
    """What a socket still gives; the test ends by its timeout if it stays open."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while block := raw.recv(65536):
            found += block
    return found


def installed(
    root: Path,
    settings: Mapping[str, object] | None = None,
    notes: Mapping[str, str] = NOTES,
    *,
    is_indexed: bool = True,
) -> Engine:
    """An engine of a small vault below `root`, with the hash embedder."""
    vault = root / "vault"
    write_notes(vault, notes)
    flags = {"vault_path": str(vault), "embedding.provider": "hash", **(settings or {})}
    engine = Engine(config.load(flags, {"OBSIDIAN_RAG_HOME": str(root / "home")}))
    if is_indexed:
        assert call(engine, "obsidian_rag_index", {"mode": "full"})["status"] == "healthy"
    return engine


@contextlib.contextmanager
def open_door(
    engine: Engine, most_connections: int = 512, on_shutdown: Callable[[], None] | None = None
) -> Iterator[OpenDoor]:
    """Serve an engine on a free port until the block ends; its jobs wait for ever."""
    bus = Bus()
    engine.live = live = Live(bus, Jobs(engine.config, bus), Health(bus))
    limits = ConnectionLimits(most_connections, engine.config.settings.server.read_timeout_s)
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        port = listener.getsockname()[1]
        app = Door(engine, port, TOKEN, on_shutdown or over.set)
        server = DoorServer(app, limits, over)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        door = OpenDoor(
            port, engine=engine, app=app, live=live, server=server, over=over, thread=thread
        )
        try:
            yield door
        finally:
            door.close()
            engine.live = OFFLINE
            engine.close()


@dataclass
class Daemon(Address):
    """A daemon in a process of its own, started from Python."""

    process: "subprocess.Popen[str]" = field(kw_only=True)
    said: str = field(kw_only=True)

    @property
    def running(self) -> RunningDaemon:
        return RunningDaemon(self.port, self.token, self.process.pid, __version__, "")

    def end(self) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(PATIENCE_S)


def start_daemon(
    idle_exit_s: float = 0, parent_pid: int = 0, environ: Mapping[str, str] | None = None
) -> "subprocess.Popen[str]":
    """A process that wants to be the daemon of this test's data folder."""
    return subprocess.Popen(
        [sys.executable, "-c", SERVE, str(idle_exit_s), str(parent_pid)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environ or {})},
    )


@contextlib.contextmanager
def daemon(idle_exit_s: float = 0, parent_pid: int = 0) -> Iterator[Daemon]:
    """The daemon of this test's data folder, from the line that says so to the block's end."""
    with ending(start_daemon(idle_exit_s, parent_pid)) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = find_daemon(config.data_home())
        assert found is not None, said + process.stderr.read()
        yield Daemon(found.port, found.token, process=process, said=said)


@contextlib.contextmanager
def ending(process: "subprocess.Popen[str]") -> "Iterator[subprocess.Popen[str]]":
    """See to it that a process and its worker have ended with the block."""
    try:
        yield process
    finally:
        family: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            family = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
        for one in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        psutil.wait_procs(family, timeout=PATIENCE_S)
        if process.stderr is not None:
            process.stderr.close()
