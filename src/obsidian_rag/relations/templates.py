"""Lines that templates put into many notes: counted as notes come and go, not read as words.

Which lines these are depends only on the notes that are there. Counting all lines at every edit
would take too long, so exact counts are kept only of lines that stand in many notes. Any other
line stood in fewer than `bound` notes when all were counted, and only a note that was written
since can have raised that: once enough were, all lines are counted again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import numpy as np
import xxhash
from numpy.typing import NDArray

from obsidian_rag.store import Database

Lines = NDArray[np.uint32]
SHARED_BY = 15
SHARED_BY_SHARE = 0.05
_BOUND = "lines_bound"
_WRITTEN = "lines_written"
_EDITION = "templates_edition"
_MOST_IN_QUERY = 500


def line_number(line: str) -> int:
    """The number by which a line is known."""
    return int(xxhash.xxh32_intdigest(line.encode(errors="surrogatepass")))


def line_numbers(lines: Iterable[str]) -> Lines:
    """The different lines of a note as sorted numbers; blank ones say nothing anyway."""
    found = {line_number(line) for line in set(lines) if line}
    return np.array(sorted(found), dtype=np.uint32)


def fewest_notes(notes: int) -> float:
    """In how many of so many notes a line stands that comes from a template."""
    return max(SHARED_BY, SHARED_BY_SHARE * notes)


class Templates:
    """The tables of lines; whoever writes them has a transaction open."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def edition(self) -> int:
        """Grows whenever other lines come from templates than before."""
        return int(self._database.get(_EDITION) or 0)

    def lines(self) -> frozenset[int]:
        """The lines that notes are read without."""
        return self._all("SELECT line FROM template_line")

    def write(self, notes: Mapping[int, Lines]) -> None:
        """These notes have these lines now."""
        before = self._lines_of(list(notes))
        counts: Counter[int] = Counter()
        counted = self._all("SELECT line FROM line_count")
        grown = 0
        for number, lines in notes.items():
            old = before.get(number, lines[:0])
            came = np.setdiff1d(lines, old, assume_unique=True)
            grown += bool(len(came))
            if counted:
                gone = np.setdiff1d(old, lines, assume_unique=True)
                counts.update(counted.intersection(came.tolist()))
                counts.subtract(counted.intersection(gone.tolist()))
        self._database.add_to(_WRITTEN, grown)
        self._count(counts)
        self._database.run_many(
            "INSERT OR REPLACE INTO note_line (number, lines) VALUES (?, ?)",
            ((number, lines.tobytes()) for number, lines in notes.items()),
        )

    def remove(self, number: int) -> None:
        """This note is gone."""
        counts: Counter[int] = Counter()
        counted = self._all("SELECT line FROM line_count")
        for lines in self._lines_of([number]).values():
            counts.subtract(counted.intersection(lines.tolist()))
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
        """From now on notes are read without these lines; the notes that must be read again."""
        changed = lines ^ self.lines()
        if not changed:
            return []
        self._database.run("DELETE FROM template_line")
        self._database.run_many(
            "INSERT INTO template_line (line) VALUES (?)", ((line,) for line in sorted(lines))
        )
        self._database.add_to(_EDITION, 1)
        numbers, owners, found = self._stored()
        has_one = np.isin(found, np.array(sorted(changed), dtype=np.uint32))
        having: list[int] = numbers[np.unique(owners[has_one])].tolist()
        return having

    def _lines_of(self, numbers: Sequence[int]) -> dict[int, Lines]:
        found: dict[int, Lines] = {}
        for start in range(0, len(numbers), _MOST_IN_QUERY):
            few = tuple(numbers[start : start + _MOST_IN_QUERY])
            marks = ", ".join("?" * len(few))
            rows = self._database.rows(
                f"SELECT number, lines FROM note_line WHERE number IN ({marks})", few
            )
            for number, data in rows:
                found[cast("int", number)] = np.frombuffer(cast("bytes", data), np.uint32)
        return found

    def _count(self, counts: Mapping[int, int]) -> None:
        self._database.run_many(
            "UPDATE line_count SET notes = notes + ? WHERE line = ?",
            ((amount, line) for line, amount in counts.items() if amount),
        )

    def _count_all(self, bound: int) -> None:
        _, _, found = self._stored()
        lines, notes = np.unique(found, return_counts=True)
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
        parts = [cast("bytes", data) for _, data in rows]
        sizes = [len(part) // np.dtype(np.uint32).itemsize for part in parts]
        return (
            np.array([cast("int", number) for number, _ in rows], dtype=np.int64),
            np.repeat(np.arange(len(rows)), sizes),
            np.frombuffer(b"".join(parts), np.uint32),
        )

    def _all(self, query: str, values: tuple[object, ...] = ()) -> frozenset[int]:
        return frozenset(cast("int", row[0]) for row in self._database.rows(query, values))
