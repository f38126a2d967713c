"""Detects lines that templates put into many notes; their words do not count.

Which lines these are depends only on the present notes. Counting all lines at every edit would
take too long, so exact counts are kept only for lines found in many notes. Any other line was in
fewer than `bound` notes at the last full count, and only notes written since can have raised that:
after enough of those, all lines are counted again.
"""

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np
import xxhash
from numpy.typing import NDArray

from obsidian_rag.relations.packed import count_distinct
from obsidian_rag.store import Database

Lines = NDArray[np.uint32]
SHARED_BY = 15
SHARED_BY_SHARE = 0.05
_BOUND = "lines_bound"
_WRITTEN = "lines_written"
# SQL condition: one of the values in a JSON list.
AMONG = "IN (SELECT value FROM json_each(?))"
# Bytes before the bits in packed lines.
_HEAD_BYTES = 8


class NoteLines(NamedTuple):
    """The lines of a note's body in order, as hashes; a blank one is 0.

    The first is line `first` of the file.
    """

    first: int
    numbers: Lines

    def different(self) -> set[int]:
        """The distinct lines, without blank ones."""
        return set(self.numbers.tolist()) - {0}

    def is_own(self, lines: NDArray[np.int32], templates: Lines) -> NDArray[np.bool_]:
        """Which of these file lines are not from templates; `templates` must not be empty."""
        if not len(self.numbers):
            return np.ones(len(lines), dtype=bool)
        nearest = templates.take(templates.searchsorted(self.numbers), mode="clip")
        at = (lines - self.first).clip(0, len(self.numbers) - 1)
        is_own: NDArray[np.bool_] = (nearest != self.numbers)[at]
        return is_own

    def packed(self) -> bytes:
        """The stored form; a blank line takes one bit."""
        head = np.array([self.first, len(self.numbers)], dtype=np.uint32)
        is_filled = self.numbers > 0
        return head.tobytes() + np.packbits(is_filled).tobytes() + self.numbers[is_filled].tobytes()

    @classmethod
    def unpacked(cls, data: bytes) -> "NoteLines":
        """The inverse of `packed`."""
        first, count = np.frombuffer(data, np.uint32, 2).tolist()
        bits = np.frombuffer(data, np.uint8, -(-count // 8), _HEAD_BYTES)
        numbers = np.zeros(count, dtype=np.uint32)
        numbers[np.unpackbits(bits, count=count).astype(bool)] = np.frombuffer(
            _packed_hashes(data), np.uint32
        )
        return cls(first, numbers)


def _packed_hashes(data: bytes) -> bytes:
    """The part of packed lines with the hashes."""
    return data[_HEAD_BYTES + -(-int.from_bytes(data[4:_HEAD_BYTES], sys.byteorder) // 8) :]


def note_lines(first: int, lines: Sequence[str]) -> NoteLines:
    """The lines of a note's body, which begins on line `first`."""
    # Encode all at once: line by line takes twice as long.
    text = "\n".join(lines).encode(errors="surrogatepass")
    encoded = text.split(b"\n") if lines else []
    numbers = [xxhash.xxh32_intdigest(line) or 1 if line else 0 for line in encoded]
    return NoteLines(first, np.array(numbers, dtype=np.uint32))


def fewest_notes(notes: int) -> float:
    """In how many of `notes` a line must occur to count as a template line."""
    return max(SHARED_BY, SHARED_BY_SHARE * notes)


class Templates:
    """The tables of lines; writing needs an open transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def lines(self) -> frozenset[int]:
        """The lines whose words do not count."""
        return self._select("SELECT line FROM template_line")

    def array(self) -> Lines:
        """The template lines, sorted."""
        return np.array(sorted(self.lines()), dtype=np.uint32)

    def write(self, notes: Mapping[int, NoteLines]) -> None:
        """Set the lines of these notes."""
        before = self.lines_of(list(notes))
        counts: Counter[int] = Counter()
        known = self._select("SELECT line FROM line_count")
        grown = 0
        for number, found in notes.items():
            lines = found.different()
            old = before[number].different() if number in before else set()
            grown += not lines <= old
            if known:
                counts.update(known & (lines - old))
                counts.subtract(known & (old - lines))
        if grown:
            self._database.add_to(_WRITTEN, grown)
        self._add_counts(counts)
        self._database.run_many(
            "INSERT OR REPLACE INTO note_line (number, lines) VALUES (?, ?)",
            ((number, lines.packed()) for number, lines in notes.items()),
        )

    def remove(self, number: int) -> None:
        """Remove the lines of a note."""
        counts: Counter[int] = Counter()
        known = self._select("SELECT line FROM line_count")
        for lines in self.lines_of([number]).values():
            counts.subtract(known & lines.different())
        self._add_counts(counts)
        self._database.run("DELETE FROM note_line WHERE number = ?", (number,))

    def shared(self, notes: int) -> frozenset[int]:
        """The template lines, given the present number of notes."""
        fewest = fewest_notes(notes)
        facts = self._database.facts()
        bound, written = facts.get(_BOUND), int(facts.get(_WRITTEN) or 0)
        if bound is None or int(bound) + written > fewest:
            with self._database.transaction():
                self._recount_all(max(2, int(fewest) // 2))
        return self._select("SELECT line FROM line_count WHERE notes >= ?", (fewest,))

    def adopt(self, lines: frozenset[int]) -> list[int]:
        """Make these the template lines; returns the numbers of the affected notes."""
        changed = lines ^ self.lines()
        self._database.run("DELETE FROM template_line")
        self._database.run_many(
            "INSERT INTO template_line (line) VALUES (?)", ((line,) for line in sorted(lines))
        )
        numbers, owners, found = self._load_lines()
        has_one = np.isin(found, np.array(sorted(changed), dtype=np.uint32))
        having: list[int] = numbers[np.unique(owners[has_one])].tolist()
        return having

    def lines_of(self, numbers: Sequence[int]) -> dict[int, NoteLines]:
        """The lines of some notes, by note number."""
        found = self._database.rows(
            f"SELECT number, lines FROM note_line WHERE number {AMONG}", (json.dumps(numbers),)
        )
        return {
            cast("int", number): NoteLines.unpacked(cast("bytes", data)) for number, data in found
        }

    def _add_counts(self, counts: Mapping[int, int]) -> None:
        self._database.run_many(
            "UPDATE line_count SET notes = notes + ? WHERE line = ?",
            ((amount, line) for line, amount in counts.items() if amount),
        )

    def _recount_all(self, bound: int) -> None:
        _, owners, found = self._load_lines()
        pairs = owners.astype(np.uint64) << np.uint64(32) | found.astype(np.uint64)
        each, _ = count_distinct(pairs)
        lines, notes = count_distinct(each.astype(np.uint32))
        is_many = notes >= bound
        self._database.run("DELETE FROM line_count")
        self._database.run_many(
            "INSERT INTO line_count (line, notes) VALUES (?, ?)",
            zip(lines[is_many].tolist(), notes[is_many].tolist(), strict=True),
        )
        self._database.put(_BOUND, str(bound))
        self._database.put(_WRITTEN, "0")

    def _load_lines(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Lines]:
        """The note numbers, the owner of every line as an index into them, and the lines."""
        rows = self._database.rows("SELECT number, lines FROM note_line")
        parts = [_packed_hashes(cast("bytes", data)) for _, data in rows]
        sizes = [len(part) // np.dtype(np.uint32).itemsize for part in parts]
        return (
            np.array([cast("int", number) for number, _ in rows], dtype=np.int64),
            np.repeat(np.arange(len(rows)), sizes),
            np.frombuffer(b"".join(parts), np.uint32),
        )

    def _select(self, query: str, values: tuple[object, ...] = ()) -> frozenset[int]:
        return frozenset(cast("int", row[0]) for row in self._database.rows(query, values))
