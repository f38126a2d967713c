"""The worker: the process that does the index runs of a daemon, one after another, and stays warm.

It reads commands as NDJSON on its stdin and answers on its stdout:

    {"type": "configure", "home", "file", "settings"}     first, and when they change
    {"type": "run", "job_id", ...}                        the fields of `RunOrder`
    {"type": "cancel", "job_id"}                          the run ends early, with its result
    {"type": "relate", "paths", "link_id"}                relate a few notes before their run

    {"type": "ready"}                                     warm-up is over
    {"type": "progress", "phase", "current", "total"}     at most ten per second and phase
    {"type": "complete", ...}                             the fields of `IndexResult`
    {"type": "error", "code", "message", "recoverable", "suggestion"}
    {"type": "meaning", "after_job", ...}                 the fields of `MeaningState`, at any time;
                                                          the job is the last one over by then
    {"type": "related", "paths", "written", "removed"}    the result of "relate", if it changed any

While idle it adds meaning vectors, and stops between two texts for a command.
End of stdin means that the parent has died or asks the worker to exit.
"""

import contextlib
import logging
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

from obsidian_rag.config import Config, Settings
from obsidian_rag.embed import SERVED
from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.index_run import carry_out
from obsidian_rag.engine.job import RunOrder
from obsidian_rag.engine.outcome import record_unexpected
from obsidian_rag.errors import ObsidianRagError, ProviderFailed
from obsidian_rag.index import (
    MeaningPass,
    MeaningState,
    Progress,
    Upkeep,
    paced,
    relate_now,
)
from obsidian_rag.process import DiscreetFormatter, ParentPipe, begin_process, give_back

_NICENESS = 10
# A run may hang on an embedder that does not answer; a later run continues its work.
_EXIT_TIMEOUT_S = 5.0
# How often to check whether a transformer has been installed.
_TRANSFORMER_CHECK_INTERVAL_S = 30.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Task:
    job_id: str
    order: RunOrder
    stop: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class _RelateTask:
    """Notes to relate ahead of their run."""

    paths: tuple[str, ...]
    link_id: str | None


def serve() -> None:
    """Execute the parent's commands until it closes the pipe."""
    begin_process()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    lines = logging.StreamHandler()
    lines.setFormatter(DiscreetFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[lines])
    parent = ParentPipe()
    commands = parent.messages()
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    # A note that is saved while the worker starts is left to its run.
    configuration = next((one for one in commands if one["type"] == "configure"), None)
    if configuration is not None:
        _Worker(_config(configuration), parent).work(commands)
    sys.stdout.flush()
    sys.stderr.flush()
    # A normal interpreter exit would wait for library threads.
    os._exit(0)


def _config(command: dict[str, object]) -> Config:
    """The parent's configuration, even if the file says something else by now."""
    settings = Settings.model_validate(command["settings"])
    return Config(Path(str(command["home"])), Path(str(command["file"])), settings)


class _Worker:
    """One engine for all runs."""

    def __init__(self, config: Config, parent: ParentPipe) -> None:
        self._parent = parent
        self._engine = Engine(config)
        self._tasks: queue.SimpleQueue[_Task | _RelateTask | Config | None] = queue.SimpleQueue()
        self._latest: _Task | None = None
        self._upkeep = Upkeep()
        self._last_job: str | None = None
        self._meaning = self._new_pass()

    def work(self, commands: Iterator[dict[str, object]]) -> None:
        """Load models and indexes, then do one task after another."""
        threading.Thread(target=self._listen, args=(commands,), daemon=True).start()
        self._warm_up()
        self._parent.say(type="ready")
        give_back()
        self._add_meaning()
        while True:
            try:
                task = self._next()
            except queue.Empty:
                self._tidy_up()
                continue
            if task is None:
                break
            if isinstance(task, Config):
                self._engine.close()
                self._engine = Engine(task)
                self._meaning = self._new_pass()
            elif isinstance(task, _RelateTask):
                self._relate(task)
                continue
            else:
                self._run(task)
                self._last_job = task.job_id
            give_back()
            self._upkeep.put_off()
            self._add_meaning()
        self._engine.close()

    def _next(self) -> _Task | _RelateTask | Config | None:
        """Wait for a task, adding meaning vectors meanwhile; queue.Empty when upkeep is due."""
        due = self._upkeep.due
        while True:
            if self._meaning.is_due():
                self._add_meaning()
            left = _TRANSFORMER_CHECK_INTERVAL_S if due is None else due - time.monotonic()
            try:
                return self._tasks.get(timeout=min(_TRANSFORMER_CHECK_INTERVAL_S, max(0.0, left)))
            except queue.Empty:
                if due is not None and time.monotonic() >= due:
                    raise

    def _add_meaning(self) -> None:
        """Add meaning vectors until all are done, a command arrives, or upkeep is due."""

        def must_stop() -> bool:
            due = self._upkeep.due
            return not self._tasks.empty() or (due is not None and due <= time.monotonic())

        if must_stop():
            return
        try:
            self._engine.follow_database()
            self._meaning.run(must_stop)
        except Exception as error:  # noqa: BLE001  (the outer edge: static vectors still work)
            _log.exception("adding meaning vectors failed")
            what = f"Adding meaning vectors failed ({type(error).__name__})."
            self._engine.parts.transformer.fail(ProviderFailed(what, "logs/worker.log says more."))
            self._meaning.report_end()
        give_back()

    def _new_pass(self) -> MeaningPass:
        def report(state: MeaningState) -> None:
            self._parent.say(type="meaning", after_job=self._last_job, **asdict(state))

        return MeaningPass(self._engine.parts, report)

    def _tidy_up(self) -> None:
        """Refresh the search indexes and reclaim disk space while idle."""
        try:
            self._upkeep.run(self._engine.parts)
        except Exception as error:  # noqa: BLE001  (the outer edge: the next run reports the cause)
            _log.warning("tidying up failed: %s", type(error).__name__)
        else:
            give_back()

    def _listen(self, commands: Iterator[dict[str, object]]) -> None:
        try:
            for command in commands:
                self._enqueue(command)
        finally:
            if self._latest is not None:
                self._latest.stop.set()
            self._tasks.put(None)
            end = threading.Timer(_EXIT_TIMEOUT_S, os._exit, (1,))
            end.daemon = True
            end.start()

    def _enqueue(self, command: dict[str, object]) -> None:
        if command["type"] == "run":
            self._latest = _Task(str(command["job_id"]), RunOrder.read(command))
            self._tasks.put(self._latest)
        elif command["type"] == "relate":
            paths, link_id = cast("list[str]", command["paths"]), command["link_id"]
            self._tasks.put(_RelateTask(tuple(paths), None if link_id is None else str(link_id)))
        elif command["type"] == "configure":
            self._tasks.put(_config(command))
        # A late cancel must not hit the next run.
        elif self._latest is not None and command.get("job_id") == self._latest.job_id:
            self._latest.stop.set()

    def _warm_up(self) -> None:
        try:
            self._load_first()
        except Exception:  # noqa: BLE001  (the outer edge: a cold worker still works)
            _log.exception("warming up failed")

    def _load_first(self) -> None:
        """Load what the first run would load; that run reports any error."""
        parts = self._engine.parts
        parts.reopen()
        with contextlib.suppress(ObsidianRagError):
            if parts.chunks.folder is not None:
                parts.chunks.count()
        with contextlib.suppress(ObsidianRagError):
            if parts.embedder.provider not in SERVED:
                parts.embedder.embed_query("ready")

    def _run(self, task: _Task) -> None:
        try:
            self._engine.parts.reopen()
            result = carry_out(
                self._engine, task.order, paced(self._report_progress), task.stop.is_set
            )
        except ObsidianRagError as error:
            self._parent.say(type="error", **error.body)
        except MemoryError:
            raise  # the parent starts a new worker
        except Exception as error:  # noqa: BLE001  (the outer edge: the worker lives on)
            _log.exception("a %s failed", task.order.mode)
            self._engine.close()
            failure = record_unexpected(self._engine.config, task.order.mode, error)
            self._parent.say(type="error", **failure.body)
        else:
            self._parent.say(type="complete", **result.fields)

    def _relate(self, few: _RelateTask) -> None:
        """Relate a few notes; their run retries whatever fails here."""
        try:
            self._engine.parts.reopen()
            vault = self._engine.vaults.one(few.link_id)
            done = relate_now(self._engine.parts, vault, few.paths)
        except ObsidianRagError as error:
            _log.warning("related notes are behind: %s", error.message)
        except Exception:  # noqa: BLE001  (the outer edge: their run does it)
            _log.exception("notes could not be related")
        else:
            if done is not None and any(done):
                written, removed = done
                self._parent.say(type="related", paths=few.paths, written=written, removed=removed)

    def _report_progress(self, progress: Progress) -> None:
        self._parent.say(type="progress", **asdict(progress))
