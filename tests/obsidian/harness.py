"""The plugin in a real browser: its own code on a stand-in of Obsidian, against a real daemon.

A small server gives the page the vault's files, the machine's files and programs that the plugin
looks at, and a way of the same origin to the daemon.
"""

import contextlib
import http.client
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.folders import write_config, write_notes
from tests.transports.http_client import ending, start_daemon
from tests.waiting import PATIENCE_S

from obsidian_rag import config
from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode
from obsidian_rag.notes import parse_note
from obsidian_rag.transports.daemon_client import find_daemon

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parent.parent.parent
PLUGIN = ROOT / "plugins" / "obsidian"
# Each of the processes that test side by side builds its own.
BUILT = ROOT / ".cache" / "obsidian-harness" / os.environ.get("PYTEST_XDIST_WORKER", "one")
# For people; some of them are in docs/images, for the guide.
PICTURES = ROOT / ".cache" / "obsidian-pictures"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
IS_WANTED = bool(os.environ.get("OBSIDIAN_RAG_OBSIDIAN"))
NEEDS_BROWSER = [
    pytest.mark.obsidian,
    pytest.mark.skipif(
        not (IS_WANTED and CHROMIUM and (PLUGIN / "node_modules").is_dir()),
        reason="needs chromium and npm packages: run `make test-obsidian`",
    ),
]
_REFUSED = 599
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


@dataclass
class Place:
    """A vault, its data folder, and what the page is told of the machine."""

    root: Path
    settings: dict[str, object] = field(default_factory=dict)
    programs: set[str] = field(default_factory=set)
    started: list[list[str]] = field(default_factory=list)

    @property
    def vault(self) -> Path:
        return self.root / "vault"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def environ(self) -> dict[str, str]:
        return {"OBSIDIAN_RAG_HOME": str(self.home), "PATH": "/usr/bin"}

    def write(self, notes: Mapping[str, str | bytes]) -> None:
        write_notes(self.vault, notes)

    def index(self) -> None:
        write_config(self.home, self.vault, self.settings)
        with contextlib.closing(Engine(config.load({}, self.environ))) as engine:
            run_index(engine, Mode.FULL)

    @contextlib.contextmanager
    def daemon(self) -> Iterator[int]:
        """The daemon's port, while it runs."""
        with ending(start_daemon(environ=self.environ)) as process:
            assert process.stderr is not None
            said = process.stderr.readline()
            found = find_daemon(self.home)
            assert found is not None, said
            yield found.port

    def ask(self, tool: str, arguments: Mapping[str, object]) -> Any:
        """What the daemon answers the owner."""
        found = find_daemon(self.home)
        assert found is not None
        connection = http.client.HTTPConnection("127.0.0.1", found.port)
        headers = {
            "Authorization": f"Bearer {found.token}",
            "Content-Type": "application/json",
            "x-obsidian-rag-caller": "owner",
        }
        with contextlib.closing(connection):
            path = f"/tools/obsidian_rag_{tool}"
            connection.request("POST", path, json.dumps(arguments), headers)
            return json.loads(connection.getresponse().read())


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, place: Place, *more: Any) -> None:
        self.place = place
        super().__init__(*more)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("content-length") or 0)))

    def _answer(self, body: bytes) -> None:
        url = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        _, _, kind, *_ = (*url.path.split("/"), "", "")
        room = url.path.split("/")[1]
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            if room == "engine":
                self._pass_on(kind, body)
            elif room == "vault":
                self._vault(kind, asked, body)
            elif room == "fs":
                self._files(kind, asked["path"])
            elif room == "exec":
                self._run(json.loads(body))
            else:
                self._static(url.path)

    def _send(self, status: int, body: bytes, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("content-type", f"{kind}; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _static(self, path: str) -> None:
        file = BUILT / (path.lstrip("/") or "index.html")
        if file.is_file():
            self._send(200, file.read_bytes(), _KINDS.get(file.suffix, "text/plain"))
        else:
            self._send(404, b"")

    def _vault(self, kind: str, asked: dict[str, str], body: bytes) -> None:
        file = self.place.vault / asked.get("path", "")
        if kind == "list":
            self._send(
                200, json.dumps(listing(self.place), default=str).encode(), "application/json"
            )
            return
        if kind == "read":
            self._send(200, file.read_bytes() if file.is_file() else b"")
            return
        if kind == "write":
            file.write_bytes(body)
        elif kind == "remove":
            file.unlink()
        elif kind == "rename":
            new = self.place.vault / asked["to"]
            new.parent.mkdir(parents=True, exist_ok=True)
            file.rename(new)
        self._send(200, b"")

    def _files(self, kind: str, path: str) -> None:
        file = Path(path)
        if kind == "read" and file.is_relative_to(self.place.home) and file.is_file():
            self._send(200, file.read_bytes())
        elif kind == "real":
            self._send(200, str(file.resolve()).encode())
        elif kind == "program" and path in self.place.programs:
            self._send(200, b"")
        else:
            self._send(404, b"")

    def _run(self, asked: dict[str, Any]) -> None:
        words = [asked["program"], *asked["words"]]
        self.place.started.append(words)
        env = {**os.environ, **asked["env"]}
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
        told = {"code": done.returncode, "stdout": done.stdout}
        self._send(200, json.dumps(told).encode(), "application/json")

    def _pass_on(self, port: str, body: bytes) -> None:
        path = "/" + self.path.split("/", 3)[3]
        headers = {
            "Authorization": f"Bearer {self.headers.get('x-token', '')}",
            "x-obsidian-rag-caller": "owner",
            **({"content-type": "application/json"} if body else {}),
        }
        if last := self.headers.get("last-event-id"):
            headers["last-event-id"] = last
        connection = http.client.HTTPConnection("127.0.0.1", int(port))
        with contextlib.closing(connection):
            try:
                connection.request(self.command, path, body or None, headers)
                reply = connection.getresponse()
            except OSError:
                self._send(_REFUSED, b"")
                return
            if path != "/events":
                self._send(reply.status, reply.read(), "application/json")
                return
            self._stream(reply)

    def _stream(self, reply: http.client.HTTPResponse) -> None:
        self.close_connection = True
        self.send_response(reply.status)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        with contextlib.suppress(OSError, http.client.HTTPException):
            while part := reply.read1(65536):
                self.wfile.write(part)
                self.wfile.flush()


def listing(place: Place) -> dict[str, object]:
    """The notes of the vault with their properties, as Obsidian knows them."""
    files = sorted(file for file in place.vault.rglob("*") if file.is_file())
    paths = [file.relative_to(place.vault).as_posix() for file in files]
    properties = {
        path: dict(parse_note(path, file.read_text(errors="replace")).frontmatter)
        for path, file in zip(paths, files, strict=True)
        if path.endswith(".md") and file.read_bytes()[:3] == b"---"
    }
    return {
        "root": str(place.vault),
        "paths": paths,
        "properties": properties,
        "machine": place.environ,
    }


@contextlib.contextmanager
def serving(place: Place) -> Iterator[str]:
    """The address of the harness's page."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Answers, place))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def build() -> None:
    """Bundle the page."""
    node = shutil.which("node") or "node"
    subprocess.run([node, "tests/harness/build.mjs", str(BUILT)], cwd=PLUGIN, check=True)


@contextlib.contextmanager
def chromium() -> "Iterator[Browser]":
    """Debian's browser."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  (only where there is a browser)

    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def app(browser: "Browser", address: str, width: int = 1200) -> "Iterator[Page]":
    """A page with the plugin loaded; whatever goes wrong in it fails the test."""
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.set_default_timeout(PATIENCE_S * 1000)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if is_wrong(said) else None)
    try:
        page.goto(address)
        page.wait_for_selector("body[data-ready]")
        yield page
        assert wrong == []
    finally:
        page.close()


def is_wrong(said: Any) -> bool:
    """Whether a line of the console is an error of ours; the browser itself tells of every 404."""
    return said.type == "error" and not said.text.startswith("Failed to load resource")


def picture(page: "Page", name: str) -> None:
    """Keep what the page looks like, for people."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.mouse.move(1, 1)
    page.screenshot(path=PICTURES / f"obsidian-{name}.png")
