"""Which changes belong together: paths go in as they change, and come out in groups once quiet.

Pure: no thread and no clock; every call is told the time. A path is quiet when nothing happened
to it for `debounce_s`. The first quiet path opens a window of `collect_s`; what is quiet when it
closes goes out together, and what is not waits for the next window.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

# A path that never rests, such as a log, is taken after so many debounce times.
PATIENCE = 15
# One walk is cheaper than so many paths, and the system may have dropped some events.
MOST_PATHS = 1000


@dataclass(frozen=True, slots=True)
class Changeset:
    """Paths that changed; None means that too much happened to tell: look at everything."""

    paths: frozenset[str] | None


class _Burst(NamedTuple):
    first: float
    last: float


class Collector:
    """Holds paths back until they are quiet; times are seconds that never go backwards."""

    def __init__(self, debounce_s: float, collect_s: float) -> None:
        self._debounce = debounce_s
        self._collect = collect_s
        # The key None stands for everything and, once there, takes in every other path.
        self._pending: dict[str | None, _Burst] = {}
        self._closes_at: float | None = None
        self._quiet_not_before = -math.inf

    def add(self, path: str, now: float) -> None:
        """Something happened to `path`."""
        self._open_window(now)
        key = None if None in self._pending else path
        before = self._pending.get(key)
        self._pending[key] = _Burst(before.first if before else now, now)
        if len(self._pending) > MOST_PATHS:
            first = min(burst.first for burst in self._pending.values())
            self._pending = {None: _Burst(first, now)}

    def due(self, now: float) -> Changeset | None:
        """What is to go out now, if anything; it is forgotten here."""
        self._open_window(now)
        if self._closes_at is None or now < self._closes_at:
            return None
        self._closes_at = None
        self._quiet_not_before = now
        quiet = {key for key, burst in self._pending.items() if self._quiet_at(burst) <= now}
        for key in quiet:
            del self._pending[key]
        if not quiet:
            return None
        return Changeset(None if None in quiet else frozenset(_named(quiet)))

    def next_due(self) -> float | None:
        """When something will be due if nothing more happens; None if nothing is pending."""
        if not self._pending:
            return None
        if self._closes_at is not None:
            return self._closes_at
        return self._first_quiet() + self._collect

    def _open_window(self, now: float) -> None:
        # The moment a first path is quiet only moves on while paths are added, so most of the
        # time there is no need to look at all of them.
        if self._closes_at is None and self._pending and now >= self._quiet_not_before:
            first_quiet = self._first_quiet()
            self._quiet_not_before = first_quiet
            if first_quiet <= now:
                self._closes_at = first_quiet + self._collect

    def _first_quiet(self) -> float:
        return min(self._quiet_at(burst) for burst in self._pending.values())

    def _quiet_at(self, burst: _Burst) -> float:
        return min(burst.last + self._debounce, burst.first + PATIENCE * self._debounce)


def _named(keys: Iterable[str | None]) -> Iterable[str]:
    return (key for key in keys if key is not None)
