"""Index runs as jobs: one at a time, in the worker process, retried once when it dies.

Any thread may request, wait for and cancel jobs. One thread owns the worker: only it takes jobs
from the queue, starts, retries and ends them. Events are published without the lock held, so a
listener may call any method here; `wait` returns after the last event of its job.
"""

import contextlib
import logging
import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, replace

from obsidian_rag.config import Config
from obsidian_rag.engine.events import Bus, EventKind
from obsidian_rag.engine.job import (
    Job,
    JobStatus,
    Precedence,
    RunOrder,
    cancelled,
    failed,
    job_fields,
    settings_for_runs,
)
from obsidian_rag.engine.outcome import record_failure
from obsidian_rag.errors import Busy, IndexerFailed, NotFound, error_from
from obsidian_rag.index import (
    MAX_NOTES_AT_ONCE,
    MeaningState,
    Mode,
    Progress,
    meaning_fields,
)
from obsidian_rag.process import ChildGone, ChildProcess
from obsidian_rag.store import now

_PROGRAM = "from obsidian_rag.engine.worker import serve; serve()"


class WorkerLink(ChildProcess):
    """Starts, commands and stops the worker; some of its lines are unsolicited news."""

    def __init__(self, config: Config) -> None:
        super().__init__(
            _PROGRAM,
            lambda: self.config.logs / "worker.log",
            lambda message: message.get("type") in {"meaning", "related"},
        )
        self.config = config
        self._sent: Config | None = None

    @property
    def is_configured(self) -> bool:
        """Whether the worker has the current settings."""
        return self.config is self._sent

    def greet(self) -> None:
        """Send a new worker its settings."""
        self._sent = None
        self.configure()

    def configure(self) -> None:
        """Send the current settings unless the worker has them; never during a run.

        Raises:
            ChildGone: the worker is not running.
        """
        config = self.config
        if config is not self._sent:
            paths = {"home": str(config.home), "file": str(config.file)}
            settings = config.settings.model_dump(mode="json", by_alias=True)
            self.send({"type": "configure", **paths, "settings": settings})
            self._sent = config


_MAX_FINISHED_JOBS = 20
_MAX_ATTEMPTS = 2
# How long a cancelled run may take to stop, and the worker to exit.
_SHUTDOWN_GRACE_S = 5.0
# Delay before restarting a worker that exits before it has added a meaning vector.
_MIN_RESTART_DELAY_S = 0.25
_MAX_RESTART_DELAY_S = 60.0
_NEXT_STEP = "Run `obsidian-rag sync`: it goes on where it stopped. logs/worker.log may say why."
_log = logging.getLogger(__name__)


class Jobs:
    """The jobs of one process, and the worker that runs them."""

    def __init__(self, config: Config, bus: Bus) -> None:
        self._config = config
        self._bus = bus
        # The last meaning-vector state the worker reported.
        self.meaning: MeaningState | None = None
        self._link = WorkerLink(config)
        self._link.on_news, self._link.on_gone = self._on_news, self._on_worker_exit
        self._changed = threading.Condition()
        self._waiting: deque[Job] = deque()
        self._running: Job | None = None
        self._over: dict[str, Job] = {}
        self._unpublished: set[str] = set()
        # Progress of the meaning pass that arrived before the end of its job was published.
        self._early_progress: list[dict[str, object]] = []
        self._is_sent = False
        self._is_cancelling = False
        self._is_outdated = False
        self._is_overtaken = False
        # The worker died while it added meaning vectors; and how often in a row without adding any.
        self._needs_restart = False
        self._exits_without_progress = 0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread and, in it, the worker."""
        with self._changed:
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(target=self._run_jobs, name="jobs", daemon=True)
                self._thread.start()

    def stop(self, wait_s: float) -> None:
        """Let the running job finish, or cancel it after `wait_s`; then stop the worker."""
        with self._changed:
            self._stopping.set()
            dropped = [self._drop(job) for job in tuple(self._waiting)]
            self._changed.notify_all()
        for job in dropped:
            self._publish_end(job)
        if self._thread is None:
            return
        if not self._wait_until_idle(wait_s):
            self._cancel_running()
            if not self._wait_until_idle(_SHUTDOWN_GRACE_S):
                self._link.kill()
        self._link.close(_SHUTDOWN_GRACE_S)
        self._thread.join()

    def use(self, config: Config) -> None:
        """Use these settings; a run that started with others is restarted."""
        with self._changed:
            before, self._config = self._config, config
            self._link.config = config
            self._changed.notify_all()
            if self._running is None or settings_for_runs(before) == settings_for_runs(config):
                return
            self._is_outdated = True
            running = self._running if self._is_sent else None
        if running is not None:
            self._send_cancel(running)

    def request(
        self, mode: str, *, accepts_removals: bool = False, link_id: str | None = None
    ) -> Job:
        """Return the requested job already under way, or queue a new one.

        `mode` is a `Mode` or the name of one. A run that removes missing notes never joins a job
        that does not. With `link_id` it covers that vault only, and a full sync of it that the
        daemon started itself will do.

        Raises:
            Busy: the engine is shutting down.
        """
        with self._changed:
            self._refuse_when_stopping()
            running = self._find_requested(link_id) or self._find_full_sync(link_id)
            if running is not None and (running.order.accepts_removals or not accepts_removals):
                return running
            order = RunOrder(Mode(mode), None, link_id, accepts_removals)
            first = Precedence.EDIT if link_id is None else Precedence.LOOK
            job = self._add(Job(order, is_requested=True, precedence=first))
        self._overtake()
        return job

    def sync(
        self,
        paths: Iterable[str] | None,
        link_id: str | None = None,
        precedence: Precedence = Precedence.EDIT,
    ) -> Job:
        """Queue a sync of these files, or of all, for the watcher; not while one is waiting.

        The files belong to the vault with this link id, or to the primary one.

        Raises:
            Busy: the engine is shutting down.
        """
        with self._changed:
            self._refuse_when_stopping()
            order = RunOrder(Mode.SYNC, None if paths is None else tuple(sorted(paths)), link_id)
            job = self._add(Job(order, is_requested=False, precedence=precedence))
        self._overtake()
        return job

    def relate(self, paths: Collection[str] | None, link_id: str | None = None) -> None:
        """Relate a few changed notes ahead of their run; larger sets are left to the run."""
        if paths is not None and len(paths) <= MAX_NOTES_AT_ONCE:
            with contextlib.suppress(ChildGone):
                self._link.send({"type": "relate", "paths": sorted(paths), "link_id": link_id})

    def end_link(self, link_id: str) -> None:
        """Cancel the jobs of a linked vault, and wait until they are over."""
        with self._changed:
            jobs = [job for job in self._jobs_under_way() if job.order.link_id == link_id]
        for job in jobs:
            with contextlib.suppress(NotFound):  # it is over
                self.cancel(job.id)
                self.wait(job.id, _SHUTDOWN_GRACE_S)

    def for_link(self, link_id: str) -> Job | None:
        """The job under way for a linked vault."""
        with self._changed:
            return next((j for j in self._jobs_under_way() if j.order.link_id == link_id), None)

    def cancel(self, job_id: str | None = None) -> Job:
        """Ask a job to end early; without an id, the active one.

        A waiting job ends at once, a running one at its next safe point.

        Raises:
            NotFound: no such job is waiting or running.
        """
        with self._changed:
            wanted = self.active if job_id is None else self._find_under_way(job_id)
            if wanted is None:
                raise NotFound(
                    f"No job {job_id} to cancel." if job_id else "No job is running.",
                    "`obsidian-rag status` shows the active one.",
                )
            is_waiting = wanted in self._waiting
            if is_waiting:
                wanted = self._drop(wanted)
        if is_waiting:
            self._publish_end(wanted)
            return wanted
        self._cancel_running(wanted.id)
        return self._find(wanted.id)

    @property
    def active(self) -> Job | None:
        """The job under way; requested jobs come before the watcher's."""
        with self._changed:
            return self._find_requested() or self._running

    @property
    def last(self) -> Job | None:
        """The last requested job that is over, else the last of any kind."""
        with self._changed:
            over = list(self._over.values())
        return next((job for job in reversed(over) if job.is_requested), over[-1] if over else None)

    @property
    def latest(self) -> Job | None:
        """The last job that is over, requested or not."""
        with self._changed:
            return next(reversed(self._over.values()), None)

    def wait(self, job_id: str, timeout_s: float | None = None) -> Job:
        """Block until a job is over or the timeout expires; returns its state then.

        Raises:
            NotFound: the job is unknown or no longer remembered.
        """

        def is_over() -> bool:
            return job_id not in self._unpublished and self._find_under_way(job_id) is None

        with self._changed:
            self._changed.wait_for(is_over, timeout_s)
            return self._find(job_id)

    # Down to `_run_jobs`, methods run with `self._changed` held or take it themselves; they publish
    # and send without it.

    def _refuse_when_stopping(self) -> None:
        if self._stopping.is_set():
            raise Busy("The indexer is about to stop.", "Try again in a moment.")

    def _add(self, job: Job) -> Job:
        """Queue the job by precedence, behind those of the same one."""
        at = bisect_right(self._waiting, job.precedence, key=lambda one: one.precedence)
        self._waiting.insert(at, job)
        self._changed.notify_all()
        return job

    def _jobs_under_way(self) -> list[Job]:
        return [*([self._running] if self._running else []), *self._waiting]

    def _find_requested(self, link_id: str | None = None) -> Job | None:
        jobs = (job for job in self._jobs_under_way() if job.is_requested)
        return next((job for job in jobs if link_id in (None, job.order.link_id)), None)

    def _find_full_sync(self, link_id: str | None) -> Job | None:
        jobs = (j for j in self._jobs_under_way() if link_id and j.order.paths is None)
        return next((j for j in jobs if j.order.link_id == link_id), None)

    def _find_under_way(self, job_id: str) -> Job | None:
        return next((job for job in self._jobs_under_way() if job.id == job_id), None)

    def _find(self, job_id: str) -> Job:
        with self._changed:
            job = self._find_under_way(job_id) or self._over.get(job_id)
        if job is None:
            raise NotFound(f"No job {job_id}.", "Only the last jobs are remembered.")
        return job

    def _drop(self, job: Job) -> Job:
        self._waiting.remove(job)
        return self._remember(cancelled(job))

    def _remember(self, job: Job) -> Job:
        """Remember a finished job; the last requested one is never the one dropped."""
        self._over[job.id] = job
        self._unpublished.add(job.id)
        if len(self._over) > _MAX_FINISHED_JOBS:
            requested = [one.id for one in self._over.values() if one.is_requested]
            del self._over[next(one for one in self._over if one not in requested[-1:])]
        return job

    def _publish_end(self, job: Job) -> None:
        self._bus.publish(EventKind.JOB, job_fields(job))
        while early := self._take_early_progress(job):
            for fields in early:
                self._bus.publish(EventKind.PROGRESS, fields)

    def _take_early_progress(self, job: Job) -> list[dict[str, object]]:
        """Take the progress held back for this job; if there is none, mark its end as published."""
        with self._changed:
            early = [fields for fields in self._early_progress if fields["after_job"] == job.id]
            self._early_progress = [
                fields for fields in self._early_progress if fields not in early
            ]
            if not early:
                self._unpublished.discard(job.id)
                self._changed.notify_all()
            return early

    def _wait_until_idle(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._running is None, seconds)

    def _cancel_running(self, job_id: str | None = None) -> None:
        with self._changed:
            running = self._running
            if running is None or job_id not in (None, running.id):
                return
            self._is_cancelling = True
            if not self._is_sent:
                return  # `_follow_run` does it when there is something to cancel
        self._send_cancel(running)

    def _overtake(self) -> None:
        """Cancel the running job if one with precedence waits; it is requeued and resumes later."""
        with self._changed:
            running = self._running
            if running is None or self._is_overtaken or self._is_cancelling or not self._waiting:
                return
            if self._waiting[0].precedence >= running.precedence:
                return
            self._is_overtaken = True
            if not self._is_sent:
                return  # `_follow_run` does it when there is something to cancel
        self._send_cancel(running)

    def _send_cancel(self, job: Job) -> None:
        with contextlib.suppress(ChildGone):
            self._link.send({"type": "cancel", "job_id": job.id})

    # From here on: the thread that owns the worker.

    def _run_jobs(self) -> None:
        try:
            self._start_worker()
            while self._wait_for_work():
                has_worker = self._start_worker()
                job = self._take_next()
                if job is not None:
                    done = self._run_with_retry(job) if has_worker else self._end_unstarted(job)
                    if not self._requeue_if_overtaken(done):
                        self._finish(done)
                elif has_worker:
                    with contextlib.suppress(ChildGone):
                        self._link.configure()
        finally:
            self._link.close(_SHUTDOWN_GRACE_S)
            self._link.reap()

    def _start_worker(self) -> bool:
        try:
            with self._changed:
                self._needs_restart = False
            self._link.ensure(self._stopping)
        except ChildGone as gone:
            _log.warning("the worker does not start: %s", gone)
            return False
        return True

    def _wait_for_work(self) -> bool:
        """Block until there is work; false when stopping."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._waiting or self._worker_needs_update() or self._stopping.is_set()
            )
            is_restart = self._needs_restart and not self._waiting
            pause = min(
                _MAX_RESTART_DELAY_S, _MIN_RESTART_DELAY_S * 2**self._exits_without_progress
            )
            if is_restart:
                self._changed.wait_for(lambda: self._waiting or self._stopping.is_set(), pause)
            return not self._stopping.is_set()

    def _worker_needs_update(self) -> bool:
        """Whether a live worker needs new settings, or a dead one with work left a restart."""
        return self._needs_restart or (self._link.pid is not None and not self._link.is_configured)

    def _on_news(self, line: dict[str, object]) -> None:
        if line.pop("type", None) == "related":
            self._bus.publish(EventKind.RELATIONS, line)
        else:
            self._on_meaning(line)

    def _on_meaning(self, line: dict[str, object]) -> None:
        """Publish the state, but never before the end of the job it follows."""
        before, state = self.meaning, MeaningState.read(line)
        fields = {**meaning_fields(state), "after_job": line.get("after_job")}
        job_id = str(fields["after_job"])
        with self._changed:
            self.meaning = state
            if before is not None and state.done > before.done:
                self._exits_without_progress = 0
            if job_id in self._unpublished or self._find_under_way(job_id) is not None:
                self._early_progress.append(fields)
                return
        self._bus.publish(EventKind.PROGRESS, fields)

    def _on_worker_exit(self) -> None:
        with self._changed:
            # An idle worker is restarted by the next job.
            if self.meaning is not None and not self.meaning.is_over:
                self._needs_restart = True
                self._exits_without_progress += 1
                self._changed.notify_all()

    def _take_next(self) -> Job | None:
        with self._changed:
            if self._waiting:  # empty if the job was cancelled meanwhile
                self._running = self._waiting.popleft()
                return self._running
            return None

    def _run_with_retry(self, job: Job) -> Job:
        gone = ChildGone()
        try:
            while job.attempt < _MAX_ATTEMPTS and (job.attempt == 0 or self._start_worker()):
                job = self._begin_attempt(job)
                try:
                    done = self._follow_run(job)
                    if not self._must_repeat(done):
                        return done
                    job = replace(job, attempt=job.attempt - 1)
                except ChildGone as end:
                    gone = end
                    _log.warning("the worker ended during a %s: %s", job.order.mode, end)
                if self._is_cancelling or self._stopping.is_set():
                    return cancelled(job)
        except Exception:  # noqa: BLE001  (the outer edge of the job loop: the next job may work)
            _log.exception("a %s cannot be followed", job.order.mode)
        code = "" if gone.exit_code is None else f" (exit code {gone.exit_code})"
        return self._record_failure(job, f"The indexer stopped unexpectedly{code}.")

    def _must_repeat(self, job: Job) -> bool:
        """Whether a run ended early only because the settings changed."""
        with self._changed:
            is_ours = self._is_outdated and not self._is_cancelling
            return is_ours and job.status is JobStatus.CANCELLED and not self._stopping.is_set()

    def _requeue_if_overtaken(self, job: Job) -> bool:
        """Put an overtaken job back, behind the one with precedence; false if not overtaken."""
        with self._changed:
            is_ours = self._is_overtaken and not (self._is_cancelling or self._stopping.is_set())
            self._is_overtaken = False
            if not is_ours or job.status is not JobStatus.CANCELLED:
                return False
            self._running = None
            self._is_sent = self._is_outdated = False
            waiting = replace(
                job.interrupted(),
                order=replace(job.order, is_resumed=True),
                status=JobStatus.STARTED,
                finished_at=None,
                attempt=0,
            )
            self._add(waiting)
            return True

    def _begin_attempt(self, job: Job) -> Job:
        with self._changed:
            if job.order.is_resumed:
                job = job.interrupted()
            else:
                job = replace(job, progress=None, stored=None)
            job = replace(job, attempt=job.attempt + 1, began=time.monotonic())
            self._running = job
            self._is_sent = self._is_outdated = False
        self._bus.publish(EventKind.JOB, job_fields(job))
        return job

    def _follow_run(self, job: Job) -> Job:
        """Send a job to the worker and read its messages until it ends."""
        self._link.trim_log()
        with contextlib.suppress(ChildGone):  # `receive` knows the exit code
            self._link.configure()
            self._link.send({"type": "run", "job_id": job.id, **asdict(job.order)})
        with self._changed:
            self._is_sent = True
            is_cancelling = self._is_cancelling or self._is_outdated or self._is_overtaken
        if is_cancelling:
            self._send_cancel(job)
        while True:
            line = self._link.receive()
            match line.pop("type", None):
                case "progress":
                    job = self._update_progress(job, line)
                case "complete":
                    status = JobStatus.CANCELLED if line["is_cancelled"] else JobStatus.COMPLETED
                    return replace(job, status=status, finished_at=now(), result=line)
                case "error":
                    parts = (str(line[name]) for name in ("code", "message", "suggestion"))
                    return failed(job, error_from(*parts))

    def _update_progress(self, job: Job, line: Mapping[str, object]) -> Job:
        with self._changed:
            job = self._running = job.with_progress(Progress.read(line))
        about = {"job_id": job.id, "mode": job.order.mode.value, "link_id": job.order.link_id}
        progress = job.progress.fields if job.progress else {}
        self._bus.publish(EventKind.PROGRESS, {**about, **progress})
        return job

    def _end_unstarted(self, job: Job) -> Job:
        if self._is_cancelling or self._stopping.is_set():
            return cancelled(job)
        return self._record_failure(job, "The indexer could not be started.")

    def _record_failure(self, job: Job, message: str) -> Job:
        """Record a failure that the worker could not record itself."""
        error = IndexerFailed(message, _NEXT_STEP)
        try:
            record_failure(self._config, job.order.mode, error)
        except OSError as trouble:
            _log.warning("the result cannot be written: %s", trouble)
        return failed(job, error)

    def _finish(self, job: Job) -> None:
        with self._changed:
            self._running = None
            self._is_sent = self._is_cancelling = self._is_outdated = False
            self._remember(job)
            self._changed.notify_all()
        self._publish_end(job)
