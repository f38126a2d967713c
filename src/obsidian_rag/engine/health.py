"""The health of a living engine: three states, one place that sets them, every change told.

    HEALTHY ⇄ DEGRADED ⇄ UNAVAILABLE, and HEALTHY ⇄ UNAVAILABLE

Each subject is well or has one trouble. Without a store there is nothing to answer from
(unavailable); every other trouble leaves an answer with a caveat (degraded).
"""

import threading
from collections import deque
from dataclasses import asdict, dataclass
from enum import StrEnum

from obsidian_rag.engine.events import Bus, EventKind
from obsidian_rag.errors import ObsidianRagError, Status
from obsidian_rag.store import now

_KEPT = 50


class Subject(StrEnum):
    """What can be well or not, the gravest first; all but the last bear on answers."""

    STORE = "store"
    EMBEDDER = "embedder"
    INDEX = "index"
    VAULT = "vault"
    INDEXER = "indexer"
    LIVESYNC = "livesync"


ANSWERING = tuple(one for one in Subject if one is not Subject.LIVESYNC)


@dataclass(frozen=True, slots=True)
class HealthChange:
    """A state that followed another, why and when."""

    state: Status
    before: Status | None
    code: str | None
    reason: str
    at: str


def state_of(subject: Subject) -> Status:
    """How bad it is when this subject is not well."""
    return "unavailable" if subject is Subject.STORE else "degraded"


class Health:
    """What is known to be wrong; any thread may ask and tell."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._lock = threading.RLock()
        self._troubles: dict[Subject, ObsidianRagError] = {}
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

    def trouble(self, *subjects: Subject) -> ObsidianRagError | None:
        """The gravest trouble of these subjects, or of all."""
        with self._lock:
            asked = subjects or tuple(Subject)
            return next((self._troubles[one] for one in asked if one in self._troubles), None)

    def note(self, troubles: dict[Subject, ObsidianRagError | None]) -> None:
        """Take in what was seen of some subjects; the only way the state changes."""
        with self._lock:
            before = self._changes[-1] if self._changes else None
            for subject, trouble in troubles.items():
                if trouble is None:
                    self._troubles.pop(subject, None)
                else:
                    self._troubles[subject] = trouble
            worst = next((one for one in Subject if one in self._troubles), None)
            error = self._troubles[worst] if worst else None
            state: Status = state_of(worst) if worst else "healthy"
            code = error.code if error else None
            if before is not None and (before.state, before.code) == (state, code):
                return
            change = HealthChange(
                state,
                before.state if before else None,
                code,
                error.message if error else "Everything works.",
                now(),
            )
            self._changes.append(change)
            # Inside the lock: two changes must not be told in the wrong order.
            self._bus.publish(EventKind.HEALTH, asdict(change))
