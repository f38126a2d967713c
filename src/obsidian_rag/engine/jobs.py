"""Index runs as jobs: one at a time, in the worker process, retried once when it dies.

Any thread may ask, wait and cancel. One thread owns the worker: it takes the jobs in their order,
and alone begins, repeats and ends what runs. Events are published without the lock held, so a
listener may ask us anything; `wait` returns after the last event of its job.
"""

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace

from obsidian_rag.config import Config
from obsidian_rag.engine.events import Bus, EventKind
from obsidian_rag.engine.job import Job, JobStatus, cancelled, failed, job_fields
from obsidian_rag.engine.worker_link import WorkerLink
from obsidian_rag.errors import Busy, IndexerFailed, NotFound, error_from
from obsidian_rag.index import (
    MeaningState,
    Mode,
    Phase,
    Progress,
    RunOrder,
    meaning_fields,
    record_failure,
    settings_for_runs,
)
from obsidian_rag.process import ChildGone
from obsidian_rag.store import now

_KEPT = 20
_MOST_ATTEMPTS = 2
# For a run that was told to end to come to a point where it can, and for the worker to go.
_TIDY_S = 5.0
# Between two lives of a worker that ends before it has added one meaning vector.
_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 60.0
_NEXT_STEP = "Run `obsidian-rag sync`: it goes on where it stopped. logs/worker.log may say why."
_log = logging.getLogger(__name__)


class Jobs:
    """The jobs of one process, and the worker that does them."""

    def __init__(self, config: Config, bus: Bus) -> None:
        self._config = config
        self._bus = bus
        # What the worker last said of meaning vectors.
        self.meaning: MeaningState | None = None
        self._link = WorkerLink(config)
        self._link.on_news, self._link.on_gone = self._hear_meaning, self._hear_gone
        self._changed = threading.Condition()
        self._waiting: deque[Job] = deque()
        self._running: Job | None = None
        self._over: dict[str, Job] = {}
        self._untold: set[str] = set()
        # News of the pass after a job whose end is not told yet.
        self._early_news: list[dict[str, object]] = []
        self._is_sent = False
        self._is_cancelling = False
        self._is_outdated = False
        self._is_overtaken = False
        # The worker has ended while it added meaning vectors, so often without adding any.
        self._is_gone = False
        self._fruitless_ends = 0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread and, in it, the worker."""
        with self._changed:
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(target=self._work, name="jobs", daemon=True)
                self._thread.start()

    def stop(self, wait_s: float) -> None:
        """Let the running job finish, or end tidily when `wait_s` is over; then end the worker."""
        with self._changed:
            self._stopping.set()
            dropped = [self._drop(job) for job in tuple(self._waiting)]
            self._changed.notify_all()
        for job in dropped:
            self._tell_end(job)
        if self._thread is None:
            return
        if not self._is_idle_within(wait_s):
            self._cancel_running()
            if not self._is_idle_within(_TIDY_S):
                self._link.kill()
        self._link.close(_TIDY_S)
        self._thread.join()

    def use(self, config: Config) -> None:
        """Work with these settings; a run that has others is ended and begins anew with them."""
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
        """Somebody asks for a run: the requested job already under way, or a new one.

        `mode` is a `Mode` or the name of one. A run that takes missing notes for gone is never
        another's job. With `link_id` it is about that vault alone, and an import of it that the
        daemon has begun by itself is as good.

        Raises:
            Busy: everything is about to stop.
        """
        with self._changed:
            self._refuse_when_stopping()
            running = self._requested(link_id) or self._import_of(link_id)
            if running is not None and (running.order.accepts_removals or not accepts_removals):
                return running
            order = RunOrder(Mode(mode), None, link_id, accepts_removals)
            job = self._add(Job(order, is_requested=True))
        self._overtake()
        return job

    def sync(self, paths: Iterable[str] | None, link_id: str | None = None) -> Job:
        """The watcher asks: a sync of these files, or of all; not to be called while one waits.

        The files are those of the vault with this link id, or of the primary one.

        Raises:
            Busy: everything is about to stop.
        """
        with self._changed:
            self._refuse_when_stopping()
            chosen = tuple(sorted(paths)) if paths is not None else None
            job = self._add(Job(RunOrder(Mode.SYNC, chosen, link_id), is_requested=False))
        self._overtake()
        return job

    def end_link(self, link_id: str) -> None:
        """End what is done for a linked vault, and wait until it has."""
        with self._changed:
            jobs = [job for job in self._jobs_under_way() if job.order.link_id == link_id]
        for job in jobs:
            with contextlib.suppress(NotFound):  # it is over
                self.cancel(job.id)
                self.wait(job.id, _TIDY_S)

    def for_link(self, link_id: str) -> Job | None:
        """The job under way for a linked vault."""
        with self._changed:
            return next(
                (job for job in self._jobs_under_way() if job.order.link_id == link_id), None
            )

    def cancel(self, job_id: str | None = None) -> Job:
        """Ask a job to end early; without an id, the active one.

        A job that waits is over at once, one that runs when it has come to a point where it can.

        Raises:
            NotFound: no such job waits or runs.
        """
        with self._changed:
            wanted = self.active if job_id is None else self._under_way(job_id)
            if wanted is None:
                raise NotFound(
                    f"No job {job_id} to cancel." if job_id else "No job is running.",
                    "`obsidian-rag status` shows the active one.",
                )
            is_waiting = wanted in self._waiting
            if is_waiting:
                wanted = self._drop(wanted)
        if is_waiting:
            self._tell_end(wanted)
            return wanted
        self._cancel_running(wanted.id)
        return self._find(wanted.id)

    @property
    def active(self) -> Job | None:
        """The job under way; one that somebody requested before one of the watcher's."""
        with self._changed:
            return self._requested() or self._running

    @property
    def last(self) -> Job | None:
        """The last requested job that is over, or else the last of any."""
        with self._changed:
            over = list(self._over.values())
        return next((job for job in reversed(over) if job.is_requested), over[-1] if over else None)

    @property
    def latest(self) -> Job | None:
        """The last job that is over, whoever asked for it."""
        with self._changed:
            return next(reversed(self._over.values()), None)

    def wait(self, job_id: str, timeout_s: float | None = None) -> Job:
        """Block until a job is over or time is up; the job as it is then.

        Raises:
            NotFound: there is no such job, or none any more.
        """

        def is_over() -> bool:
            return job_id not in self._untold and self._under_way(job_id) is None

        with self._changed:
            self._changed.wait_for(is_over, timeout_s)
            return self._find(job_id)

    # What follows until `_work` is called with the lock held, except for the telling.

    def _refuse_when_stopping(self) -> None:
        if self._stopping.is_set():
            raise Busy("The indexer is about to stop.", "Try again in a moment.")

    def _add(self, job: Job) -> Job:
        """Behind the others; what is about the primary vault before imports of linked ones."""
        at = len(self._waiting)
        while job.order.link_id is None and at and self._waiting[at - 1].is_import:
            at -= 1
        self._waiting.insert(at, job)
        self._changed.notify_all()
        return job

    def _jobs_under_way(self) -> list[Job]:
        return [*([self._running] if self._running else []), *self._waiting]

    def _requested(self, link_id: str | None = None) -> Job | None:
        jobs = (job for job in self._jobs_under_way() if job.is_requested)
        return next((job for job in jobs if link_id in (None, job.order.link_id)), None)

    def _import_of(self, link_id: str | None) -> Job | None:
        jobs = (job for job in self._jobs_under_way() if job.is_import)
        return next((job for job in jobs if job.order.link_id == link_id), None)

    def _under_way(self, job_id: str) -> Job | None:
        return next((job for job in self._jobs_under_way() if job.id == job_id), None)

    def _find(self, job_id: str) -> Job:
        with self._changed:
            job = self._under_way(job_id) or self._over.get(job_id)
        if job is None:
            raise NotFound(f"No job {job_id}.", "Only the last jobs are remembered.")
        return job

    def _drop(self, job: Job) -> Job:
        self._waiting.remove(job)
        return self._keep(cancelled(job))

    def _keep(self, job: Job) -> Job:
        """Remember a job that is over; the last requested one for as long as there is no other."""
        self._over[job.id] = job
        self._untold.add(job.id)
        if len(self._over) > _KEPT:
            requested = [one.id for one in self._over.values() if one.is_requested]
            del self._over[next(one for one in self._over if one not in requested[-1:])]
        return job

    def _tell_end(self, job: Job) -> None:
        self._bus.publish(EventKind.JOB, job_fields(job))
        while early := self._early_news_after(job):
            for fields in early:
                self._bus.publish(EventKind.PROGRESS, fields)

    def _early_news_after(self, job: Job) -> list[dict[str, object]]:
        """What came too early to be told; without any, the end of the job counts as told."""
        with self._changed:
            early = [fields for fields in self._early_news if fields["after_job"] == job.id]
            self._early_news = [fields for fields in self._early_news if fields not in early]
            if not early:
                self._untold.discard(job.id)
                self._changed.notify_all()
            return early

    def _is_idle_within(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._running is None, seconds)

    def _cancel_running(self, job_id: str | None = None) -> None:
        with self._changed:
            running = self._running
            if running is None or job_id not in (None, running.id):
                return
            self._is_cancelling = True
            if not self._is_sent:
                return  # `_converse` does it when there is something to cancel
        self._send_cancel(running)

    def _overtake(self) -> None:
        """Let an import give way to what waits before it; it is put back and goes on after."""
        with self._changed:
            running = self._running
            if running is None or not running.is_import or self._is_overtaken:
                return
            if not self._waiting or self._waiting[0].is_import or self._is_cancelling:
                return
            self._is_overtaken = True
            if not self._is_sent:
                return  # `_converse` does it when there is something to cancel
        self._send_cancel(running)

    def _send_cancel(self, job: Job) -> None:
        with contextlib.suppress(ChildGone):
            self._link.send({"type": "cancel", "job_id": job.id})

    # What follows is the owner's thread.

    def _work(self) -> None:
        try:
            self._has_worker()
            while self._is_wanted():
                has_worker = self._has_worker()
                job = self._take()
                if job is not None:
                    done = self._carry_out(job) if has_worker else self._not_started(job)
                    if not self._is_put_back(done):
                        self._finish(done)
                elif has_worker:
                    with contextlib.suppress(ChildGone):
                        self._link.configure()
        finally:
            self._link.close(_TIDY_S)
            self._link.reap()

    def _has_worker(self) -> bool:
        try:
            with self._changed:
                self._is_gone = False
            self._link.ensure(self._stopping)
        except ChildGone as gone:
            _log.warning("the worker does not start: %s", gone)
            return False
        return True

    def _is_wanted(self) -> bool:
        """Wait until there is something to do; false when it is time to stop."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._waiting or self._is_news_for_worker() or self._stopping.is_set()
            )
            is_restart = self._is_gone and not self._waiting
            pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**self._fruitless_ends)
            if is_restart:
                self._changed.wait_for(lambda: self._waiting or self._stopping.is_set(), pause)
            return not self._stopping.is_set()

    def _is_news_for_worker(self) -> bool:
        """Other settings, for one that lives, or a new life, for one that had work left."""
        return self._is_gone or (self._link.pid is not None and not self._link.is_configured)

    def _hear_meaning(self, line: dict[str, object]) -> None:
        """Pass it on, never before the end of the job that it follows."""
        before, state = self.meaning, MeaningState.read(line)
        fields = {**meaning_fields(state), "after_job": line.get("after_job")}
        job_id = str(fields["after_job"])
        with self._changed:
            self.meaning = state
            if before is not None and state.done > before.done:
                self._fruitless_ends = 0
            if job_id in self._untold or self._under_way(job_id) is not None:
                self._early_news.append(fields)
                return
        self._bus.publish(EventKind.PROGRESS, fields)

    def _hear_gone(self) -> None:
        with self._changed:
            # One that had nothing to do is started anew by the next job.
            if self.meaning is not None and not self.meaning.is_over:
                self._is_gone = True
                self._fruitless_ends += 1
                self._changed.notify_all()

    def _take(self) -> Job | None:
        with self._changed:
            if self._waiting:  # it may have been cancelled meanwhile
                self._running = self._waiting.popleft()
                return self._running
            return None

    def _carry_out(self, job: Job) -> Job:
        gone = ChildGone()
        try:
            while job.attempt < _MOST_ATTEMPTS and (job.attempt == 0 or self._has_worker()):
                job = self._begin(job)
                try:
                    done = self._converse(job)
                    if not self._is_to_be_repeated(done):
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
        return self._failed(job, f"The indexer stopped unexpectedly{code}.")

    def _is_to_be_repeated(self, job: Job) -> bool:
        """Whether a run ended early only because the settings changed under it."""
        with self._changed:
            is_ours = self._is_outdated and not self._is_cancelling
            return is_ours and job.status is JobStatus.CANCELLED and not self._stopping.is_set()

    def _is_put_back(self, job: Job) -> bool:
        """Whether an import that gave way waits again, behind what it gave way to."""
        with self._changed:
            is_ours = self._is_overtaken and not (self._is_cancelling or self._stopping.is_set())
            self._is_overtaken = False
            if not is_ours or job.status is not JobStatus.CANCELLED:
                return False
            self._running = None
            self._is_sent = self._is_outdated = False
            waiting = replace(
                job,
                order=replace(job.order, is_resumed=True),
                status=JobStatus.STARTED,
                finished_at=None,
                attempt=0,
            )
            self._add(waiting)
            return True

    def _begin(self, job: Job) -> Job:
        with self._changed:
            job = self._running = replace(
                job, attempt=job.attempt + 1, progress=None, began=time.monotonic(), stored=None
            )
            self._is_sent = self._is_outdated = False
        self._bus.publish(EventKind.JOB, job_fields(job))
        return job

    def _converse(self, job: Job) -> Job:
        """Hand a job over and follow it to its end."""
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
                    job = self._move_on(job, line)
                case "complete":
                    status = JobStatus.CANCELLED if line["is_cancelled"] else JobStatus.COMPLETED
                    return replace(job, status=status, finished_at=now(), result=line)
                case "error":
                    told = (str(line[name]) for name in ("code", "message", "suggestion"))
                    return failed(job, error_from(*told))

    def _move_on(self, job: Job, line: Mapping[str, object]) -> Job:
        progress = Progress.read(line)
        with self._changed:
            stored = progress if progress.phase is Phase.STORING else job.stored
            job = self._running = replace(job, progress=progress, stored=stored)
        about = {"job_id": job.id, "mode": job.order.mode.value, "link_id": job.order.link_id}
        fields = {**about, **progress.fields}
        self._bus.publish(EventKind.PROGRESS, fields)
        return job

    def _not_started(self, job: Job) -> Job:
        if self._is_cancelling or self._stopping.is_set():
            return cancelled(job)
        return self._failed(job, "The indexer could not be started.")

    def _failed(self, job: Job, message: str) -> Job:
        """A failure that the worker had no chance to leave word of."""
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
            self._keep(job)
            self._changed.notify_all()
        self._tell_end(job)
