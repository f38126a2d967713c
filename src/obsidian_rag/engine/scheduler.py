"""Decides when to sync and when to look: one thread, fed by the watcher, the jobs and the clock.

Threads: `changed`, `look_soon` and the bus may call from anywhere and only leave a message; all
decisions are made in `run`. A changeset is kept until a job has taken it in, so a sync that could
not run (vault gone, embedder down, another process writing) is owed, never forgotten. A vault
that was never indexed is left alone: the first index is the user's decision.
"""

import logging
import threading
import time
from dataclasses import dataclass

from obsidian_rag.engine.allocator import give_back
from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.events import Event, EventKind
from obsidian_rag.engine.health import Subject, VaultFacts, VaultPlace
from obsidian_rag.engine.jobs import Job, JobStatus
from obsidian_rag.engine.live import Live
from obsidian_rag.engine.probes import is_worth_a_try, look, see_vault
from obsidian_rag.errors import NotFound, ObsidianRagError

_LONGEST_PAUSE_S = 60.0
# A look at the vault's folder costs one question to the file system; a vault that was away shall
# be searchable again within seconds of its return.
_VAULT_EVERY_S = 5.0
_AWAY_EVERY_S = 1.0
# Somebody who asks again and again must not make us probe as often.
_LOOKS_APART_S = 2.0
_PATHS_TOLD = 100
_WATCHER_PATIENCE_S = 10.0
_LOOK_FOR_WATCHER_S = 0.1
_CHANGED = ("added", "changed", "renamed", "removed")
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Owed:
    """What the index does not know yet: nothing, some paths, or possibly anything."""

    is_everything: bool = False
    paths: frozenset[str] = frozenset()

    def add(self, paths: frozenset[str] | None) -> None:
        if paths is None:
            self.is_everything = True
        else:
            self.paths |= paths

    def __bool__(self) -> bool:
        return self.is_everything or bool(self.paths)

    def take(self) -> frozenset[str] | None:
        """All of it, as a job wants it; nothing is owed afterwards."""
        taken = None if self.is_everything else self.paths
        self.is_everything, self.paths = False, frozenset()
        return taken


class Scheduler:
    """The daemon's sense of time."""

    def __init__(self, engine: Engine, live: Live) -> None:
        self._engine = engine
        self._live = live
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._owed = _Owed()
        self._job: Job | None = None
        self._ended: list[str] = []
        self._failures = 0
        self._not_before = 0.0
        self._look_at = 0.0
        self._looked_at = 0.0
        self._vault_at = 0.0
        self._reconcile_at = 0.0
        self._began = time.monotonic()

    def changed(self, paths: frozenset[str] | None) -> None:
        """The watcher saw these paths settle, or lost track (None)."""
        with self._lock:
            self._owed.add(paths)
        self._woken.set()

    def look_soon(self) -> None:
        """Something may have changed for the better or the worse."""
        with self._lock:
            self._look_at = min(self._look_at, self._looked_at + _LOOKS_APART_S)
        self._woken.set()

    def settings_changed(self) -> None:
        """Look at once, and reckon with the new pauses from now on."""
        reconcile_s = self._engine.config.settings.watcher.reconcile_s
        with self._lock:
            self._look_at = 0.0
            self._reconcile_at = min(self._reconcile_at, time.monotonic() + reconcile_s)
        self._woken.set()

    def wake(self) -> None:
        """Make `run` notice that it shall stop."""
        self._woken.set()

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set and `wake` was called."""
        end = self._live.bus.subscribe(self._hear)
        self._live.health.is_followed = True
        try:
            while not stop.is_set():
                self._woken.clear()
                try:
                    self._tick(time.monotonic())
                except Exception:  # noqa: BLE001  (a background loop: the next round may do better)
                    _log.exception("the scheduler stumbled")
                    self._not_before = time.monotonic() + _LONGEST_PAUSE_S
                self._woken.wait(self._pause(time.monotonic()))
        finally:
            self._live.health.is_followed = False
            end()

    def _hear(self, event: Event) -> None:
        if event.kind is EventKind.JOB and event.data["status"] != JobStatus.STARTED:
            with self._lock:
                self._ended.append(str(event.data["id"]))
            self._woken.set()

    def _tick(self, now: float) -> None:
        settings = self._engine.config.settings
        self._settle()
        if now >= self._look_at:
            self._look()
            with self._lock:
                self._looked_at = now
                self._look_at = now + settings.server.probe_s
        elif now >= self._vault_at:
            self._look_at_vault()
        has_index = self._live.health.trouble(Subject.STORE) is None
        if now >= self._reconcile_at and self._is_awake(now):
            self._reconcile_at = now + settings.watcher.reconcile_s
            if has_index:
                self.changed(None)
        if not has_index and self._live.jobs.active is None:
            with self._lock:
                self._owed.take()  # the run that makes the index will look at everything
        elif self._owed and self._job is None and now >= self._not_before and self._can_sync():
            self._start()

    def _pause(self, now: float) -> float:
        """How long nothing is to be done, if nobody calls."""
        due = [
            self._look_at,
            self._vault_at,
            max(self._reconcile_at, now + _LOOK_FOR_WATCHER_S),
        ]
        if self._owed and self._job is None:
            due.append(max(self._not_before, now + 1.0))
        return max(0.0, min(due) - now)

    def _is_awake(self, now: float) -> bool:
        """Not before the watcher: what changes until it sees is for the first reconcile to find."""
        if self._live.is_watching() or not self._engine.config.settings.watcher.enabled:
            return True
        return now - self._began > _WATCHER_PATIENCE_S

    def _look(self) -> None:
        before = self._live.health.facts.vault
        after = look(self._engine).vault
        give_back()
        self._compare(before, after)

    def _look_at_vault(self) -> None:
        health = self._live.health
        before, after = health.facts.vault, see_vault(self._engine)
        health.take({"vault": after})
        self._compare(before, after)

    def _compare(self, before: VaultFacts, after: VaultFacts) -> None:
        """A vault that is back may hold anything; one that is away may be back any moment."""
        is_there = after.place is VaultPlace.THERE
        every_s = _VAULT_EVERY_S if is_there else _AWAY_EVERY_S
        self._vault_at = time.monotonic() + every_s
        if is_there and before.place is not VaultPlace.THERE:
            self._failures, self._not_before = 0, 0.0
            self.changed(None)

    def _can_sync(self) -> bool:
        self._look_at_vault()
        health = self._live.health
        if health.trouble(Subject.STORE, Subject.EMBEDDER, Subject.SETTINGS) is not None:
            return False
        vault = health.facts.vault
        if vault.place is VaultPlace.AWAY and vault.counted is not None:
            return is_worth_a_try(self._engine)
        return vault.place is VaultPlace.THERE

    def _start(self) -> None:
        with self._lock:
            paths = self._owed.take()
        try:
            self._job = self._live.jobs.sync(paths)
        except ObsidianRagError:  # the daemon is stopping
            self.changed(paths)
            self._not_before = time.monotonic() + _LONGEST_PAUSE_S

    def _settle(self) -> None:
        """Take in how jobs ended; whatever ended may have changed the health."""
        with self._lock:
            ended, self._ended = self._ended, []
        for job_id in ended:
            self._look_at = 0.0
            is_ours = self._job is not None and job_id == self._job.id
            if is_ours:
                self._job = None
            try:
                job = self._live.jobs.wait(job_id, 0)
            except NotFound:  # so many have ended since that nobody remembers how
                if is_ours:
                    self.changed(None)
                continue
            self._tell(job)
            if is_ours:
                self._judge(job)

    def _judge(self, job: Job) -> None:
        """What our own job leaves to be done; one that the user cancelled stays cancelled."""
        is_done = job.status is JobStatus.COMPLETED and not _is_owing(job)
        if is_done or job.status is JobStatus.CANCELLED:
            self._failures = 0
            return
        # A vault that is away is looked for every second; trying again costs no more than that.
        is_away = job.error is not None and job.error.code == "VAULT_AWAY"
        self._failures += not is_away
        pause = min(_LONGEST_PAUSE_S, 2.0 ** min(self._failures - 1, 6))
        self._not_before = time.monotonic() + (_AWAY_EVERY_S if is_away else pause)
        # A failed job kept its paths to itself; a completed one left the rest in the queue.
        self.changed(job.paths if job.status is JobStatus.FAILED else None)

    def _tell(self, job: Job) -> None:
        """The index has changed: somebody may want to show it."""
        counts = {name: (job.result or {}).get(name, 0) for name in _CHANGED}
        if any(counts.values()):
            paths = sorted(job.paths or ())[:_PATHS_TOLD]
            self._live.bus.publish(
                EventKind.CHANGES,
                {"job_id": job.id, "mode": job.mode.value, "paths": paths} | counts,
            )


def _is_owing(job: Job) -> bool:
    """Whether notes failed for a reason that may be gone next time."""
    errors = (job.result or {}).get("errors")
    return isinstance(errors, list) and any(error.get("is_passing") for error in errors)
