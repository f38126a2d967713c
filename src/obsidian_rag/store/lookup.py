"""Reading the chunk table for an answer: by words, by vector, and whole rows by their number.

Each lookup returns row numbers with scores and nothing else; only the rows that matter are then
fetched, once. Row numbers hold for one version of the table, so one answer uses one `Lookup`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from obsidian_rag.store.chunks import ChunkStore, explained, of_notes
from obsidian_rag.store.lance import wait_for
from obsidian_rag.store.rows import FoundRow, found_row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PROBES = 16
_FOUND = ("chunk_text", "card")


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

    def by_words(
        self, clauses: Sequence[Clause], condition: str | None, limit: int
    ) -> dict[int, float]:
        """The best `limit` rows of each clause, with the sum of their weighted BM25 scores."""
        return wait_for(self._by_words(clauses, condition, limit))

    def by_vector(
        self, vector: "NDArray[np.float32]", condition: str | None, limit: int
    ) -> dict[int, float]:
        """The rows whose vectors are nearest, with their cosine similarity."""
        return wait_for(self._by_vector(vector, condition, limit))

    def by_both(
        self,
        clauses: Sequence[Clause],
        vector: "NDArray[np.float32] | None",
        condition: str | None,
        limit: int,
    ) -> tuple[dict[int, float], dict[int, float]]:
        """Rows by words and rows by vector, looked up side by side; none for what is not asked."""

        async def both() -> tuple[dict[int, float], dict[int, float]]:
            words, nearest = await asyncio.gather(
                self._by_words(clauses, condition, limit),
                self._by_vector(vector, condition, limit),
            )
            return words, nearest

        return wait_for(both())

    def admitted(self, condition: str | None, limit: int) -> dict[int, float]:
        """Any rows that the condition admits, all with the same score."""
        query = self._table.query().select(["chunk_index"])
        rows = wait_for(_fetched(query, condition, limit))
        return dict.fromkeys(rows["_rowid"].to_pylist(), 1.0)

    async def _by_words(
        self, clauses: Sequence[Clause], condition: str | None, limit: int
    ) -> dict[int, float]:
        # Not as one Boolean query: that looks at every row with any of the words, however many.
        found = await asyncio.gather(*(self._matches(one, condition, limit) for one in clauses))
        return summed([(one.weight, rows) for one, rows in zip(clauses, found, strict=True)])

    async def _matches(self, clause: Clause, condition: str | None, limit: int) -> dict[int, float]:
        query = self._table.query().nearest_to_text(_match(clause)).select(["_score"])
        try:
            rows = await _fetched(query, condition, limit)
        except ValueError as error:
            if "INVERTED" not in str(error):
                raise
            return {}  # a first index run is under way and has made no word index yet
        return dict(zip(rows["_rowid"].to_pylist(), rows["_score"].to_pylist(), strict=True))

    async def _by_vector(
        self, vector: "NDArray[np.float32] | None", condition: str | None, limit: int
    ) -> dict[int, float]:
        if vector is None:
            return {}
        query = self._table.query().nearest_to(vector).column("vector")
        query = query.distance_type("cosine").nprobes(_PROBES).select(["_distance"])
        rows = await _fetched(query, condition, limit)
        distances = rows["_distance"].to_pylist()
        numbers = rows["_rowid"].to_pylist()
        return {number: 1 - far for number, far in zip(numbers, distances, strict=True)}

    def rows(self, numbers: Sequence[int], *, with_words_only: bool = False) -> dict[int, FoundRow]:
        """These rows; `with_words_only` fetches also what is found by word only."""
        columns = (*_FOUND, "words_only") if with_words_only else _FOUND
        found = self._taken(numbers, columns)
        return {number: found_row(*values) for number, values in found.items()}

    def words_only(self, numbers: Sequence[int]) -> dict[int, str]:
        """What is found by word only in these rows: code and properties."""
        found = self._taken(numbers, ("words_only",))
        return {number: words for number, (words,) in found.items()}

    def _taken(
        self, numbers: Sequence[int], columns: Sequence[str]
    ) -> Mapping[int, tuple[Any, ...]]:
        if not numbers:
            return {}
        with explained():
            taken = self._table.take_row_ids(list(numbers)).select(list(columns))
            found = wait_for(taken.with_row_id().to_arrow())
        values = zip(*(found[name].to_pylist() for name in columns), strict=True)
        return dict(zip(found["_rowid"].to_pylist(), values, strict=True))


def summed(scores: Sequence[tuple[float, Mapping[int, float]]]) -> dict[int, float]:
    """Weighted sums of several scores; a row missing from one counts nothing there."""
    total: dict[int, float] = {}
    for weight, part in scores:
        for number, score in part.items():
            total[number] = total.get(number, 0.0) + weight * score
    return total


def passages_of(
    chunks: ChunkStore, link_id: str, paths: Sequence[str]
) -> dict[str, list[FoundRow]]:
    """The passages of some notes, by note, in their order."""
    found: dict[str, list[FoundRow]] = {path: [] for path in paths}
    for condition in of_notes(link_id, list(paths)):
        with explained():
            search = chunks.table.search().where(condition).select(list(_FOUND))
            rows = search.limit(None).to_arrow()
        for row in map(found_row, *(rows[name].to_pylist() for name in _FOUND)):
            found[row.source_file].append(row)
    for passages in found.values():
        passages.sort(key=lambda row: row.chunk_index)
    return found


async def _fetched(query: Any, condition: str | None, limit: int) -> Any:
    """The rows of a query that the condition admits, decided before they are ranked."""
    with explained():
        if condition:
            query = query.where(condition)
        return await query.with_row_id().limit(limit).to_arrow()


def _match(clause: Clause) -> Any:
    from lancedb.query import MatchQuery, PhraseQuery

    if clause.is_phrase:
        return PhraseQuery(clause.words, clause.column)
    return MatchQuery(
        clause.words, clause.column, fuzziness=clause.wrong_letters, max_expansions=20
    )
