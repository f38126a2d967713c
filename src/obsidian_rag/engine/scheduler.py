"""Decides when to sync and when to probe: one thread, fed by the watcher, the jobs and the clock.

Threads: `changed`, `probe_soon` and bus events may come from any thread and only set state; all
decisions are made in `run`. A changeset is kept until a job has processed it, so a sync that could
not run (vault gone, embedder down, another process writing) stays pending and is never lost. A
primary vault that was never indexed is left alone: the first index is the user's decision, and so
is a link. Each vault has its own lane, so no vault waits for another's failure or import.
"""

import logging
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.events import Event, EventKind
from obsidian_rag.engine.health import probe
from obsidian_rag.engine.job import Job, JobStatus, precedence_of
from obsidian_rag.engine.live import Live
from obsidian_rag.errors import EmbeddingMismatch, IndexNotFound, NotFound, ObsidianRagError
from obsidian_rag.health import VaultFacts, VaultPlace, is_worth_a_try, see_vaults
from obsidian_rag.process import give_back

_MAX_RETRY_DELAY_S = 60.0
# Checking the vault's folder costs one system call; a vault that was away must be searchable again
# within seconds of its return.
_VAULT_CHECK_INTERVAL_S = 5.0
_AWAY_CHECK_INTERVAL_S = 1.0
# Frequent callers must not make us probe as often.
_MIN_PROBE_INTERVAL_S = 2.0
_MAX_PATHS_PUBLISHED = 100
_WATCHER_START_TIMEOUT_S = 10.0
_WATCHER_POLL_INTERVAL_S = 0.1
_CHANGE_COUNTS = ("added", "changed", "renamed", "removed")
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Lane:
    """The pending changes of one vault, the job processing them, and when to retry."""

    # Changes not yet indexed: nothing, some paths, or (None) possibly anything.
    pending: frozenset[str] | None = frozenset()
    job: Job | None = None
    failures: int = 0
    not_before: float = 0.0

    def add(self, paths: frozenset[str] | None) -> None:
        """Add these paths, or everything."""
        self.pending = None if paths is None or self.pending is None else self.pending | paths

    def take(self) -> frozenset[str] | None:
        """Return all pending paths and clear them."""
        taken, self.pending = self.pending, frozenset()
        return taken

    @property
    def is_waiting(self) -> bool:
        """Whether changes are pending that no job is processing."""
        return self.pending != frozenset() and self.job is None


class Scheduler:
    """Decides when a vault is synced: after changes settle, and at least every interval."""

    def __init__(self, engine: Engine, live: Live) -> None:
        self._engine = engine
        self._live = live
        self._lock = threading.Lock()
        self._woken = threading.Event()
        # By link id; None is the primary vault, as in a job.
        self._lanes: dict[str | None, _Lane] = {None: _Lane()}
        self._ended: list[str] = []
        self._probe_at = 0.0
        self._probed_at = 0.0
        self._vault_at = 0.0
        self._reconcile_at = 0.0
        self._began = time.monotonic()

    def changed(self, paths: frozenset[str] | None, link_id: str | None = None) -> None:
        """Note paths that have settled in a vault, or (None) that the watcher lost track."""
        with self._lock:
            self._lanes.setdefault(link_id, _Lane()).add(paths)
        self._woken.set()

    def links_changed(self, linked: Collection[str]) -> None:
        """Keep a lane for each active linked vault; a new one gets a full sync."""
        with self._lock:
            for link_id in set(self._lanes) - {None, *linked}:
                del self._lanes[link_id]
            for link_id in set(linked) - set(self._lanes):
                self._lanes[link_id] = _Lane(pending=None)
            self._vault_at = 0.0
        self._woken.set()

    def probe_soon(self) -> None:
        """Probe the health soon: something may have changed."""
        with self._lock:
            self._probe_at = min(self._probe_at, self._probed_at + _MIN_PROBE_INTERVAL_S)
        self._woken.set()

    def settings_changed(self) -> None:
        """Probe at once, and use the new intervals from now on."""
        reconcile_s = self._engine.config.settings.watcher.reconcile_s
        with self._lock:
            self._probe_at = 0.0
            self._reconcile_at = min(self._reconcile_at, time.monotonic() + reconcile_s)
        self._woken.set()

    def wake(self) -> None:
        """Make `run` check its stop event."""
        self._woken.set()

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set and `wake` was called."""
        end = self._live.bus.subscribe(self._on_event)
        self._live.health.is_followed = True
        try:
            while not stop.is_set():
                self._woken.clear()
                try:
                    self._tick(time.monotonic())
                except Exception:  # noqa: BLE001  (a background loop: the next round may do better)
                    _log.exception("the scheduler stumbled")
                    for lane in self._lanes.values():
                        lane.not_before = time.monotonic() + _MAX_RETRY_DELAY_S
                self._woken.wait(self._seconds_until_due(time.monotonic()))
        finally:
            self._live.health.is_followed = False
            end()

    def _on_event(self, event: Event) -> None:
        if event.kind is EventKind.JOB and event.data["status"] != JobStatus.STARTED:
            with self._lock:
                self._ended.append(str(event.data["id"]))
            self._woken.set()

    def _tick(self, now: float) -> None:
        settings = self._engine.config.settings
        self._process_ended_jobs()
        if now >= self._probe_at:
            self._probe()
            with self._lock:
                self._probed_at = now
                self._probe_at = now + settings.server.probe_s
        elif now >= self._vault_at:
            self._check_vaults()
        has_index = self._live.health.facts.store is None
        if now >= self._reconcile_at and self._is_watcher_ready(now):
            self._reconcile_at = now + settings.watcher.reconcile_s
            for link_id in list(self._lanes) if has_index else ():
                self.changed(None, link_id)
        if not has_index and self._live.jobs.active is None:
            with self._lock:
                self._lanes[None].take()  # the run that builds the index covers everything
        for link_id, lane in list(self._lanes.items()):
            is_due = lane.is_waiting and now >= lane.not_before
            if is_due and (has_index or link_id) and self._can_sync(link_id):
                self._start(link_id, lane)

    def _seconds_until_due(self, now: float) -> float:
        """Seconds until the next thing is due."""
        due = [
            self._probe_at,
            self._vault_at,
            max(self._reconcile_at, now + _WATCHER_POLL_INTERVAL_S),
        ]
        with self._lock:
            lanes = [lane for lane in self._lanes.values() if lane.is_waiting]
        due += [max(lane.not_before, now + 1.0) for lane in lanes]
        return max(0.0, min(due) - now)

    def _is_watcher_ready(self, now: float) -> bool:
        """Wait for the watcher: the first reconcile must find what changed before it started."""
        if self._live.is_watching() or not self._engine.config.settings.watcher.enabled:
            return True
        return now - self._began > _WATCHER_START_TIMEOUT_S

    def _probe(self) -> None:
        before = self._places()
        probe(self._engine)
        give_back()
        self._compare_places(before)

    def _check_vaults(self) -> None:
        before = self._places()
        primary, linked = see_vaults(self._engine.vaults, self._engine.database)
        self._live.health.note(vault=primary, linked=linked)
        self._compare_places(before)

    def _places(self) -> dict[str | None, VaultFacts]:
        facts = self._live.health.facts
        return {None: facts.vault, **{one.link_id: one for one in facts.linked}}

    def _compare_places(self, before: Mapping[str | None, VaultFacts]) -> None:
        """Sync a vault that is back in full; check more often while one is away."""
        after = self._places()
        for link_id, seen in after.items():
            was = before.get(link_id)
            is_back = was is not None and was.place is not VaultPlace.THERE
            if seen.place is VaultPlace.THERE and is_back and link_id in self._lanes:
                self._lanes[link_id].failures, self._lanes[link_id].not_before = 0, 0.0
                self.changed(None, link_id)
        are_there = all(
            one.place is VaultPlace.THERE for one in after.values() if not one.is_paused
        )
        self._vault_at = time.monotonic() + (
            _VAULT_CHECK_INTERVAL_S if are_there else _AWAY_CHECK_INTERVAL_S
        )

    def _can_sync(self, link_id: str | None) -> bool:
        self._check_vaults()
        facts = self._live.health.facts
        if facts.store is not None and not (link_id and isinstance(facts.store, IndexNotFound)):
            return False
        if facts.embedder is not None:
            return False
        # Changed settings are for the user to resolve; an index of an older version is rebuilt.
        if isinstance(facts.settings, EmbeddingMismatch):
            return False
        seen = self._places().get(link_id)
        if seen is None:
            return False
        if seen.place is VaultPlace.AWAY and seen.counted is not None:
            return is_worth_a_try(self._engine.vaults.one(link_id), self._engine.database)
        return seen.place is VaultPlace.THERE

    def _start(self, link_id: str | None, lane: _Lane) -> None:
        with self._lock:
            paths = lane.take()
        try:
            first = precedence_of(paths, self._places()[link_id] if link_id else None)
            whole = None if paths is not None else self._engine.vaults.primary.link_id or None
            lane.job = self._live.jobs.sync(paths, link_id or whole, first)
        except ObsidianRagError:  # the daemon is stopping
            self.changed(paths, link_id)
            lane.not_before = time.monotonic() + _MAX_RETRY_DELAY_S

    def _process_ended_jobs(self) -> None:
        """Process finished jobs; any of them may have changed the health."""
        with self._lock:
            ended, self._ended = self._ended, []
            lanes = list(self._lanes.items())
        for job_id in ended:
            self._probe_at = 0.0
            ours = [(link_id, one) for link_id, one in lanes if one.job and one.job.id == job_id]
            for _, lane in ours:
                lane.job = None
            try:
                job = self._live.jobs.wait(job_id, 0)
            except NotFound:  # no longer remembered: too many jobs have ended since
                for link_id, _ in ours:
                    self.changed(None, link_id)
                continue
            self._publish_changes(job)
            for link_id, lane in ours:
                self._schedule_retry(job, link_id, lane)

    def _schedule_retry(self, job: Job, link_id: str | None, lane: _Lane) -> None:
        """Schedule the retry of our own job; one that the user cancelled stays cancelled."""
        is_done = job.status is JobStatus.COMPLETED and not _has_passing_errors(job)
        if is_done or job.status is JobStatus.CANCELLED:
            lane.failures = 0
            return
        # A missing vault is checked every second anyway; a retry costs no more than that.
        is_away = job.error is not None and job.error.code == "VAULT_AWAY"
        lane.failures += not is_away
        pause = min(_MAX_RETRY_DELAY_S, 2.0 ** min(lane.failures - 1, 6))
        lane.not_before = time.monotonic() + (_AWAY_CHECK_INTERVAL_S if is_away else pause)
        # A failed job did not queue its paths; a completed one left the rest in the queue.
        paths = job.order.paths if job.status is JobStatus.FAILED else None
        self.changed(frozenset(paths) if paths is not None else None, link_id)

    def _publish_changes(self, job: Job) -> None:
        """Publish what a job changed in the index."""
        counts = {name: (job.result or {}).get(name, 0) for name in _CHANGE_COUNTS}
        if any(counts.values()):
            paths = list(job.order.paths or ())[:_MAX_PATHS_PUBLISHED]
            self._live.bus.publish(
                EventKind.CHANGES,
                {
                    "job_id": job.id,
                    "mode": job.order.mode.value,
                    "link_id": job.order.link_id,
                    "paths": paths,
                }
                | counts,
            )


def _has_passing_errors(job: Job) -> bool:
    """Whether notes failed for a reason that may pass."""
    errors = (job.result or {}).get("errors")
    return isinstance(errors, list) and any(error.get("is_passing") for error in errors)
