"""A real daemon in a process of its own, and how tests wait for what happens in it."""

import contextlib
import os
import queue
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.folders import write_config, write_notes
from tests.transports.command_line import COMMAND, Done
from tests.waiting import PATIENCE_S, until

from obsidian_rag.config import data_home
from obsidian_rag.transports.daemon_client import DaemonGone, RunningDaemon, find_daemon

_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


class Living:
    """One daemon: its process, its door, and every event since its start."""

    def __init__(self, process: "subprocess.Popen[str]", door: RunningDaemon) -> None:
        self.process = process
        self.door = door
        self.home = data_home()
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._heard: queue.Queue[tuple[str, dict[str, Any]] | None] = queue.Queue()
        self._ready = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        assert self._ready.wait(PATIENCE_S), "no events from the daemon"

    def _listen(self) -> None:
        with contextlib.suppress(DaemonGone):
            for kind, data in self.door.events(after=0):
                self._ready.set()
                self._heard.put((kind, data))
        self._heard.put(None)

    def wait_for(self, kind: str, **wanted: object) -> dict[str, Any]:
        """The next event of this kind with these fields; earlier ones are used up."""
        while True:
            try:
                heard = self._heard.get(timeout=PATIENCE_S)
            except queue.Empty:
                raise AssertionError(f"no {kind} {wanted}; heard {self.events[-12:]}") from None
            assert heard is not None, f"the daemon ended before {kind} {wanted}: {self.events}"
            self.events.append(heard)
            name, data = heard
            if name == kind and all(data.get(key) == value for key, value in wanted.items()):
                return data

    def call(self, tool: str, **arguments: object) -> Any:
        """A tool's envelope, over HTTP."""
        return self.door.call(f"obsidian_rag_{tool}", arguments)

    def search(self, question: str) -> list[str]:
        """The notes that a question finds, best first."""
        data = self.call("search", query=question)["data"]
        return [hit["source_file"] for hit in data["results"]]

    def index(self, mode: str = "full") -> dict[str, Any]:
        """Run a job to its end."""
        started = self.call("index", mode=mode)["data"]
        assert started["status"] == "started"
        return self.wait_for("job", id=started["job_id"], status="completed")

    def worker(self) -> psutil.Process:
        """The process that indexes; one that was killed is started anew a little later."""
        return until(self._worker, "a worker")

    def _worker(self) -> psutil.Process | None:
        for child in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                if "engine.worker" in " ".join(child.cmdline()):
                    return child
        return None

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it, and its exit code."""
        if self.process.poll() is None:
            os.kill(self.process.pid, number)
        return self.process.wait(PATIENCE_S)


@contextlib.contextmanager
def living(environ: Mapping[str, str] | None = None) -> Iterator[Living]:
    """Run `obsidian-rag serve` until the block ends."""
    process = subprocess.Popen(
        [*COMMAND, "serve"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environ or {})},
    )
    assert process.stderr is not None
    said = ""
    try:
        for line in process.stderr:
            said += line
            if _ADDRESS.search(line):
                break
        drain = threading.Thread(target=process.stderr.read, daemon=True)
        drain.start()
        door = find_daemon(data_home())
        assert door is not None, f"no daemon: {said}"
        yield Living(process, door)
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        drain.join(PATIENCE_S)
        process.stderr.close()


def wait_until_gone(pids: list[int]) -> None:
    """Block until these processes have ended."""
    alive = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    _, left = psutil.wait_procs(alive, timeout=PATIENCE_S)
    assert left == []


@contextlib.contextmanager
def watching() -> Iterator[Living]:
    """A daemon of an indexed vault, from the end of its first sync on: the watcher is awake."""
    with living() as one:
        one.wait_for("job", status="completed")
        while not one.call("status")["data"]["is_watching"]:
            one.wait_for("health")
        yield one


@contextlib.contextmanager
def living_below(
    root: Path, notes: Mapping[str, str], settings: Mapping[str, object]
) -> Iterator[Living]:
    """A daemon for several tests, whose folders are not those of any of them.

    A test that asks it by a command sets OBSIDIAN_RAG_HOME to its `home`.
    """
    write_notes(root / "vault", notes)
    write_config(root / "home", root / "vault", settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(root / "user"))
        patch.setenv("OBSIDIAN_RAG_HOME", str(root / "home"))
        with living() as one:
            yield one


MakeVault = Callable[[Mapping[str, str | bytes]], Path]
Configure = Callable[[Path, Mapping[str, object]], None]
Cli = Callable[..., Done]
QUICK = {"watcher.debounce_s": 0.0, "watcher.collect_s": 0.0, "server.probe_s": 0.2}
