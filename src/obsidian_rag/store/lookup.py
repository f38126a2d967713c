"""Reading the chunk table for an answer: by words, by vector, and whole rows by their number.

Each lookup returns row numbers with scores and nothing else; only the rows that matter are then
fetched, once. Row numbers hold for one version of the table, so one answer uses one `Lookup`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from obsidian_rag.store.chunks import ChunkStore, explained

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PROBES = 24
_COLUMNS = (
    "chunk_text",
    "words_only",
    "names",
    "title",
    "source_file",
    "link_id",
    "chunk_index",
    "section",
    "date",
    "tags",
    "heading_path",
    "start_line",
    "end_line",
    "is_private",
)


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A chunk as it is stored, without its vector."""

    chunk_text: str
    words_only: str
    names: str
    title: str
    source_file: str
    link_id: str
    chunk_index: int
    section: str | None
    date: str | None
    tags: tuple[str, ...]
    heading_path: tuple[str, ...]
    start_line: int
    end_line: int
    is_private: bool


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

    def rows(self, numbers: Sequence[int]) -> dict[int, FoundRow]:
        """These rows, whole but for their vectors."""
        if not numbers:
            return {}
        with explained():
            taken = self._table.take_row_ids(list(numbers)).select(list(_COLUMNS))
            found = taken.with_row_id().to_arrow()
        columns = [found[name].to_pylist() for name in _COLUMNS]
        return {
            number: _row(values)
            for number, values in zip(
                found["_rowid"].to_pylist(), zip(*columns, strict=True), strict=True
            )
        }


def _row(values: tuple[Any, ...]) -> FoundRow:
    fields = dict(zip(_COLUMNS, values, strict=True))
    fields["tags"] = tuple(fields["tags"] or ())
    fields["heading_path"] = tuple(fields["heading_path"] or ())
    return FoundRow(**fields)
