"""Three-way merges of a file changed in two places: text by lines, JSON by keys.

A merge either keeps what both sides wrote or is refused; None means that the user must decide.
Lines and keys are removed only where one side removed them and the other left them alone. Where
LiveSync's clients merge, the result equals theirs, so that devices merging at once agree.

Merges of text start from a line diff (`find_hunks`), which takes about linear time, whatever the
texts contain. It may miss equal lines and then reports a larger change than there was, which only
makes the merge more careful.
"""

import bisect
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# A line that repeats often (a blank one) is a weak match, and costs much.
_MAX_PAIRS_PER_LINE = 16
_MAX_PAIRS = 500_000
_MISSING: Any = object()
_CLASH: Any = object()


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


def merges_as_text(path: str) -> bool:
    """Whether LiveSync merges this file by lines."""
    return path.endswith(".md")


def merges_as_json(path: str) -> bool:
    """Whether LiveSync merges this file by keys."""
    return path.endswith((".json", ".canvas"))


def merge_bytes(
    path: str, base: bytes, ours: bytes, theirs: bytes, mtimes: tuple[int, int]
) -> bytes | None:
    """A file's content with both sides' changes, or None."""
    try:
        old, left, right = (part.decode("utf-8") for part in (base, ours, theirs))
    except UnicodeDecodeError:
        return None
    if merges_as_text(path):
        merged = merge_text(old, left, right, *mtimes)
    elif merges_as_json(path):
        merged = merge_json(old, left, right)
    else:
        return None
    return None if merged is None else merged.encode("utf-8")


def merge_text(
    base: str | None, left: str | None, right: str | None, left_mtime: int, right_mtime: int
) -> str | None:
    """`base` with both sides' changes, or None. Pass None for a deleted or lost version.

    Where both add at the same line, the older addition comes first.
    """
    if base is None or left is None or right is None:
        return None
    if (settled := _merge_trivially(base, left, right)) is not None:
        return settled
    old, ours, theirs = _Lines.of(base), _Lines.of(left), _Lines.of(right)
    our_hunks = list(find_hunks(old.lines, ours.lines))
    their_hunks = list(find_hunks(old.lines, theirs.lines))
    end = len(old.lines)
    _drop_deletion_of_extended_end(our_hunks, their_hunks, end)
    _drop_deletion_of_extended_end(their_hunks, our_hunks, end)
    is_glued = not (old.is_closed or ours.is_closed or theirs.is_closed)
    weaving = _HunkMerger(left_mtime <= right_mtime, glued_at=end if is_glued else None)
    hunks = weaving.weave(our_hunks, their_hunks)
    if hunks is None:
        return None
    return _Lines(tuple(apply_hunks(old.lines, hunks)), _is_closed(old, ours, theirs)).text


def merge_json(base: str | None, left: str | None, right: str | None) -> str | None:
    """`base` with both sides' changes to its keys, or None. Pass None for a lost version."""
    if base is None or left is None or right is None:
        return None
    if (settled := _merge_trivially(base, left, right)) is not None:
        return settled
    try:
        merged = _merge_values(_parse(base), _parse(left), _parse(right))
        return None if merged is _CLASH else _unparse(merged)
    except (ValueError, RecursionError):
        return None


def _merge_trivially(base: str, left: str, right: str) -> str | None:
    """The result if only one side changed, or both in the same way."""
    if left in (right, base):
        return right
    return left if right == base else None


@dataclass(frozen=True, slots=True)
class _Lines:
    """A text as lines; it is closed when the last line ends like the others."""

    lines: tuple[str, ...]
    is_closed: bool

    @classmethod
    def of(cls, text: str) -> "_Lines":
        lines = tuple(text.split("\n"))
        return cls(lines, False) if lines[-1] else cls(lines[:-1], True)

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + ("\n" if self.is_closed and self.lines else "")


def _is_closed(base: _Lines, left: _Lines, right: _Lines) -> bool:
    changed = any(side.lines and side.is_closed != base.is_closed for side in (left, right))
    return base.is_closed != changed


def _drop_deletion_of_extended_end(hunks: list[Hunk], others: Sequence[Hunk], end: int) -> None:
    # LiveSync does not delete the end of a text that the other side has extended.
    if hunks and others and hunks[-1].only_deletes and hunks[-1].end == others[-1].start == end:
        hunks.pop()


@dataclass(frozen=True, slots=True)
class _HunkMerger:
    is_left_older: bool
    # Where LiveSync joins additions without a line end between them.
    glued_at: int | None

    def weave(self, left: Iterable[Hunk], right: Iterable[Hunk]) -> list[Hunk] | None:
        """The hunks of both sides in the order of the base; None if they clash."""
        woven: list[Hunk] = []
        ours, theirs = list(left)[::-1], list(right)[::-1]
        while ours and theirs:
            our, their = ours[-1], theirs[-1]
            if our == their or (our.only_adds and their.only_adds and our.start == their.start):
                woven.append(self._join_hunks(ours.pop(), theirs.pop()))
            elif not our.overlaps(their):
                is_ours = (our.start, our.end) < (their.start, their.end)
                woven.append((ours if is_ours else theirs).pop())
            elif our.only_deletes and their.only_deletes:
                shorter, longer = (ours, theirs) if our.end < their.end else (theirs, ours)
                woven.append(Hunk(min(our.start, their.start), shorter.pop().end))
                longer.append(Hunk(woven[-1].end, longer.pop().end))
            else:
                return None
        return [*woven, *ours[::-1], *theirs[::-1]]

    def _join_hunks(self, left: Hunk, right: Hunk) -> Hunk:
        older, newer = (left, right) if self.is_left_older else (right, left)
        shared = _count_shared(older.lines, newer.lines)
        first, second = older.lines[shared:], newer.lines[shared:]
        if first and second and left.start == self.glued_at:
            first, second = (*first[:-1], first[-1] + second[0]), second[1:]
        return Hunk(left.start, left.end, older.lines[:shared] + first + second)


def _count_shared(older: Sequence[str], newer: Sequence[str]) -> int:
    """How many leading lines both added alike, less trailing blank separator lines."""
    most = min(len(older), len(newer))
    shared = next((i for i in range(most) if older[i] != newer[i]), most)
    if shared < most:
        while shared and not older[shared - 1].strip():
            shared -= 1
    return shared


def _parse(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_object_with_unique_keys)


def _object_with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    parsed = dict(pairs)
    if len(parsed) < len(pairs):
        raise ValueError("a key stands twice")
    return parsed


def _unparse(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text.encode()  # raises ValueError for a lone surrogate
    return text


def _merge_values(base: Any, left: Any, right: Any) -> Any:
    if _is_same(left, right) or _is_same(base, right):
        return left
    if _is_same(base, left):
        return right
    sides = (base, left, right)
    if all(isinstance(side, dict) for side in sides):
        return _merge_objects(base, left, right)
    if all(_is_named(side) for side in sides):
        return _merge_named(*({item["id"]: item for item in side} for side in sides))
    return _CLASH


def _is_same(one: Any, other: Any) -> bool:
    # In Python 1, 1.0 and true are equal; in JSON they are not.
    if one is _MISSING or other is _MISSING:
        return one is other
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _merge_objects(
    base: Mapping[str, Any], left: Mapping[str, Any], right: Mapping[str, Any]
) -> Any:
    merged = {}
    for key in {**left, **right}:
        value = _merge_values(*(side.get(key, _MISSING) for side in (base, left, right)))
        if value is _CLASH:
            return _CLASH
        if value is not _MISSING:
            merged[key] = value
    return merged


def _is_named(value: Any) -> bool:
    """Whether this is a list of objects with unique ids, like the nodes of a canvas."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return False
    names = [item.get("id") for item in value]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _merge_named(base: dict[str, Any], left: dict[str, Any], right: dict[str, Any]) -> Any:
    if _is_in_order(base, right):
        merged = _merge_objects(base, left, right)
    elif _is_in_order(base, left):
        merged = _merge_objects(base, right, left)
    else:
        return _CLASH
    return merged if merged is _CLASH else list(merged.values())


def _is_in_order(base: Mapping[str, Any], side: Mapping[str, Any]) -> bool:
    return [name for name in base if name in side] == [name for name in side if name in base]


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
    positions = _positions(old[start:end], new[first:last])
    # Hunt and Szymanski: of all rows of one length, only the one that ends earliest matters.
    ends: list[int] = []
    rows: list[tuple[int, int, Any]] = []
    for here in range(start, end):
        for there in positions.get(old[here], ()):
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


def _positions(old: Sequence[str], new: Sequence[str]) -> dict[str, list[int]]:
    """The positions in the new text of the old text's rare lines, last first."""
    before, after = Counter(old), Counter(new)
    pairs = {line: count * after[line] for line, count in before.items()}
    rare = {line for line, count in pairs.items() if 0 < count <= _MAX_PAIRS_PER_LINE}
    if sum(pairs[line] for line in rare) > _MAX_PAIRS:
        return {}
    positions: dict[str, list[int]] = {line: [] for line in rare}
    for there in range(len(new) - 1, -1, -1):
        if new[there] in rare:
            positions[new[there]].append(there)
    return positions


def apply_hunks(lines: Sequence[str], hunks: Iterable[Hunk]) -> Iterator[str]:
    """The lines of the base after these changes."""
    position = 0
    for hunk in hunks:
        yield from lines[position : hunk.start]
        yield from hunk.lines
        position = hunk.end
    yield from lines[position:]
