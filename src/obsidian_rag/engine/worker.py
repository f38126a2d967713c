"""The worker: the process that does the index runs of a daemon, one after another, and stays warm.

It reads commands as NDJSON on its stdin and answers on its stdout:

    {"type": "configure", "home", "file", "settings"}     first, once
    {"type": "run", "job_id", "mode", "paths"}            paths: a list, or null for the vault
    {"type": "cancel", "job_id"}                          the run ends early, with its result

    {"type": "ready"}                                     what can be loaded beforehand is loaded
    {"type": "progress", "phase", "current", "total"}     at most ten per second and phase
    {"type": "complete", ...}                             the fields of `result_fields`
    {"type": "error", "code", "message", "recoverable", "suggestion"}

The end of its stdin means that the parent has gone or wants it to go.
"""

import contextlib
import io
import json
import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from obsidian_rag.config import Config, Settings
from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.indexing import result_fields, run_index
from obsidian_rag.engine.memory import give_back
from obsidian_rag.engine.outcome import record_failure
from obsidian_rag.errors import IndexerFailed, ObsidianRagError
from obsidian_rag.index import Listener, Mode, paced

_NICENESS = 10
# A run may hang on an embedder that does not answer; whatever it was doing, a later run goes on.
_FAREWELL_S = 5.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Task:
    job_id: str
    mode: Mode
    paths: tuple[str, ...] | None
    stop: threading.Event = field(default_factory=threading.Event)


def serve() -> None:
    """Do what the parent says until it says no more."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    commands, voice = _commands(), _Voice()
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    configuration = next(commands, None)
    if configuration is not None:
        _Worker(_config(configuration), voice).work(commands)
    sys.stdout.flush()
    sys.stderr.flush()
    # Not by way of the interpreter's end, which waits for the threads of libraries.
    os._exit(0)


def _commands() -> Iterator[dict[str, object]]:
    """The lines of the pipe that was our stdin, which nobody else may read from now on."""
    pipe = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return (json.loads(line) for line in pipe)


def _config(command: dict[str, object]) -> Config:
    """The parent's configuration, even if the file says something else by now."""
    settings = Settings.model_validate(command["settings"])
    return Config(Path(str(command["home"])), Path(str(command["file"])), settings)


class _Voice:
    """Speaks on the pipe that was our stdout; what libraries print goes to the log instead."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pipe: IO[bytes] = io.BufferedWriter(io.FileIO(os.dup(1), "w"))
        os.dup2(2, 1)

    def say(self, **fields: object) -> None:
        """One line; a parent that has gone is noticed elsewhere."""
        with self._lock, contextlib.suppress(OSError):
            self._pipe.write(json.dumps(fields).encode() + b"\n")
            self._pipe.flush()

    def say_failed(self, error: ObsidianRagError) -> None:
        """How a run failed."""
        self.say(type="error", **error.body)

    def progress(self) -> Listener:
        """Tells of one run."""
        return paced(lambda progress: self.say(type="progress", **asdict(progress)))


class _Worker:
    """One engine for all runs."""

    def __init__(self, config: Config, voice: _Voice) -> None:
        self._voice = voice
        self._engine = Engine(config)
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._latest: _Task | None = None

    def work(self, commands: Iterator[dict[str, object]]) -> None:
        """Load what can be loaded, then do one task after another."""
        threading.Thread(target=self._listen, args=(commands,), daemon=True).start()
        self._warm_up()
        self._voice.say(type="ready")
        give_back()
        while (task := self._tasks.get()) is not None:
            self._carry_out(task)
            give_back()
        self._engine.close()

    def _listen(self, commands: Iterator[dict[str, object]]) -> None:
        try:
            for command in commands:
                self._take(command)
        finally:
            if self._latest is not None:
                self._latest.stop.set()
            self._tasks.put(None)
            end = threading.Timer(_FAREWELL_S, os._exit, (1,))
            end.daemon = True
            end.start()

    def _take(self, command: dict[str, object]) -> None:
        if command["type"] == "run":
            paths = command["paths"]
            self._latest = _Task(
                str(command["job_id"]),
                Mode(str(command["mode"])),
                tuple(str(path) for path in paths) if isinstance(paths, list) else None,
            )
            self._tasks.put(self._latest)
        # A cancel that comes late must not hit the next run.
        elif self._latest is not None and command.get("job_id") == self._latest.job_id:
            self._latest.stop.set()

    def _warm_up(self) -> None:
        """Load what the first run would load; a trouble is that run's to tell."""
        try:
            self._take_up_changes()
            engine = self._engine
            with contextlib.suppress(ObsidianRagError):
                if engine.chunks.folder is not None:
                    engine.chunks.count()
            with contextlib.suppress(ObsidianRagError):
                if engine.embedder.provider != "ollama":
                    engine.embedder.embed_query("ready")
        except Exception:  # noqa: BLE001  (the outer edge: a worker that is cold is still a worker)
            _log.exception("warming up failed")

    def _carry_out(self, task: _Task) -> None:
        try:
            self._take_up_changes()
            listener = self._voice.progress()
            result = run_index(self._engine, task.mode, listener, task.stop.is_set, task.paths)
        except ObsidianRagError as error:
            self._voice.say_failed(error)
        except MemoryError:
            raise  # the parent starts a new worker, with a clean slate
        except Exception as error:  # noqa: BLE001  (the outer edge: the worker lives on)
            _log.exception("a %s failed", task.mode)
            self._voice.say_failed(self._failure(task.mode, error))
        else:
            self._voice.say(type="complete", **result_fields(result))

    def _failure(self, mode: Mode, error: Exception) -> IndexerFailed:
        """What to tell of a failure that nobody expected; its text may quote a note."""
        self._engine.close()
        failure = IndexerFailed(
            f"The indexer failed unexpectedly ({type(error).__name__}).",
            "Try again; if it happens again, logs/worker.log has the details to report.",
        )
        with contextlib.suppress(OSError):
            record_failure(self._engine.config, mode, failure)
        return failure

    def _take_up_changes(self) -> None:
        """Another process may have written the index since our last run, or replaced its files."""
        # A kept table extends what it was when it was opened: if another process has made the
        # table anew meanwhile, that would refer to files that are gone.
        self._engine.chunks.close()
        self._engine.follow_database()
