"""Reading the chunk table for an answer: by words, by vector, and whole rows by their number.

Each lookup returns row numbers with scores and nothing else; only the rows that matter are then
fetched, once. Row numbers hold for one version of the table, so one answer uses one `Lookup`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from obsidian_rag.errors import IndexCorrupted
from obsidian_rag.store.chunks import ChunkStore, of_notes, of_several_vaults, quoted
from obsidian_rag.store.lance import all_rows, begin, explained, has_no_word_index, wait_for
from obsidian_rag.store.rows import FoundRow, found_row

if TYPE_CHECKING:
    from concurrent.futures import Future

    import numpy as np
    from numpy.typing import NDArray

Note = tuple[str, str]
_PROBES = 16
_FOUND = ("chunk_text", "card", "chunk_id")
# By open table, which holds one version: counting for every question would cost a millisecond.
_having_private: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
_counts: WeakKeyDictionary[Any, dict[str | None, tuple[int, dict[str, int]]]] = WeakKeyDictionary()
_chunks: WeakKeyDictionary[Any, dict[Note, list[str]]] = WeakKeyDictionary()
_MOST_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Clause:
    """Something to look for in a column: any of the words, or all of them one after the other."""

    words: str
    column: str
    weight: float = 1.0
    wrong_letters: int = 0
    is_phrase: bool = False


class Lookup:
    """One version of the table, for one answer. Safe to use from several threads."""

    def __init__(self, chunks: ChunkStore) -> None:
        self._table: Any = chunks.reader
        self._nearest: dict[tuple[bytes, str | None, int], Future[dict[int, float]]] = {}

    def has_private(self) -> bool:
        """Whether any row is of a note that says `rag: private`."""
        found = _having_private.get(self._table)
        if found is None:
            with explained():
                found = wait_for(self._table.count_rows("is_private")) > 0
            _having_private[self._table] = found
        return found

    def by_words(
        self, clauses: Sequence[Clause], condition: str | None, limit: int
    ) -> dict[int, float]:
        """The best `limit` rows of each clause, with the sum of their weighted BM25 scores."""
        found = self.begin_by_words(clauses, condition, limit).result()
        return summed([(one.weight, rows) for one, rows in zip(clauses, found, strict=True)])

    def begin_by_words(
        self, clauses: Sequence[Clause], condition: str | None, limit: int
    ) -> "Future[list[dict[int, float]]]":
        """Begin to look up the best `limit` rows of each clause, with their BM25 scores."""

        # Not as one Boolean query: that looks at every row with any of the words, however many.
        async def look() -> list[dict[int, float]]:
            return await asyncio.gather(*(self._matches(one, condition, limit) for one in clauses))

        return begin(look())

    def begin_by_vector(
        self, vector: "NDArray[np.float32]", condition: str | None, limit: int
    ) -> "Future[dict[int, float]]":
        """Begin to look up the rows nearest to a vector, with their cosine similarity.

        Who asks for the same again gets what has begun.
        """
        key = vector.tobytes(), condition, limit
        if key not in self._nearest:
            self._nearest[key] = begin(self._by_vector(vector, condition, limit))
        return self._nearest[key]

    def chunk_ids(self, condition: str, limit: int) -> list[str]:
        """The ids of the chunks that a condition admits, as many as that at most."""
        query = self._table.query().select(["chunk_id"])
        found: list[str] = wait_for(_fetched(query, condition, limit))["chunk_id"].to_pylist()
        return found

    def chunks_of_notes(self, notes: Sequence[Note], limit: int) -> dict[Note, list[str]]:
        """The ids of the chunks of some notes, given as (link id, path).

        At most `limit` are looked up; those of notes that were asked for before are remembered.
        """
        known = _chunks.setdefault(self._table, {})
        there = {note: known[note] for note in notes if note in known}
        conditions = list(of_several_vaults(note for note in notes if note not in there))
        found: dict[Note, list[str]] = {}
        if conditions:
            columns = ["link_id", "source_file", "chunk_id"]
            query = self._table.query().select(columns)
            rows = wait_for(_fetched(query, " OR ".join(f"({one})" for one in conditions), limit))
            values = (rows[name].to_pylist() for name in columns)
            for link_id, path, chunk_id in zip(*values, strict=True):
                found.setdefault((link_id, path), []).append(chunk_id)
            if len(rows) < limit:  # what was cut short would show in the next answer
                if len(known) > _MOST_REMEMBERED:
                    known.clear()
                known.update(found)
        return there | found

    def admitted(self, condition: str | None, limit: int) -> dict[int, float]:
        """Any rows that the condition admits, all with the same score."""
        query = self._table.query().select(["chunk_index"])
        rows = wait_for(_fetched(query, condition, limit))
        return dict.fromkeys(rows["_rowid"].to_pylist(), 1.0)

    def counts(
        self, words: Sequence[str], most: int, condition: str | None
    ) -> tuple[int, dict[str, int]]:
        """How many rows there are, and how many, up to `most`, have each word in their text.

        Only rows that the condition admits count.
        """
        by_table = _counts.setdefault(self._table, {})
        total, known = by_table.get(condition, (-1, {}))

        async def missing() -> tuple[int, list[int]]:
            count = total
            if count < 0:
                with explained():
                    count = await self._table.count_rows(condition)
            unknown = (self._count(Clause(word, "chunk_text"), condition, most) for word in asked)
            return count, await asyncio.gather(*unknown)

        asked = [word for word in words if word not in known]
        if asked or total < 0:
            total, found = wait_for(missing())
            known = {**known, **dict(zip(asked, found, strict=True))}
            by_table[condition] = total, known if len(known) <= _MOST_REMEMBERED else {}
        return total, {word: known[word] for word in words}

    async def _count(self, clause: Clause, condition: str | None, most: int) -> int:
        rows = await self._matching(clause, condition, most)
        return 0 if rows is None else len(rows)

    def numbers(self, chunk_ids: Sequence[str], condition: str | None) -> dict[str, int]:
        """The numbers of those of these chunks that the condition admits."""
        if not chunk_ids:
            return {}
        ids = f"chunk_id IN ({', '.join(map(quoted, chunk_ids))})"
        query = self._table.query().select(["chunk_id"])
        wanted = f"{ids} AND {condition}" if condition else ids
        rows = wait_for(_fetched(query, wanted, len(chunk_ids)))
        return dict(zip(rows["chunk_id"].to_pylist(), rows["_rowid"].to_pylist(), strict=True))

    async def _matches(self, clause: Clause, condition: str | None, limit: int) -> dict[int, float]:
        rows = await self._matching(clause, condition, limit)
        if rows is None:
            return {}
        return dict(zip(rows["_rowid"].to_pylist(), rows["_score"].to_pylist(), strict=True))

    async def _matching(self, clause: Clause, condition: str | None, limit: int) -> Any:
        query = self._table.query().nearest_to_text(_match(clause)).select(["_score"])
        try:
            return await _fetched(query, condition, limit)
        except IndexCorrupted as error:
            if not has_no_word_index(error):
                raise
            return None  # a first index run is under way and has made no word index yet

    async def _by_vector(
        self, vector: "NDArray[np.float32]", condition: str | None, limit: int
    ) -> dict[int, float]:
        query = self._table.query().nearest_to(vector).column("vector")
        # The index keeps one bit of each number, which tells what is near, but not how near: that
        # is told by the rows' own vectors.
        query = query.distance_type("cosine").nprobes(_PROBES).refine_factor(1)
        query = query.select(["_distance"])
        rows = await _fetched(query, condition, limit)
        distances = rows["_distance"].to_pylist()
        numbers = rows["_rowid"].to_pylist()
        return {number: 1 - far for number, far in zip(numbers, distances, strict=True)}

    def rows(self, numbers: Sequence[int], *, with_words_only: bool = False) -> dict[int, FoundRow]:
        """These rows; `with_words_only` fetches also what is found by word only."""
        columns = (*_FOUND, "words_only") if with_words_only else _FOUND
        if not numbers:
            return {}
        with explained():
            taken = self._table.take_row_ids(list(numbers)).select(list(columns))
            found = wait_for(all_rows(taken.with_row_id()))
            rows = map(found_row, *(found[name].to_pylist() for name in columns))
            return dict(zip(found["_rowid"].to_pylist(), rows, strict=True))


def summed(scores: Sequence[tuple[float, Mapping[int, float]]]) -> dict[int, float]:
    """Weighted sums of several scores; a row missing from one counts nothing there."""
    total: dict[int, float] = {}
    for weight, part in scores:
        for number, score in part.items():
            total[number] = total.get(number, 0.0) + weight * score
    return total


def passages_of(
    chunks: ChunkStore, link_id: str, paths: Sequence[str], *, with_words_only: bool = False
) -> dict[str, list[FoundRow]]:
    """The passages of some notes, by note, in their order."""
    columns = (*_FOUND, "words_only") if with_words_only else _FOUND
    return chunks.look_up(lambda: _passages_of(chunks, link_id, paths, columns))


def _passages_of(
    chunks: ChunkStore, link_id: str, paths: Sequence[str], columns: Sequence[str]
) -> dict[str, list[FoundRow]]:
    found: dict[str, list[FoundRow]] = {path: [] for path in paths}
    for condition in of_notes(link_id, list(paths)):
        with explained():
            search = chunks.table.search().where(condition).select(list(columns))
            rows = search.limit(None).to_arrow()
            for row in map(found_row, *(rows[name].to_pylist() for name in columns)):
                found[row.source_file].append(row)
    for passages in found.values():
        passages.sort(key=lambda row: row.chunk_index)
    return found


def titles_of(chunks: ChunkStore, condition: str, limit: int) -> dict[str, str]:
    """The titles of the notes with rows that the condition admits, by path."""
    with explained():
        query = chunks.table.search().where(condition).select(["source_file", "title"])
        rows = query.limit(limit).to_arrow()
        return dict(zip(rows["source_file"].to_pylist(), rows["title"].to_pylist(), strict=True))


def public_titles(chunks: ChunkStore, link_id: str, paths: Sequence[str]) -> dict[str, str]:
    """The titles of those of these notes that are not private, as their first chunks have them."""
    names = ", ".join(quoted(path) for path in paths)
    condition = (
        f"link_id = {quoted(link_id)} AND chunk_index = 0 AND is_private = false"
        f" AND source_file IN ({names})"
    )
    return titles_of(chunks, condition, len(paths))


async def _fetched(query: Any, condition: str | None, limit: int) -> Any:
    """The rows of a query that the condition admits, decided before they are ranked."""
    with explained():
        if condition:
            query = query.where(condition)
        return await all_rows(query.with_row_id().limit(limit))


def _match(clause: Clause) -> Any:
    from lancedb.query import MatchQuery, PhraseQuery

    if clause.is_phrase:
        return PhraseQuery(clause.words, clause.column)
    return MatchQuery(
        clause.words, clause.column, fuzziness=clause.wrong_letters, max_expansions=20
    )
