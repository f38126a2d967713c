"""Runs the index for a command: in the daemon if one runs, else in this process."""

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from obsidian_rag.errors import IndexerFailed, ObsidianRagError, error_from
from obsidian_rag.transports.cli.backend import check_answer, open_engine
from obsidian_rag.transports.cli.streams import say
from obsidian_rag.transports.daemon_client import DaemonGone, RunningDaemon
from obsidian_rag.transports.lazy import engine, tools

if TYPE_CHECKING:
    from obsidian_rag.tools import Envelope


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The result of a run: its fields, and the envelope around them."""

    fields: dict[str, Any]
    envelope: "Envelope"
    # The command waited for meaning vectors, and some are missing.
    lacks_meaning: bool = False
    is_in_daemon: bool = False

    @property
    def exit_code(self) -> int:
        """0 done, 1 some notes failed, 130 interrupted."""
        if self.fields["is_cancelled"]:
            return 130
        return 1 if self.fields["errors"] or self.lacks_meaning else 0


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run to start: its mode, whether missing notes are gone, whether to wait for meaning.

    With `link_id`, the name or link id of a vault, only that vault is indexed. If it `is_new`, the
    daemon may import it before it is asked to.
    """

    mode: str
    accept_removals: bool = False
    waits_for_meaning: bool = False
    link_id: str | None = None
    is_new: bool = False


# Called with the phase, the files done, and their total.
OnStep = Callable[[str, int, int], None]


def run_here(wanted: RunRequest, on_step: OnStep, stop: threading.Event) -> RunOutcome:
    """Index in this process."""
    with open_engine() as opened:
        fields, meaning = engine.index_in_foreground(
            opened,
            wanted.mode,
            on_step,
            stop.is_set,
            accepts_removals=wanted.accept_removals,
            waits_for_meaning=wanted.waits_for_meaning,
            vault=wanted.link_id,
        )
        return _outcome(fields, tools.index_outcome(opened, fields), meaning, wanted, stop)


def _outcome(
    fields: dict[str, Any],
    envelope: "Envelope",
    meaning: Mapping[str, Any] | None,
    wanted: RunRequest,
    stop: threading.Event,
) -> RunOutcome:
    """The result of a run, with the state of the meaning vectors."""
    fields = {**fields, "meaning": meaning}
    if not wanted.waits_for_meaning:
        return RunOutcome(fields, {**envelope, "data": fields})
    fields["is_cancelled"] = fields["is_cancelled"] or stop.is_set()
    lacks = meaning is None or meaning["done"] < meaning["total"]
    return RunOutcome(fields, {**envelope, "data": fields}, lacks)


def run_there(
    daemon: RunningDaemon, wanted: RunRequest, on_step: OnStep, stop: threading.Event
) -> RunOutcome:
    """Start the job in the daemon, and follow it to its end.

    Raises:
        DaemonGone: the daemon stopped before the job started.
        ObsidianRagError: the job failed, or the daemon stopped during it.
    """
    while True:
        # The import of a new vault may be over already; the daemon remembers that event.
        with contextlib.closing(daemon.events(0 if wanted.is_new else None)) as events:
            next(events)  # from here on no event is missed
            asked = _request_job(daemon, wanted)
            job: Any = asked["data"]
            # Every run includes a sync; other modes have to wait for their turn.
            is_wanted = wanted.mode in ("sync", job["mode"])
            if not is_wanted:
                say(f"Waiting for a running {job['mode']} …")
            new_link = wanted.link_id if wanted.is_new else None
            follow = on_step if is_wanted else None
            ended = _follow_job(daemon, events, job["job_id"], follow, stop, new_link)
            is_waiting = is_wanted and wanted.waits_for_meaning
            if is_waiting and _status_after(daemon, asked)[1]:
                _follow_meaning(events, on_step, stop)
        if is_wanted or stop.is_set():
            envelope, meaning = _status_after(daemon, asked)
            return replace(_outcome(ended, envelope, meaning, wanted, stop), is_in_daemon=True)


def _request_job(daemon: RunningDaemon, wanted: RunRequest) -> "Envelope":
    if wanted.link_id is not None:
        arguments: dict[str, object] = {"link_id": wanted.link_id}
        return check_answer(daemon.call("obsidian_sync_now", arguments, is_owner=True))
    accepting = {"accept_removals": True} if wanted.accept_removals else {}
    arguments = {"mode": wanted.mode, **accepting}
    return check_answer(daemon.call("obsidian_rag_index", arguments, is_owner=True))


def _status_after(
    daemon: RunningDaemon, asked: "Envelope"
) -> "tuple[Envelope, Mapping[str, Any] | None]":
    """The health after the run, and the state of meaning vectors; without the daemon, `asked`."""
    with contextlib.suppress(DaemonGone, ObsidianRagError):
        status = check_answer(daemon.call("obsidian_rag_status", {}, is_owner=True))
        data: Any = status["data"]
        return status, data["meaning"] if data else None
    return asked, None


def _follow_meaning(events: Any, on_step: OnStep, stop: threading.Event) -> None:
    """Wait until the daemon has added all meaning vectors, or cannot continue.

    After each job the daemon reports on a pass, even if there was nothing to do.
    """
    with contextlib.suppress(DaemonGone):
        for kind, data in events:
            if kind == "progress" and data["phase"] == "meaning":
                on_step(data["phase"], data["current"], data["total"])
                if data["is_over"]:
                    return
            if stop.is_set():
                return


def _follow_job(
    daemon: RunningDaemon,
    events: Any,
    job_id: str,
    on_step: OnStep | None,
    stop: threading.Event,
    new_link: str | None,
) -> dict[str, Any]:
    """Wait for the result of a job, or of the first one for a new vault."""

    def is_ours(job: Any) -> bool:
        return job["id"] == job_id or (new_link is not None and job["link_id"] == new_link)

    over = threading.Event()
    threading.Thread(target=_cancel, args=(daemon, job_id, stop, over), daemon=True).start()
    try:
        for kind, data in events:
            if kind == "progress" and data["job_id"] == job_id and on_step is not None:
                on_step(data["phase"], data["current"], data["total"])
            elif kind == "job" and data["status"] != "started" and is_ours(data):
                return _job_result(data)
    except DaemonGone:
        pass  # the same as the end of the events
    finally:
        over.set()
    raise IndexerFailed(
        "The daemon stopped before the run was over.", "Run `obsidian-rag sync` to continue."
    )


def _job_result(job: dict[str, Any]) -> dict[str, Any]:
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
    """Cancel the job in the daemon after an interrupt."""
    while not over.is_set():
        if stop.wait(0.1):
            with contextlib.suppress(DaemonGone, ObsidianRagError):
                daemon.call("obsidian_rag_cancel", {"job_id": job_id})
            return
