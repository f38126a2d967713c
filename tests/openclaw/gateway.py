"""A real OpenClaw gateway on loopback, in a place of its own, with our plugin linked into it."""

import contextlib
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest
from tests.waiting import PATIENCE_S, until

from obsidian_rag import config
from obsidian_rag.transports.daemon_client import RunningDaemon, find_daemon

# Read now: the fixture `home` removes our variables from the environment of each test.
CACHE = Path(os.environ.get("OBSIDIAN_RAG_OPENCLAW", "/nowhere")).absolute()
NEEDS_OPENCLAW = [
    pytest.mark.openclaw,
    pytest.mark.skipif(not CACHE.is_dir(), reason="needs OpenClaw: run `make test-openclaw`"),
]
PLUGIN = Path(__file__).parent.parent.parent / "plugins" / "openclaw"
NPM = Path(shutil.which("npm") or "/nowhere/npm")
NODE = CACHE / "node_modules" / "node" / "bin"
OPENCLAW = CACHE / "node_modules" / "openclaw" / "openclaw.mjs"
CLAWHUB = CACHE / "node_modules" / "clawhub" / "bin" / "clawdhub.js"
START_S = PATIENCE_S
TOKEN = "a-token-for-tests"
MARK = "OPENCLAW_TEST_MARK"
T = TypeVar("T")


@dataclass
class Place:
    """Folders, settings and environment of one OpenClaw installation and one obsidian-rag."""

    root: Path
    plugin_config: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    has_engine: bool = True
    port: int = 0
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        for folder in (self.user, self.state, self.workspace, self.vault):
            folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()

    @property
    def user(self) -> Path:
        return self.root / "user"

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def vault(self) -> Path:
        return self.root / "vault"

    @property
    def home(self) -> Path:
        """The data folder of obsidian-rag: the usual one of this user."""
        return self.user / ".obsidian-rag"

    @property
    def config_file(self) -> Path:
        return self.root / "openclaw.json"

    @property
    def environ(self) -> dict[str, str]:
        engine = [str(Path(sys.executable).parent)] if self.has_engine else []
        return {
            "PATH": os.pathsep.join([str(NODE), *engine, "/usr/bin", "/bin", str(NPM.parent)]),
            "HOME": str(self.user),
            "OPENCLAW_HOME": str(self.user),
            "OPENCLAW_STATE_DIR": str(self.state),
            "OPENCLAW_CONFIG_PATH": str(self.config_file),
            "NO_COLOR": "1",
            MARK: self.mark,
        }

    def write_note(self, path: str, text: str) -> None:
        file = self.vault / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def configure_engine(self, settings: Mapping[str, object]) -> None:
        """Write obsidian-rag's config.json; dotted keys, the hash embedder unless told."""
        tree: dict[str, Any] = {"vault_path": str(self.vault)}
        for key, value in {"embedding.provider": "hash", **settings}.items():
            section, _, name = key.partition(".")
            tree.setdefault(section, {})[name] = value
        config.save(tree, self.home / "config.json")

    def write_config(self, is_linked: bool = True) -> None:
        """Write openclaw.json as a user would, or as `plugins install --link` leaves it."""
        assert not (PLUGIN / "dist").exists(), (
            "OpenClaw would load dist/ instead of src/: remove it"
        )
        plugins: dict[str, Any] = {"allow": ["obsidian-rag", "memory-core"]}
        if is_linked:
            plugins["load"] = {"paths": [str(PLUGIN)]}
            plugins["entries"] = {"obsidian-rag": {"enabled": True, "config": self.plugin_config}}
        tree = {
            "gateway": {
                "mode": "local",
                "bind": "loopback",
                "port": self.port,
                "auth": {"mode": "token", "token": TOKEN},
            },
            "logging": {"file": str(self.root / "openclaw.log")},
            "agents": {"defaults": {"workspace": str(self.workspace), "skipBootstrap": True}},
            "plugins": plugins,
        }
        self._save({**tree, **self.extra})

    def set_plugin_config(self, settings: Mapping[str, object]) -> None:
        """Change the plugin's settings while the gateway runs, which notices it."""
        tree = json.loads(self.config_file.read_text(encoding="utf-8"))
        tree["plugins"]["entries"]["obsidian-rag"]["config"] = dict(settings)
        self._save(tree)

    def _save(self, tree: Mapping[str, object]) -> None:
        made = self.config_file.with_suffix(".new")
        made.write_text(json.dumps(tree, indent=2), encoding="utf-8")
        made.chmod(0o600)
        made.replace(self.config_file)

    def run(self, *words: str, seconds: float = START_S) -> "subprocess.CompletedProcess[str]":
        """A command of OpenClaw in this place."""
        return self.execute([NODE / "node", OPENCLAW, *words], seconds=seconds)

    def execute(
        self, command: list[Path | str], seconds: float = START_S, cwd: Path | None = None
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(word) for word in command],
            cwd=cwd or self.root,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
        )

    def processes(self) -> list[psutil.Process]:
        """Every process that was started from this place and still lives."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if (
                    process.status() != psutil.STATUS_ZOMBIE
                    and process.environ().get(MARK) == self.mark
                ):
                    found.append(process)
        return found

    def daemon(self) -> RunningDaemon | None:
        return find_daemon(self.home)

    def clean_up(self) -> None:
        """End whatever is left."""
        left = self.processes()
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=PATIENCE_S)


class Gateway:
    """A gateway that is ready."""

    def __init__(self, place: Place, process: "subprocess.Popen[bytes]") -> None:
        self.place = place
        self.process = process

    def invoke(self, tool: str, arguments: Mapping[str, object]) -> tuple[int, Any]:
        """What POST /tools/invoke answers."""
        return post(self.place.port, {"tool": tool, "args": arguments})

    def ask(self, tool: str, **arguments: object) -> Any:
        """The envelope that the model would see."""
        status, answer = self.invoke(f"obsidian_rag_{tool}", arguments)
        assert status == 200, answer
        (content,) = answer["result"]["content"]
        return json.loads(content["text"])

    def index(self) -> None:
        """Index the vault as an agent does it."""
        assert self.ask("index", mode="full")["data"]["job_id"]
        until(lambda: self.ask("status")["status"] == "healthy", "a healthy index")

    def found(self, question: str) -> list[str]:
        return [hit["source_file"] for hit in self.ask("search", query=question)["data"]["results"]]

    def log(self) -> str:
        return (self.place.root / "gateway.out").read_text(encoding="utf-8", errors="replace")

    def end(self, number: signal.Signals) -> None:
        """Send it a signal and wait until it is gone."""
        self.process.send_signal(number)
        self.process.wait(PATIENCE_S)


@contextlib.contextmanager
def gateway(place: Place) -> Iterator[Gateway]:
    """Run `openclaw gateway run` until the block ends; then nothing of it is left."""
    with (place.root / "gateway.out").open("ab") as said:
        process = subprocess.Popen(
            [str(NODE / "node"), str(OPENCLAW), "gateway", "run"],
            cwd=place.root,
            env=place.environ,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    made = Gateway(place, process)
    try:
        until(lambda: process.poll() is not None or is_ready(place.port), "the gateway", START_S)
        assert process.poll() is None, made.log()
        yield made
    finally:
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE_S)
        place.clean_up()
        process.wait(PATIENCE_S)


def is_ready(port: int) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        with contextlib.closing(connection):
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
    return False


def post(port: int, body: Mapping[str, object]) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2 * PATIENCE_S)
    with contextlib.closing(connection):
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        connection.request("POST", "/tools/invoke", json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def free_port() -> int:
    """A port that nobody has, below those that connections get by themselves."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            return port
