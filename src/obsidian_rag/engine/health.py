"""The memory of a living engine's health: what was last seen, and every change of the state."""

import threading
from collections import deque
from dataclasses import asdict, dataclass, replace

from obsidian_rag.engine.events import Bus, EventKind
from obsidian_rag.errors import ObsidianRagError, Status
from obsidian_rag.index import HealthFacts, Subject, assess
from obsidian_rag.store import now

_KEPT = 50


@dataclass(frozen=True, slots=True)
class HealthChange:
    """A state that followed another, why and when."""

    state: Status
    before: Status | None
    code: str | None
    reason: str
    at: str


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

    def trouble(self, *subjects: Subject) -> ObsidianRagError | None:
        """The gravest trouble of these subjects, or of everything."""
        facts = self.facts
        if not subjects:
            return assess(facts).error
        found: list[ObsidianRagError | None] = [getattr(facts, one.value) for one in subjects]
        return next((trouble for trouble in found if trouble is not None), None)

    def note(self, troubles: dict[Subject, ObsidianRagError | None]) -> None:
        """Take in what was seen of some subjects."""
        with self._lock:
            self.take({subject.value: trouble for subject, trouble in troubles.items()})

    def take(self, seen: HealthFacts | dict[str, object]) -> None:
        """Take in facts, all or some by their names; the only way the state changes."""
        with self._lock:
            if isinstance(seen, HealthFacts):
                self._facts = seen
            else:
                self._facts = replace(self.facts, **seen)  # type: ignore[arg-type]  # by name
            answer = assess(self._facts)
            before = self._changes[-1] if self._changes else None
            code = answer.error.code if answer.error else None
            if before is not None and (before.state, before.code) == (answer.state, code):
                return
            change = HealthChange(
                answer.state,
                before.state if before else None,
                code,
                answer.error.message if answer.error else "Everything works.",
                now(),
            )
            self._changes.append(change)
            # Inside the lock: two changes must not be told in the wrong order.
            self._bus.publish(EventKind.HEALTH, asdict(change))
