"""Dates as keys, so that "does it lie in this span" is a question of having one of some keys.

Time is cut into centuries, decades, years, months and days. A passage has a key for each of these
that it touches, and keys with a star for the months and years that it fills; a span asks for the
largest pieces that make it up, and for the starred ones that it lies in. Any span is some hundred
keys at most, and a passage may have dates that are years apart.
"""

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from functools import lru_cache

from obsidian_rag.notes.dates import first_day, last_day

# How many letters of an ISO day name each piece of time, the largest first.
_CENTURY, _DECADE, _YEAR, _MONTH, _DAY = 2, 3, 4, 7, 10
SAID = "~"


def date_keys(dates: Iterable[str], said: Iterable[str] = ()) -> list[str]:
    """The keys of a passage: of the dates it has, and of those that its text speaks of."""
    found = {key: None for one in dates for key in _keys(one)}
    found |= {f"{SAID}{key}": None for one in said for key in _keys(one)}
    return list(found)


def keys_within(first: str | None, last: str | None) -> list[str]:
    """The keys that every date between two days has one of; None is open."""
    start = date.fromisoformat(first) if first else date.min
    end = date.fromisoformat(last) if last else date.max
    found: dict[str, None] = {}
    for piece in _pieces(start, end, (_CENTURY, _DECADE, _YEAR, _MONTH, _DAY)):
        found[piece] = None
        found |= {f"{piece[:size]}*": None for size in (_YEAR, _MONTH) if size < len(piece)}
    return list(found)


@lru_cache(maxsize=10_000)
def _keys(one: str) -> tuple[str, ...]:
    start, end = date.fromisoformat(first_day(one)), date.fromisoformat(last_day(one))
    found: dict[str, None] = {}
    for piece in _pieces(start, end, (_YEAR, _MONTH, _DAY)):
        sizes = (_CENTURY, _DECADE, _YEAR, _MONTH, _DAY)
        found |= {piece[:size]: None for size in sizes if size <= len(piece)}
        if len(piece) < _DAY:
            found[f"{piece}*"] = None
    return tuple(found)


def _pieces(first: date, last: date, sizes: tuple[int, ...]) -> Iterator[str]:
    """The largest whole pieces of time that make up a span."""
    day = first
    while day <= last:
        for size in sizes:
            name = day.isoformat()[:size]
            end = _last_of(name)
            if end <= last and _first_of(name) == day:
                yield name
                break
        if end == date.max:
            return
        day = end + timedelta(days=1)


def _first_of(name: str) -> date:
    if len(name) < _YEAR:
        return date(max(1, int(name.ljust(4, "0"))), 1, 1)
    return date.fromisoformat(first_day(name))


def _last_of(name: str) -> date:
    if len(name) < _YEAR:
        return date(int(name.ljust(4, "9")), 12, 31)
    return date.fromisoformat(last_day(name))
