"""Reading the chunk table for an answer: by words, by vector, and whole rows by their number.

Each lookup returns row numbers with scores and nothing else; only the rows that matter are then
fetched, once. Row numbers hold for one version of the table, so one answer uses one `Lookup`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from obsidian_rag.store.chunks import ChunkStore, explained, of_notes
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
        self._table: Any = chunks.table

    def by_words(
        self, clauses: Sequence[Clause], condition: str | None, limit: int
    ) -> dict[int, float]:
        """Rows that fit any of the clauses, with the sum of their BM25 scores."""
        from lancedb.query import BooleanQuery, Occur

        query = BooleanQuery([(Occur.SHOULD, _match(clause)) for clause in clauses])
        try:
            with explained():
                search = self._table.search(query, query_type="fts").select(["_score"])
                if condition:
                    search = search.where(condition, prefilter=True)
                rows = search.with_row_id(True).limit(limit).to_arrow()
        except ValueError as error:
            if "INVERTED" not in str(error):
                raise
            return {}  # a first index run is under way and has made no word index yet
        return dict(zip(rows["_rowid"].to_pylist(), rows["_score"].to_pylist(), strict=True))

    def admitted(self, condition: str | None, limit: int) -> dict[int, float]:
        """Any rows that the condition admits, all with the same score."""
        with explained():
            search = self._table.search().select(["chunk_index"])
            if condition:
                search = search.where(condition)
            rows = search.with_row_id(True).limit(limit).to_arrow()
        return dict.fromkeys(rows["_rowid"].to_pylist(), 1.0)

    def by_vector(
        self, vector: "NDArray[np.float32]", condition: str | None, limit: int
    ) -> dict[int, float]:
        """The rows whose vectors are nearest, with their cosine similarity."""
        with explained():
            search = self._table.search(vector, vector_column_name="vector")
            search = search.distance_type("cosine").nprobes(_PROBES).select(["_distance"])
            if condition:
                search = search.where(condition, prefilter=True)
            rows = search.with_row_id(True).limit(limit).to_arrow()
        distances = rows["_distance"].to_pylist()
        numbers = rows["_rowid"].to_pylist()
        return {number: 1 - far for number, far in zip(numbers, distances, strict=True)}

    def rows(self, numbers: Sequence[int], *, with_code: bool = False) -> dict[int, FoundRow]:
        """These rows; `with_code` fetches also the words of their code blocks."""
        columns = (*_FOUND, "words_only") if with_code else _FOUND
        found = self._taken(numbers, columns)
        return {number: found_row(*values) for number, values in found.items()}

    def code(self, numbers: Sequence[int]) -> dict[int, str]:
        """The words of these rows' code blocks."""
        found = self._taken(numbers, ("words_only",))
        return {number: words for number, (words,) in found.items()}

    def _taken(
        self, numbers: Sequence[int], columns: Sequence[str]
    ) -> Mapping[int, tuple[Any, ...]]:
        if not numbers:
            return {}
        with explained():
            taken = self._table.take_row_ids(list(numbers)).select(list(columns))
            found = taken.with_row_id().to_arrow()
        values = zip(*(found[name].to_pylist() for name in columns), strict=True)
        return dict(zip(found["_rowid"].to_pylist(), values, strict=True))


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


def _match(clause: Clause) -> Any:
    from lancedb.query import MatchQuery, PhraseQuery

    if clause.is_phrase:
        return PhraseQuery(clause.words, clause.column)
    return MatchQuery(
        clause.words,
        clause.column,
        boost=clause.weight,
        fuzziness=clause.wrong_letters,
        max_expansions=20,
    )
