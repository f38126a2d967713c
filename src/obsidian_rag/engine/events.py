"""The event bus of a daemon.

Any thread may publish. Listeners are called in the publishing thread, one event after another,
so they must be quick and must not block; one that fails misses that event only.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from obsidian_rag.store import now

_MAX_KEPT_EVENTS = 256
_log = logging.getLogger(__name__)


class EventKind(StrEnum):
    """What an event is about."""

    JOB = "job"
    PROGRESS = "progress"
    HEALTH = "health"
    LIVESYNC = "livesync"
    CHANGES = "changes"
    RELATIONS = "relations"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class Event:
    """One fact; numbers increase by one, so that a listener can detect gaps."""

    number: int
    kind: EventKind
    data: Mapping[str, object]
    at: str = field(default_factory=now)


EventListener = Callable[[Event], None]


class Bus:
    """Delivers events and keeps the last few."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._listeners: list[EventListener] = []
        self._kept: deque[Event] = deque(maxlen=_MAX_KEPT_EVENTS)
        self._number = 0

    def publish(self, kind: EventKind, data: Mapping[str, object]) -> None:
        """Deliver an event to all listeners."""
        with self._lock:
            self._number += 1
            event = Event(self._number, kind, data)
            self._kept.append(event)
            # With the lock held, so that events arrive in order.
            for listener in tuple(self._listeners):
                try:
                    listener(event)
                except Exception:  # noqa: BLE001  (a failing listener must not stop the publisher)
                    _log.exception("a listener failed on %s", kind)

    def subscribe(self, listener: EventListener, after: int | None = None) -> Callable[[], None]:
        """Call `listener` for each event from now on; returns a function that unsubscribes.

        With `after`, kept events with a higher number are delivered first.
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
