"""A line diff of two texts, the basis of merges.

The search takes about linear time, whatever the texts hold. It may miss equal lines and then
reports a larger change than there was; a merge only becomes more careful.
"""

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

# A line that repeats often (a blank one) is a weak match, and costs much.
_MAX_PAIRS_PER_LINE = 16
_MAX_PAIRS = 500_000


@dataclass(frozen=True, slots=True)
class Hunk:
    """The lines from `start` to `end` of the base become `lines`."""

    start: int
    end: int
    lines: tuple[str, ...] = ()

    @property
    def only_adds(self) -> bool:
        """Whether no line of the base is removed."""
        return self.start == self.end

    @property
    def only_deletes(self) -> bool:
        """Whether no line is added."""
        return not self.lines

    def overlaps(self, other: "Hunk") -> bool:
        """Whether both change the same line, or one adds inside what the other changes."""
        return self.start < other.end and other.start < self.end


def find_hunks(old: Sequence[str], new: tuple[str, ...]) -> Iterator[Hunk]:
    """The hunks that turn the old lines into the new, in order, a kept line between any two."""
    position = (0, 0)
    for here, there in [*_anchors(old, new), (len(old), len(new))]:
        start, end, first, last = _trim(old, new, (position[0], here, position[1], there))
        if start < end or first < last:
            yield Hunk(start, end, new[first:last])
        position = (here + 1, there + 1)


def _trim(
    old: Sequence[str], new: Sequence[str], part: tuple[int, int, int, int]
) -> tuple[int, int, int, int]:
    """A part of both texts (from, to; from, to) without its equal ends."""
    start, end, first, last = part
    while start < end and first < last and old[start] == new[first]:
        start, first = start + 1, first + 1
    while start < end and first < last and old[end - 1] == new[last - 1]:
        end, last = end - 1, last - 1
    return start, end, first, last


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The longest sequence of rare lines that both texts have in the same order."""
    start, end, first, last = _trim(old, new, (0, len(old), 0, len(new)))
    places = _places(old[start:end], new[first:last])
    # Hunt and Szymanski: of all rows of one length, only the one that ends earliest matters.
    ends: list[int] = []
    rows: list[tuple[int, int, Any]] = []
    for here in range(start, end):
        for there in places.get(old[here], ()):
            length = bisect.bisect_left(ends, there)
            row = (here, first + there, rows[length - 1] if length else None)
            ends[length : length + 1] = [there]
            rows[length : length + 1] = [row]
    pairs = []
    link: Any = rows[-1] if rows else None
    while link is not None:
        here, there, link = link
        pairs.append((here, there))
    return pairs[::-1]


def _places(old: Sequence[str], new: Sequence[str]) -> dict[str, list[int]]:
    """The positions in the new text of the old text's rare lines, last first."""
    before, after = Counter(old), Counter(new)
    pairs = {line: count * after[line] for line, count in before.items()}
    rare = {line for line, count in pairs.items() if 0 < count <= _MAX_PAIRS_PER_LINE}
    if sum(pairs[line] for line in rare) > _MAX_PAIRS:
        return {}
    places: dict[str, list[int]] = {line: [] for line in rare}
    for there in range(len(new) - 1, -1, -1):
        if new[there] in rare:
            places[new[there]].append(there)
    return places


def apply_hunks(lines: Sequence[str], hunks: Iterable[Hunk]) -> Iterator[str]:
    """The lines of the base after these changes."""
    position = 0
    for hunk in hunks:
        yield from lines[position : hunk.start]
        yield from hunk.lines
        position = hunk.end
    yield from lines[position:]
