"""Decides when to sync and when to look: one thread, fed by the watcher, the jobs and the clock.

Threads: `changed`, `look_soon` and the bus may call from anywhere and only leave a message; all
decisions are made in `run`. A changeset is kept until a job has taken it in, so a sync that could
not run (vault gone, embedder down, another process writing) is owed, never forgotten. A primary
vault that was never indexed is left alone: the first index is the user's decision, and so is a
link. Each vault has a lane of its own, so that none waits for another's trouble or import.
"""

import logging
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.events import Event, EventKind
from obsidian_rag.engine.health import look
from obsidian_rag.engine.job import Job, JobStatus
from obsidian_rag.engine.live import Live
from obsidian_rag.errors import EmbeddingMismatch, IndexNotFound, NotFound, ObsidianRagError
from obsidian_rag.index import VaultFacts, VaultPlace, is_worth_a_try, see_vaults
from obsidian_rag.process import give_back

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
class _Lane:
    """What is owed to one vault, the job that is at it, and when to try again."""

    # What the index does not know yet: nothing, some paths, or (None) possibly anything.
    owed: frozenset[str] | None = frozenset()
    job: Job | None = None
    failures: int = 0
    not_before: float = 0.0

    def owe(self, paths: frozenset[str] | None) -> None:
        """Add these paths, or everything."""
        self.owed = None if paths is None or self.owed is None else self.owed | paths

    def take(self) -> frozenset[str] | None:
        """All that is owed, as a job wants it; nothing is owed afterwards."""
        taken, self.owed = self.owed, frozenset()
        return taken

    @property
    def is_waiting(self) -> bool:
        """Whether something is owed that no job is at."""
        return self.owed != frozenset() and self.job is None


class Scheduler:
    """The daemon's sense of time."""

    def __init__(self, engine: Engine, live: Live) -> None:
        self._engine = engine
        self._live = live
        self._lock = threading.Lock()
        self._woken = threading.Event()
        # By link id; that of the primary vault is None, as in a job.
        self._lanes: dict[str | None, _Lane] = {None: _Lane()}
        self._ended: list[str] = []
        self._look_at = 0.0
        self._looked_at = 0.0
        self._vault_at = 0.0
        self._reconcile_at = 0.0
        self._began = time.monotonic()

    def changed(self, paths: frozenset[str] | None, link_id: str | None = None) -> None:
        """The watcher of a vault saw these paths settle, or lost track (None)."""
        with self._lock:
            self._lanes.setdefault(link_id, _Lane()).owe(paths)
        self._woken.set()

    def links_changed(self, linked: Collection[str]) -> None:
        """These vaults are linked and not paused: new ones are owed a look, others nothing."""
        with self._lock:
            for link_id in set(self._lanes) - {None, *linked}:
                del self._lanes[link_id]
            for link_id in set(linked) - set(self._lanes):
                self._lanes[link_id] = _Lane(owed=None)
            self._vault_at = 0.0
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
                    for lane in self._lanes.values():
                        lane.not_before = time.monotonic() + _LONGEST_PAUSE_S
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
            self._look_at_vaults()
        has_index = self._live.health.facts.store is None
        if now >= self._reconcile_at and self._is_awake(now):
            self._reconcile_at = now + settings.watcher.reconcile_s
            for link_id in list(self._lanes) if has_index else ():
                self.changed(None, link_id)
        if not has_index and self._live.jobs.active is None:
            with self._lock:
                self._lanes[None].take()  # the run that makes the index looks at everything
        for link_id, lane in list(self._lanes.items()):
            is_due = lane.is_waiting and now >= lane.not_before
            if is_due and (has_index or link_id) and self._can_sync(link_id):
                self._start(link_id, lane)

    def _pause(self, now: float) -> float:
        """How long nothing is to be done, if nobody calls."""
        due = [
            self._look_at,
            self._vault_at,
            max(self._reconcile_at, now + _LOOK_FOR_WATCHER_S),
        ]
        with self._lock:
            lanes = [lane for lane in self._lanes.values() if lane.is_waiting]
        due += [max(lane.not_before, now + 1.0) for lane in lanes]
        return max(0.0, min(due) - now)

    def _is_awake(self, now: float) -> bool:
        """Not before the watcher: what changes until it sees is for the first reconcile to find."""
        if self._live.is_watching() or not self._engine.config.settings.watcher.enabled:
            return True
        return now - self._began > _WATCHER_PATIENCE_S

    def _look(self) -> None:
        before = self._places()
        look(self._engine)
        give_back()
        self._compare(before)

    def _look_at_vaults(self) -> None:
        before = self._places()
        self._live.health.note(**see_vaults(self._engine))
        self._compare(before)

    def _places(self) -> dict[str | None, VaultFacts]:
        facts = self._live.health.facts
        return {None: facts.vault, **{one.link_id: one for one in facts.linked}}

    def _compare(self, before: Mapping[str | None, VaultFacts]) -> None:
        """A vault that is back may hold anything; one that is away may be back any moment."""
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
        self._vault_at = time.monotonic() + (_VAULT_EVERY_S if are_there else _AWAY_EVERY_S)

    def _can_sync(self, link_id: str | None) -> bool:
        self._look_at_vaults()
        facts = self._live.health.facts
        if facts.store is not None and not (link_id and isinstance(facts.store, IndexNotFound)):
            return False
        if facts.embedder is not None:
            return False
        # Other settings are for the user to judge; an index of an older program is built anew.
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
            lane.job = self._live.jobs.sync(paths, link_id or self._whole(paths))
        except ObsidianRagError:  # the daemon is stopping
            self.changed(paths, link_id)
            lane.not_before = time.monotonic() + _LONGEST_PAUSE_S

    def _whole(self, paths: frozenset[str] | None) -> str | None:
        """The primary vault's own link id, for a look at all of it and at no other vault."""
        return None if paths is not None else self._engine.vaults.primary.link_id or None

    def _settle(self) -> None:
        """Take in how jobs ended; whatever ended may have changed the health."""
        with self._lock:
            ended, self._ended = self._ended, []
            lanes = list(self._lanes.items())
        for job_id in ended:
            self._look_at = 0.0
            ours = [(link_id, one) for link_id, one in lanes if one.job and one.job.id == job_id]
            for _, lane in ours:
                lane.job = None
            try:
                job = self._live.jobs.wait(job_id, 0)
            except NotFound:  # so many have ended since that nobody remembers how
                for link_id, _ in ours:
                    self.changed(None, link_id)
                continue
            self._tell(job)
            for link_id, lane in ours:
                self._judge(job, link_id, lane)

    def _judge(self, job: Job, link_id: str | None, lane: _Lane) -> None:
        """What our own job leaves to be done; one that the user cancelled stays cancelled."""
        is_done = job.status is JobStatus.COMPLETED and not _is_owing(job)
        if is_done or job.status is JobStatus.CANCELLED:
            lane.failures = 0
            return
        # A vault that is away is looked for every second; trying again costs no more than that.
        is_away = job.error is not None and job.error.code == "VAULT_AWAY"
        lane.failures += not is_away
        pause = min(_LONGEST_PAUSE_S, 2.0 ** min(lane.failures - 1, 6))
        lane.not_before = time.monotonic() + (_AWAY_EVERY_S if is_away else pause)
        # A failed job kept its paths to itself; a completed one left the rest in the queue.
        paths = job.order.paths if job.status is JobStatus.FAILED else None
        self.changed(frozenset(paths) if paths is not None else None, link_id)

    def _tell(self, job: Job) -> None:
        """The index has changed: somebody may want to show it."""
        counts = {name: (job.result or {}).get(name, 0) for name in _CHANGED}
        if any(counts.values()):
            paths = list(job.order.paths or ())[:_PATHS_TOLD]
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


def _is_owing(job: Job) -> bool:
    """Whether notes failed for a reason that may be gone next time."""
    errors = (job.result or {}).get("errors")
    return isinstance(errors, list) and any(error.get("is_passing") for error in errors)
