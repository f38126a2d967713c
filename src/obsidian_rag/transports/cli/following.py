"""An index run as a command follows it: in the daemon when one runs, in this process otherwise."""

import contextlib
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from obsidian_rag.errors import IndexerFailed, ObsidianRagError, error_from
from obsidian_rag.transports.cli.output import answered, open_engine
from obsidian_rag.transports.running import DaemonGone, RunningDaemon

if TYPE_CHECKING:
    from obsidian_rag.engine import Progress
    from obsidian_rag.tools import Envelope


@dataclass(frozen=True, slots=True)
class Step:
    """So many files of so many in one phase."""

    phase: str
    current: int
    total: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: its fields, as they are printed, and the envelope around them."""

    fields: dict[str, Any]
    envelope: "Envelope"

    @property
    def exit_code(self) -> int:
        """0 done, 1 some notes failed, 130 interrupted."""
        if self.fields["is_cancelled"]:
            return 130
        return 1 if self.fields["errors"] else 0


OnStep = Callable[[Step], None]


def run_here(mode: str, on_step: OnStep, stop: threading.Event) -> Outcome:
    """Index in this process."""
    from obsidian_rag import tools
    from obsidian_rag.engine import Mode, paced, result_fields, run_index

    def listen(progress: "Progress") -> None:
        on_step(Step(progress.phase.value, progress.current, progress.total))

    with contextlib.closing(open_engine()) as engine:
        result = run_index(engine, Mode(mode), paced(listen), stop.is_set)
        return Outcome(result_fields(result), tools.index_outcome(engine, result))


def run_there(daemon: RunningDaemon, mode: str, on_step: OnStep, stop: threading.Event) -> Outcome:
    """Ask the daemon for the job, and follow it to its end.

    Raises:
        DaemonGone: it went before the job was started.
        ObsidianRagError: the job failed, or the daemon went while it ran.
    """
    while True:
        with contextlib.closing(daemon.events()) as events:
            next(events)  # from here on nothing is missed
            asked = answered(daemon.call("obsidian_rag_index", {"mode": mode}))
            job: Any = asked["data"]
            # A sync is part of every other run; anything else has to wait for its turn.
            is_wanted = mode in ("sync", job["mode"])
            if not is_wanted:
                print(f"Waiting for a running {job['mode']} …", file=sys.stderr)
            ended = _followed(daemon, events, job["job_id"], on_step if is_wanted else None, stop)
        if is_wanted or stop.is_set():
            return Outcome(ended, {**asked, "data": ended})


def _followed(
    daemon: RunningDaemon, events: Any, job_id: str, on_step: OnStep | None, stop: threading.Event
) -> dict[str, Any]:
    over = threading.Event()
    threading.Thread(target=_cancel, args=(daemon, job_id, stop, over), daemon=True).start()
    try:
        for kind, data in events:
            if kind == "progress" and data["job_id"] == job_id and on_step is not None:
                on_step(Step(data["phase"], data["current"], data["total"]))
            elif kind == "job" and data["id"] == job_id and data["status"] != "started":
                return _ended(data)
    except DaemonGone:
        pass  # the same as an end of the events
    finally:
        over.set()
    raise IndexerFailed(
        "The daemon stopped before the run was over.", "Run `obsidian-rag sync` to go on."
    )


def _ended(job: dict[str, Any]) -> dict[str, Any]:
    if job["result"] is not None:
        return dict(job["result"])
    if job["error"] is None:
        raise IndexerFailed("The run was cancelled before it began.", "Run it again.")
    error = job["error"]
    failure: ObsidianRagError = error_from(error["code"], error["message"], error["suggestion"])
    raise failure


def _cancel(
    daemon: RunningDaemon, job_id: str, stop: threading.Event, over: threading.Event
) -> None:
    """Pass an interrupt on to the daemon."""
    while not over.is_set():
        if stop.wait(0.1):
            with contextlib.suppress(DaemonGone, ObsidianRagError):
                daemon.call("obsidian_rag_cancel", {"job_id": job_id})
            return
