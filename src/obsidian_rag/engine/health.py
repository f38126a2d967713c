"""The health of an engine for every answer; a living one looks, and remembers what it saw."""

import contextlib
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
from obsidian_rag.store import now

_KEPT = 50


class Health:
    """What was last seen of a living engine; any thread may ask and tell.

    `is_followed` is set by whoever looks again and again: then nobody else has to.
    """

    def __init__(self, bus: Bus) -> None:
        self.is_followed = False
        self._bus = bus
        self._lock = threading.RLock()
        self._facts: HealthFacts | None = None
        self._changes: deque[HealthChange] = deque(maxlen=_KEPT)

    @property
    def state(self) -> Status | None:
        """The present state; None until somebody has looked."""
        with self._lock:
            return self._changes[-1].state if self._changes else None

    @property
    def changes(self) -> tuple[HealthChange, ...]:
        """The last changes, oldest first."""
        with self._lock:
            return tuple(self._changes)

    @property
    def facts(self) -> HealthFacts:
        """What is known; as if all were well until somebody has looked."""
        with self._lock:
            return self._facts or HealthFacts()

    @property
    def trouble(self) -> ObsidianRagError | None:
        """The gravest one that is known."""
        return assess(self.facts).error

    def note(self, **seen: Any) -> None:
        """Take in some facts, by their names."""
        with self._lock:
            self.take(replace(self.facts, **seen))

    def take(self, facts: HealthFacts) -> None:
        """Take in all facts; the only way the state changes."""
        with self._lock:
            self._facts = facts
            before = self._changes[-1] if self._changes else None
            change = change_of(before, assess(facts), now())
            if change is None:
                return
            self._changes.append(change)
            # Inside the lock: two changes must not be told in the wrong order.
            self._bus.publish(EventKind.HEALTH, asdict(change))


def health_of(engine: Engine) -> HealthAnswer:
    """How the engine is, for an answer that is given now."""
    return assess(facts_of(engine))


def facts_of(engine: Engine) -> HealthFacts:
    """What can be known at once, and bears on answers: none of them needs LiveSync."""
    live = engine.live
    seen = replace(live.health.facts, livesync=None) if live is not None else None
    engine.follow_database()
    is_followed = live is not None and live.health.is_followed
    return known_facts(engine, seen, _jobs(engine), is_followed=is_followed)


def look(engine: Engine) -> HealthFacts:
    """Probe everything, and tell a living engine's health."""
    engine.follow_database()
    facts = HealthFacts(
        config=engine.settings_file.trouble,
        restart=engine.settings_file.restart_trouble,
        livesync=_livesync_trouble(engine),
    )
    facts = probed_facts(engine, facts, _jobs(engine))
    if engine.live is not None:
        engine.live.health.take(facts)
    return facts


def index_stamp(engine: Engine) -> tuple[str, str | None]:
    """What an answer was made from: the version of the index, and the time of its newest note."""
    return engine.index_version, newest_note(engine)


def _jobs(engine: Engine) -> JobFacts:
    if engine.live is None:
        return JobFacts()
    last = engine.live.jobs.latest
    ended = (last.finished_at or "", last.error) if last is not None else None
    return JobFacts(engine.live.jobs.active is not None, ended)


def _livesync_trouble(engine: Engine) -> ObsidianRagError | None:
    """What the daemon's own node says; who has none has no trouble with it."""
    with contextlib.suppress(ObsidianRagError):
        state = engine.live.livesync() if engine.live else None
        return state.trouble if state else None
    return None
