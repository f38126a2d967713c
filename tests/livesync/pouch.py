"""A real server with CouchDB's HTTP interface: npm's pouchdb-server, or the CouchDB we are told of.

`OBSIDIAN_RAG_COUCH_URL`, with user and password in it, names a CouchDB to use instead.
"""

import base64
import contextlib
import hashlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from filelock import FileLock
from tests.waiting import PATIENCE_S, until

from obsidian_rag.livesync.couchdb.remote import Remote

# Read now: the fixture `home` changes the environment of each test.
_ENVIRONMENT = dict(os.environ)
_COUCH_URL = _ENVIRONMENT.get("OBSIDIAN_RAG_COUCH_URL")
_HERE = Path(__file__).parent
_CACHE = _HERE.parent.parent / ".cache" / "pouchdb"
_INSTALLED_FROM = ("package.json", "package-lock.json", ".npmrc")
_USER = "admin"
_PASSWORD = "a-password-för-tests"
# The limit that CouchDB 3 has, unless its administrator set another.
MAX_DOCUMENT_SIZE = 8_000_000
# A test process that is killed closes the pipe, and the server leaves.
_LEAVE_WITH_US = "process.stdin.on('end', () => process.exit(0)).resume();"


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers, and its administrator."""

    url: str
    user: str
    password: str
    is_couchdb: bool

    @property
    def port(self) -> int:
        parts = urlsplit(self.url)
        return parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    def new_remote(self) -> Remote:
        """A database that nobody has; it is not made."""
        return Remote(self.url, f"test-{uuid.uuid4().hex}", self.user, self.password)

    def request(self, method: str, path: str, body: object = None) -> tuple[int, object]:
        """What another client would ask, without the code that we test."""
        parts = urlsplit(self.url)
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        connection = kind(self.host, self.port, timeout=PATIENCE_S)
        token = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        headers = {"Authorization": f"Basic {token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, parts.path.rstrip("/") + path, text, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()


def why_not() -> str | None:
    """Why there is no server to test with; None if there is one."""
    if _COUCH_URL or (shutil.which("node") and shutil.which("npm")):
        return None
    return "needs a server: install Node and npm, or set OBSIDIAN_RAG_COUCH_URL to a CouchDB"


@contextlib.contextmanager
def running_server(folder: Path) -> Iterator[Server]:
    """A server while the block runs; `folder` takes what it writes."""
    if _COUCH_URL:
        yield _known_server(_COUCH_URL)
        return
    install()
    port = _free_port()
    process = _start(folder, port)
    try:
        server = Server(f"http://127.0.0.1:{port}", _USER, _PASSWORD, is_couchdb=False)
        _wait_until_it_answers(server, process, folder)
        yield server
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(PATIENCE_S)


def prepare() -> None:
    """Install ahead what the first test would install while the others wait."""
    if why_not() is None and not _COUCH_URL:
        install()


def install() -> None:
    """Put the locked packages into the cache, unless they are there."""
    _CACHE.mkdir(parents=True, exist_ok=True)
    texts = [(_HERE / name).read_bytes() for name in _INSTALLED_FROM]
    wanted = hashlib.sha256(b"\0".join(texts)).hexdigest()
    ready = _CACHE / "ready"
    with FileLock(_CACHE.with_suffix(".lock"), timeout=2 * PATIENCE_S):
        if ready.is_file() and ready.read_text() == wanted:
            return
        ready.unlink(missing_ok=True)
        for name, text in zip(_INSTALLED_FROM, texts, strict=True):
            (_CACHE / name).write_bytes(text)
        done = subprocess.run(
            [shutil.which("npm") or "npm", "ci", "--silent"],
            cwd=_CACHE,
            env=_ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, f"npm ci: {done.stderr or done.stdout}"
        ready.write_text(wanted)


def _known_server(url: str) -> Server:
    parts = urlsplit(url)
    place = f"{parts.hostname}:{parts.port}" if parts.port else f"{parts.hostname}"
    return Server(
        f"{parts.scheme}://{place}{parts.path.rstrip('/')}",
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        is_couchdb=True,
    )


def _start(folder: Path, port: int) -> "subprocess.Popen[bytes]":
    settings = {
        "admins": {_USER: _PASSWORD},
        "couchdb": {"max_document_size": MAX_DOCUMENT_SIZE},
        "log": {"file": str(folder / "server.log"), "level": "error"},
    }
    (folder / "config.json").write_text(json.dumps(settings), "utf-8")
    leave = folder / "leave.js"
    leave.write_text(_LEAVE_WITH_US, "utf-8")
    binary = _CACHE / "node_modules" / "pouchdb-server" / "bin" / "pouchdb-server"
    place = ["--in-memory", "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "said.txt").open("wb") as said:
        return subprocess.Popen(
            ["node", "--require", str(leave), str(binary), *place, "--config", "config.json"],
            cwd=folder,
            env=_ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=subprocess.STDOUT,
        )


def _wait_until_it_answers(
    server: Server, process: "subprocess.Popen[bytes]", folder: Path
) -> None:
    def answers() -> bool:
        said = (folder / "said.txt").read_text("utf-8", "replace")
        assert process.poll() is None, f"pouchdb-server ended: {said}"
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            return server.request("GET", "/_all_dbs")[0] == 200
        return False

    until(answers, "an answer of pouchdb-server")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
