"""The worker: the process that does the index runs of a daemon, one after another, and stays warm.

It reads commands as NDJSON on its stdin and answers on its stdout:

    {"type": "configure", "home", "file", "settings"}     first, and when they change
    {"type": "run", "job_id", ...}                        the fields of `RunOrder`
    {"type": "cancel", "job_id"}                          the run ends early, with its result

    {"type": "ready"}                                     what can be loaded beforehand is loaded
    {"type": "progress", "phase", "current", "total"}     at most ten per second and phase
    {"type": "complete", ...}                             the fields of `IndexResult`
    {"type": "error", "code", "message", "recoverable", "suggestion"}
    {"type": "meaning", "after_job", ...}                 the fields of `MeaningState`, at any time;
                                                          the job is the last that was over then

While there is nothing to do it adds meaning vectors, and stops between two texts for a command.
The end of its stdin means that the parent has gone or wants it to go.
"""

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

from obsidian_rag.config import Config, Settings
from obsidian_rag.engine.engine import Engine
from obsidian_rag.errors import ObsidianRagError, ProviderFailed
from obsidian_rag.index import (
    MeaningPass,
    MeaningState,
    Progress,
    RunOrder,
    Upkeep,
    carry_out,
    paced,
    record_unexpected,
    reopen,
    warm_up,
)
from obsidian_rag.process import DiscreetFormatter, ParentPipe, begin_process, give_back

_NICENESS = 10
# A run may hang on an embedder that does not answer; whatever it was doing, a later run goes on.
_FAREWELL_S = 5.0
# A transformer may have been installed meanwhile.
_LOOK_EVERY_S = 30.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Task:
    job_id: str
    order: RunOrder
    stop: threading.Event = field(default_factory=threading.Event)


def serve() -> None:
    """Do what the parent says until it says no more."""
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
    configuration = next(commands, None)
    if configuration is not None:
        _Worker(_config(configuration), parent).work(commands)
    sys.stdout.flush()
    sys.stderr.flush()
    # Not by way of the interpreter's end, which waits for the threads of libraries.
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
        self._tasks: queue.SimpleQueue[_Task | Config | None] = queue.SimpleQueue()
        self._latest: _Task | None = None
        self._upkeep = Upkeep()
        self._last_job: str | None = None
        self._meaning = self._new_pass()

    def work(self, commands: Iterator[dict[str, object]]) -> None:
        """Load what can be loaded, then do one task after another."""
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
            else:
                self._carry_out(task)
                self._last_job = task.job_id
            give_back()
            self._upkeep.put_off()
            self._add_meaning()
        self._engine.close()

    def _next(self) -> _Task | Config | None:
        """Wait for a task, adding meaning vectors meanwhile.

        Raises:
            queue.Empty: it is time for something else.
        """
        due = self._upkeep.due
        while True:
            if self._meaning.is_due():
                self._add_meaning()
            left = _LOOK_EVERY_S if due is None else due - time.monotonic()
            try:
                return self._tasks.get(timeout=min(_LOOK_EVERY_S, max(0.0, left)))
            except queue.Empty:
                if due is not None and time.monotonic() >= due:
                    raise

    def _add_meaning(self) -> None:
        """Add meaning vectors until all are there, a command comes, or something else is due."""

        def is_called() -> bool:
            due = self._upkeep.due
            return not self._tasks.empty() or (due is not None and due <= time.monotonic())

        if is_called():
            return
        try:
            self._engine.follow_database()
            self._meaning.run(is_called)
        except Exception as error:  # noqa: BLE001  (the outer edge: static vectors do without)
            _log.exception("adding meaning vectors failed")
            what = f"Adding meaning vectors failed ({type(error).__name__})."
            self._engine.transformer.fail(ProviderFailed(what, "logs/worker.log says more."))
            self._meaning.tell_end()
        give_back()

    def _new_pass(self) -> MeaningPass:
        def tell(state: MeaningState) -> None:
            self._parent.say(type="meaning", after_job=self._last_job, **asdict(state))

        return MeaningPass(self._engine, tell)

    def _tidy_up(self) -> None:
        """Use the quiet to refresh the search indexes and to give disk space back."""
        try:
            self._upkeep.run(self._engine)
        except Exception as error:  # noqa: BLE001  (the outer edge: the next run tells what is wrong)
            _log.warning("tidying up failed: %s", type(error).__name__)
        else:
            give_back()

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
            self._latest = _Task(str(command["job_id"]), RunOrder.read(command))
            self._tasks.put(self._latest)
        elif command["type"] == "configure":
            self._tasks.put(_config(command))
        # A cancel that comes late must not hit the next run.
        elif self._latest is not None and command.get("job_id") == self._latest.job_id:
            self._latest.stop.set()

    def _warm_up(self) -> None:
        try:
            warm_up(self._engine)
        except Exception:  # noqa: BLE001  (the outer edge: a worker that is cold is still a worker)
            _log.exception("warming up failed")

    def _carry_out(self, task: _Task) -> None:
        try:
            reopen(self._engine)
            result = carry_out(self._engine, task.order, paced(self._tell), task.stop.is_set)
        except ObsidianRagError as error:
            self._parent.say(type="error", **error.body)
        except MemoryError:
            raise  # the parent starts a new worker, with a clean slate
        except Exception as error:  # noqa: BLE001  (the outer edge: the worker lives on)
            _log.exception("a %s failed", task.order.mode)
            self._engine.close()
            failure = record_unexpected(self._engine.config, task.order.mode, error)
            self._parent.say(type="error", **failure.body)
        else:
            self._parent.say(type="complete", **result.fields)

    def _tell(self, progress: Progress) -> None:
        self._parent.say(type="progress", **asdict(progress))
