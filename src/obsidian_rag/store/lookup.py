"""Reading the chunk table for an answer: by words, by vector, and whole rows by their number.

Each lookup returns row numbers with scores and nothing else; only the rows that matter are then
fetched, once. Row numbers hold for one version of the table, so one answer uses one `Lookup`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from obsidian_rag.store.chunks import ChunkStore, explained, of_notes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PROBES = 16
# What ranking needs; the other columns, lists above all, cost three times as much to fetch.
RANKED_BY = ("chunk_text", "names", "source_file", "link_id", "chunk_index", "date")


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A chunk as it is stored, without its vector; columns not asked for are empty."""

    chunk_text: str
    names: str
    source_file: str
    link_id: str
    chunk_index: int
    date: str | None
    words_only: str = ""
    title: str = ""
    section: str | None = None
    tags: tuple[str, ...] = ()
    heading_path: tuple[str, ...] = ()
    start_line: int = 0
    end_line: int = 0
    is_private: bool = False


_ALL = tuple(field.name for field in fields(FoundRow))


class Lookup:
    """One version of the table, for one answer. Safe to use from several threads."""

    def __init__(self, chunks: ChunkStore) -> None:
        self._table: Any = chunks.table

    def by_words(
        self, words: str, column: str, condition: str | None, limit: int, fuzziness: int = 0
    ) -> dict[int, float]:
        """Rows with any of the words, by BM25; `fuzziness` admits that many wrong letters."""
        from lancedb.query import MatchQuery

        query = MatchQuery(words, column, fuzziness=fuzziness, max_expansions=20)
        return self._scored(query, condition, limit)

    def by_phrase(
        self, phrase: str, column: str, condition: str | None, limit: int
    ) -> dict[int, float]:
        """Rows with the words of the phrase one after the other."""
        from lancedb.query import PhraseQuery

        return self._scored(PhraseQuery(phrase, column), condition, limit)

    def _scored(self, query: Any, condition: str | None, limit: int) -> dict[int, float]:
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

    def rows(self, numbers: Sequence[int], columns: Sequence[str] = _ALL) -> dict[int, FoundRow]:
        """These rows, whole but for their vectors, or only some columns of them."""
        if not numbers:
            return {}
        with explained():
            taken = self._table.take_row_ids(list(numbers)).select(list(columns))
            found = taken.with_row_id().to_arrow()
        values = zip(*(found[name].to_pylist() for name in columns), strict=True)
        named = (dict(zip(columns, row, strict=True)) for row in values)
        return dict(zip(found["_rowid"].to_pylist(), map(_row, named), strict=True))


def passages_of(
    chunks: ChunkStore, link_id: str, paths: Sequence[str]
) -> dict[str, list[FoundRow]]:
    """The passages of some notes, by note, in their order."""
    found: dict[str, list[FoundRow]] = {path: [] for path in paths}
    for condition in of_notes(link_id, list(paths)):
        with explained():
            rows = chunks.table.search().where(condition).select(list(_ALL)).limit(None).to_arrow()
        for values in zip(*(rows[name].to_pylist() for name in _ALL), strict=True):
            row = _row(dict(zip(_ALL, values, strict=True)))
            found[row.source_file].append(row)
    for passages in found.values():
        passages.sort(key=lambda row: row.chunk_index)
    return found


def _row(values: dict[str, Any]) -> FoundRow:
    for name in ("tags", "heading_path"):
        if name in values:
            values[name] = tuple(values[name] or ())
    return FoundRow(**values)
