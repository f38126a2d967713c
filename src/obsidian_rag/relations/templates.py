"""Lines that templates put into many notes: counted as notes come and go, not counted as words.

Which lines these are depends only on the notes that are there. Counting all lines at every edit
would take too long, so exact counts are kept only of lines that stand in many notes. Any other
line stood in fewer than `bound` notes when all were counted, and only a note that was written
since can have raised that: once enough were, all lines are counted again.
"""

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np
import xxhash
from numpy.typing import NDArray

from obsidian_rag.relations.packed import counted
from obsidian_rag.store import Database

Lines = NDArray[np.uint32]
SHARED_BY = 15
SHARED_BY_SHARE = 0.05
_BOUND = "lines_bound"
_WRITTEN = "lines_written"
# In a query: one of the values in a JSON list.
AMONG = "IN (SELECT value FROM json_each(?))"
# Bytes before the bits in packed lines.
_HEAD = 8


class NoteLines(NamedTuple):
    """The lines of a note's body in their order, as numbers; a blank one is 0.

    The first stands on line `first` of the file.
    """

    first: int
    numbers: Lines

    def different(self) -> set[int]:
        """Each line once, without the blank ones, which say nothing anyway."""
        return set(self.numbers.tolist()) - {0}

    def is_own(self, lines: NDArray[np.int32], templates: Lines) -> NDArray[np.bool_]:
        """Which of these lines of the file do not come from templates, of which there are some."""
        if not len(self.numbers):
            return np.ones(len(lines), dtype=bool)
        nearest = templates.take(templates.searchsorted(self.numbers), mode="clip")
        at = (lines - self.first).clip(0, len(self.numbers) - 1)
        is_own: NDArray[np.bool_] = (nearest != self.numbers)[at]
        return is_own

    def packed(self) -> bytes:
        """As it is stored: a blank line takes one bit."""
        head = np.array([self.first, len(self.numbers)], dtype=np.uint32)
        is_filled = self.numbers > 0
        return head.tobytes() + np.packbits(is_filled).tobytes() + self.numbers[is_filled].tobytes()

    @classmethod
    def unpacked(cls, data: bytes) -> "NoteLines":
        """What `packed` made small."""
        first, count = np.frombuffer(data, np.uint32, 2).tolist()
        bits = np.frombuffer(data, np.uint8, -(-count // 8), _HEAD)
        numbers = np.zeros(count, dtype=np.uint32)
        numbers[np.unpackbits(bits, count=count).astype(bool)] = np.frombuffer(
            _filled(data), np.uint32
        )
        return cls(first, numbers)


def _filled(data: bytes) -> bytes:
    """The part of packed lines that has the numbers."""
    return data[_HEAD + -(-int.from_bytes(data[4:_HEAD], sys.byteorder) // 8) :]


def note_lines(first: int, lines: Sequence[str]) -> NoteLines:
    """The lines of a note's body, which begins on line `first`."""
    # Encoded in one go: line by line would take twice as long.
    text = "\n".join(lines).encode(errors="surrogatepass")
    encoded = text.split(b"\n") if lines else []
    numbers = [xxhash.xxh32_intdigest(line) or 1 if line else 0 for line in encoded]
    return NoteLines(first, np.array(numbers, dtype=np.uint32))


def fewest_notes(notes: int) -> float:
    """In how many of so many notes a line stands that comes from a template."""
    return max(SHARED_BY, SHARED_BY_SHARE * notes)


class Templates:
    """The tables of lines; whoever writes them has a transaction open."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def lines(self) -> frozenset[int]:
        """The lines whose words do not count."""
        return self._all("SELECT line FROM template_line")

    def array(self) -> Lines:
        """The same, in order."""
        return np.array(sorted(self.lines()), dtype=np.uint32)

    def write(self, notes: Mapping[int, NoteLines]) -> None:
        """These notes have these lines now."""
        before = self.lines_of(list(notes))
        counts: Counter[int] = Counter()
        known = self._all("SELECT line FROM line_count")
        grown = 0
        for number, found in notes.items():
            lines = found.different()
            old = before[number].different() if number in before else set()
            grown += not lines <= old
            if known:
                counts.update(known & (lines - old))
                counts.subtract(known & (old - lines))
        self._database.add_to(_WRITTEN, grown)
        self._count(counts)
        self._database.run_many(
            "INSERT OR REPLACE INTO note_line (number, lines) VALUES (?, ?)",
            ((number, lines.packed()) for number, lines in notes.items()),
        )

    def remove(self, number: int) -> None:
        """This note is gone."""
        counts: Counter[int] = Counter()
        known = self._all("SELECT line FROM line_count")
        for lines in self.lines_of([number]).values():
            counts.subtract(known & lines.different())
        self._count(counts)
        self._database.run("DELETE FROM note_line WHERE number = ?", (number,))

    def shared(self, notes: int) -> frozenset[int]:
        """The lines that come from templates, going by the notes that are there: so many."""
        fewest = fewest_notes(notes)
        bound, written = self._database.get(_BOUND), int(self._database.get(_WRITTEN) or 0)
        if bound is None or int(bound) + written > fewest:
            self._count_all(max(2, int(fewest) // 2))
        return self._all("SELECT line FROM line_count WHERE notes >= ?", (fewest,))

    def adopt(self, lines: frozenset[int]) -> list[int]:
        """From now on these lines do not count; the numbers of the notes that it concerns."""
        changed = lines ^ self.lines()
        if not changed:
            return []
        self._database.run("DELETE FROM template_line")
        self._database.run_many(
            "INSERT INTO template_line (line) VALUES (?)", ((line,) for line in sorted(lines))
        )
        numbers, owners, found = self._stored()
        has_one = np.isin(found, np.array(sorted(changed), dtype=np.uint32))
        having: list[int] = numbers[np.unique(owners[has_one])].tolist()
        return having

    def lines_of(self, numbers: Sequence[int]) -> dict[int, NoteLines]:
        """The lines of some notes, by the notes' numbers."""
        found = self._database.rows(
            f"SELECT number, lines FROM note_line WHERE number {AMONG}", (json.dumps(numbers),)
        )
        return {
            cast("int", number): NoteLines.unpacked(cast("bytes", data)) for number, data in found
        }

    def _count(self, counts: Mapping[int, int]) -> None:
        self._database.run_many(
            "UPDATE line_count SET notes = notes + ? WHERE line = ?",
            ((amount, line) for line, amount in counts.items() if amount),
        )

    def _count_all(self, bound: int) -> None:
        _, owners, found = self._stored()
        each, _ = counted(owners.astype(np.uint64) << np.uint64(32) | found.astype(np.uint64))
        lines, notes = counted(each.astype(np.uint32))
        is_many = notes >= bound
        self._database.run("DELETE FROM line_count")
        self._database.run_many(
            "INSERT INTO line_count (line, notes) VALUES (?, ?)",
            zip(lines[is_many].tolist(), notes[is_many].tolist(), strict=True),
        )
        self._database.put(_BOUND, str(bound))
        self._database.put(_WRITTEN, "0")

    def _stored(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Lines]:
        """The notes' numbers, and every line of each with the position of its note's number."""
        rows = self._database.rows("SELECT number, lines FROM note_line")
        parts = [_filled(cast("bytes", data)) for _, data in rows]
        sizes = [len(part) // np.dtype(np.uint32).itemsize for part in parts]
        return (
            np.array([cast("int", number) for number, _ in rows], dtype=np.int64),
            np.repeat(np.arange(len(rows)), sizes),
            np.frombuffer(b"".join(parts), np.uint32),
        )

    def _all(self, query: str, values: tuple[object, ...] = ()) -> frozenset[int]:
        return frozenset(cast("int", row[0]) for row in self._database.rows(query, values))
