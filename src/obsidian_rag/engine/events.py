"""What happens in a daemon, told once to everyone who listens.

Any thread may publish. Listeners are called in the publishing thread, one event after another,
so they must be quick and must not wait for anybody; one that fails misses that event only.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from obsidian_rag.store import now

_KEPT = 256
_log = logging.getLogger(__name__)


class EventKind(StrEnum):
    """What an event is about."""

    JOB = "job"
    PROGRESS = "progress"
    HEALTH = "health"
    CHANGES = "changes"
    RELATIONS = "relations"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class Event:
    """One fact; numbers grow by one, so that a listener can tell what it missed."""

    number: int
    kind: EventKind
    data: Mapping[str, object]
    at: str = field(default_factory=now)


EventListener = Callable[[Event], None]


class Bus:
    """Hands events out and remembers the last few."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._listeners: list[EventListener] = []
        self._kept: deque[Event] = deque(maxlen=_KEPT)
        self._number = 0

    def publish(self, kind: EventKind, data: Mapping[str, object]) -> None:
        """Tell everyone."""
        with self._lock:
            self._number += 1
            event = Event(self._number, kind, data)
            self._kept.append(event)
            # With the lock held: two events must not arrive in the wrong order.
            for listener in tuple(self._listeners):
                try:
                    listener(event)
                except Exception:  # noqa: BLE001  (a listener's trouble is not the publisher's)
                    _log.exception("a listener failed on %s", kind)

    def subscribe(self, listener: EventListener, after: int | None = None) -> Callable[[], None]:
        """Call `listener` for each event from now on; returns what ends that.

        With `after`, the remembered events with a higher number come first.
        """
        with self._lock:
            for event in self._kept:
                if after is not None and event.number > after:
                    listener(event)
            self._listeners.append(listener)

        def end() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return end
