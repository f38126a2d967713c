"""The health of an engine; a daemon's is probed regularly and remembered."""

import threading
from collections import deque
from dataclasses import asdict, replace
from typing import Any

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.events import Bus, EventKind
from obsidian_rag.errors import ObsidianRagError, Status
from obsidian_rag.index import (
    HealthAnswer,
    HealthChange,
    HealthFacts,
    JobFacts,
    assess,
    change_of,
    known_facts,
    newest_note,
    probed_facts,
)
from obsidian_rag.livesync import livesync_trouble
from obsidian_rag.store import now

_MAX_CHANGES = 50


class Health:
    """The last known facts of a daemon's engine; any thread may read and update them.

    `is_followed` is set while the scheduler probes regularly: then requests need not.
    """

    def __init__(self, bus: Bus) -> None:
        self.is_followed = False
        self._bus = bus
        self._lock = threading.RLock()
        self._facts: HealthFacts | None = None
        self._changes: deque[HealthChange] = deque(maxlen=_MAX_CHANGES)

    @property
    def state(self) -> Status | None:
        """The current state; None before the first probe."""
        with self._lock:
            return self._changes[-1].state if self._changes else None

    @property
    def changes(self) -> tuple[HealthChange, ...]:
        """The last changes, oldest first."""
        with self._lock:
            return tuple(self._changes)

    @property
    def facts(self) -> HealthFacts:
        """The last known facts; no errors before the first probe."""
        with self._lock:
            return self._facts or HealthFacts()

    @property
    def trouble(self) -> ObsidianRagError | None:
        """The most serious known error."""
        return assess(self.facts).error

    def note(self, **seen: Any) -> None:
        """Update some facts, by name."""
        with self._lock:
            self.take(replace(self.facts, **seen))

    def take(self, facts: HealthFacts) -> None:
        """Replace all facts; the state changes only here."""
        with self._lock:
            self._facts = facts
            before = self._changes[-1] if self._changes else None
            change = change_of(before, assess(facts), now())
            if change is None:
                return
            self._changes.append(change)
            # Inside the lock, so that changes are published in order.
            self._bus.publish(EventKind.HEALTH, asdict(change))


def health_of(engine: Engine) -> HealthAnswer:
    """The health to report with an answer."""
    return assess(facts_of(engine))


def facts_of(engine: Engine) -> HealthFacts:
    """The facts that need no probe."""
    seen = engine.live.known
    engine.follow_database()
    return known_facts(engine, seen, _job_facts(engine), is_followed=engine.live.is_followed)


def look(engine: Engine) -> HealthFacts:
    """Probe everything, and update a daemon's health."""
    engine.follow_database()
    facts = HealthFacts(
        config=engine.settings_file.trouble,
        restart=engine.settings_file.restart_trouble,
    )
    facts = probed_facts(engine, facts, _job_facts(engine))
    engine.live.note_all(facts)
    return facts


def index_stamp(engine: Engine) -> tuple[str, str | None]:
    """The version of the index and the time of its newest note."""
    return engine.index_version, newest_note(engine)


def _job_facts(engine: Engine) -> JobFacts:
    jobs = engine.live.jobs
    if jobs is None:
        return JobFacts()
    last = jobs.latest
    ended = (last.finished_at or "", last.error) if last is not None else None
    return JobFacts(jobs.active is not None, ended)


def livesync_of(engine: Engine) -> ObsidianRagError | None:
    """The LiveSync error, if any; health does not cover it."""
    ours = engine.live.livesync()
    return livesync_trouble(engine.config, engine.database, ours)
