"""Reads the chunk table: by words, by vector, by row number, note by note, or all of it.

A search returns only row numbers and scores; the rows that matter are then fetched once. Row
numbers are valid for one version of the table, so each answer uses one `Lookup`.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from obsidian_rag.errors import IndexCorrupted
from obsidian_rag.notes import embedding_head
from obsidian_rag.store.chunks import (
    WORD_INDEX,
    ChunkStore,
    of_notes,
    of_several_vaults,
    quoted,
)
from obsidian_rag.store.lance import all_rows, begin, has_no_word_index, translate_errors, wait_for
from obsidian_rag.store.rows import FoundRow, found_row

if TYPE_CHECKING:
    from concurrent.futures import Future

    import numpy as np
    from numpy.typing import NDArray

Note = tuple[str, str]
_PROBES = 16
_FOUND_COLUMNS = ("chunk_text", "card", "chunk_id")
# Keyed by open table, so by version: counting for every search would cost a millisecond.
_private_by_table: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
_counts_by_table: WeakKeyDictionary[Any, dict[str | None, tuple[int, dict[str, int]]]] = (
    WeakKeyDictionary()
)
_chunks_by_table: WeakKeyDictionary[Any, dict[Note, list[str]]] = WeakKeyDictionary()
_MAX_REMEMBERED = 10_000
_unindexed_by_table: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
# Fuzzy matching of more unindexed rows than this takes too long.
_MAX_FUZZY_ROWS = 512
_BATCH_ROWS = 4096
_PLACE_COLUMNS = ["chunk_id", "link_id", "source_file", "modified_at", "indexed_at"]
_TEXT_COLUMNS = ["title", "heading_path", "chunk_text"]


@dataclass(frozen=True, slots=True)
class Clause:
    """A search in one column: for any of the words, or for the phrase."""

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
        """Whether any row belongs to a note with `rag: private`."""
        found = _private_by_table.get(self._table)
        if found is None:
            with translate_errors():
                found = wait_for(self._table.count_rows("is_private")) > 0
            _private_by_table[self._table] = found
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
        """Start a search for the best `limit` rows of each clause, with their BM25 scores."""

        # Not one Boolean query: that would score every row with any of the words.
        async def look() -> list[dict[int, float]]:
            return await asyncio.gather(
                *(self._score_matches(one, condition, limit) for one in clauses)
            )

        return begin(look())

    def begin_by_vector(
        self, vector: "NDArray[np.float32]", condition: str | None, limit: int
    ) -> "Future[dict[int, float]]":
        """Start a search for the rows nearest to a vector, with their cosine similarity.

        The same search is started once; later calls get the same future.
        """
        key = vector.tobytes(), condition, limit
        if key not in self._nearest:
            self._nearest[key] = begin(self._search_vector(vector, condition, limit))
        return self._nearest[key]

    def chunk_ids(self, condition: str, limit: int) -> list[str]:
        """The ids of at most `limit` chunks that match a condition."""
        query = self._table.query().select(["chunk_id"])
        found: list[str] = wait_for(_fetch(query, condition, limit))["chunk_id"].to_pylist()
        return found

    def chunks_of_notes(self, notes: Sequence[Note], limit: int) -> dict[Note, list[str]]:
        """The ids of the chunks of some notes, given as (link id, path).

        At most `limit` are looked up; results are cached by note.
        """
        known = _chunks_by_table.setdefault(self._table, {})
        there = {note: known[note] for note in notes if note in known}
        conditions = list(of_several_vaults(note for note in notes if note not in there))
        found: dict[Note, list[str]] = {}
        if conditions:
            columns = ["link_id", "source_file", "chunk_id"]
            query = self._table.query().select(columns)
            rows = wait_for(_fetch(query, " OR ".join(f"({one})" for one in conditions), limit))
            values = (rows[name].to_pylist() for name in columns)
            for link_id, path, chunk_id in zip(*values, strict=True):
                found.setdefault((link_id, path), []).append(chunk_id)
            if len(rows) < limit:  # a truncated result must not be cached
                if len(known) > _MAX_REMEMBERED:
                    known.clear()
                known.update(found)
        return there | found

    def admitted(self, condition: str | None, limit: int) -> dict[int, float]:
        """Any rows that match the condition, all with the same score."""
        query = self._table.query().select(["chunk_index"])
        rows = wait_for(_fetch(query, condition, limit))
        return dict.fromkeys(rows["_rowid"].to_pylist(), 1.0)

    def counts(
        self, words: Sequence[str], most: int, condition: str | None
    ) -> tuple[int, dict[str, int]]:
        """The number of rows, and of rows with each word in their text, counted up to `most`.

        Only rows that match the condition count.
        """
        by_table = _counts_by_table.setdefault(self._table, {})
        total, known = by_table.get(condition, (-1, {}))

        async def missing() -> tuple[int, list[int]]:
            count = total
            if count < 0:
                with translate_errors():
                    count = await self._table.count_rows(condition)
            unknown = (self._count(Clause(word, "chunk_text"), condition, most) for word in asked)
            return count, await asyncio.gather(*unknown)

        asked = [word for word in words if word not in known]
        if asked or total < 0:
            total, found = wait_for(missing())
            known = {**known, **dict(zip(asked, found, strict=True))}
            by_table[condition] = total, known if len(known) <= _MAX_REMEMBERED else {}
        return total, {word: known[word] for word in words}

    async def _count(self, clause: Clause, condition: str | None, most: int) -> int:
        rows = await self._fetch_matches(clause, condition, most)
        return 0 if rows is None else len(rows)

    def numbers(self, chunk_ids: Sequence[str], condition: str | None) -> dict[str, int]:
        """The row numbers of the chunks among these that match the condition."""
        if not chunk_ids:
            return {}
        ids = f"chunk_id IN ({', '.join(map(quoted, chunk_ids))})"
        query = self._table.query().select(["chunk_id"])
        wanted = f"{ids} AND {condition}" if condition else ids
        rows = wait_for(_fetch(query, wanted, len(chunk_ids)))
        return dict(zip(rows["chunk_id"].to_pylist(), rows["_rowid"].to_pylist(), strict=True))

    async def _score_matches(
        self, clause: Clause, condition: str | None, limit: int
    ) -> dict[int, float]:
        rows = await self._fetch_matches(clause, condition, limit)
        if rows is None:
            return {}
        return dict(zip(rows["_rowid"].to_pylist(), rows["_score"].to_pylist(), strict=True))

    async def _fetch_matches(self, clause: Clause, condition: str | None, limit: int) -> Any:
        query = self._table.query().nearest_to_text(_to_query(clause)).select(["_score"])
        try:
            if clause.wrong_letters and await self._skip_unindexed():
                query = query.fast_search()
            return await _fetch(query, condition, limit)
        except IndexCorrupted as error:
            if not has_no_word_index(error):
                raise
            return None  # a first index run has not created the word index yet

    async def _skip_unindexed(self) -> bool:
        """Whether many rows are not in the word index yet, as during an import."""
        found = _unindexed_by_table.get(self._table)
        if found is None:
            with translate_errors():
                stats = await self._table.index_stats(WORD_INDEX)
            found = stats is not None and stats.num_unindexed_rows > _MAX_FUZZY_ROWS
            _unindexed_by_table[self._table] = found
        return found

    async def _search_vector(
        self, vector: "NDArray[np.float32]", condition: str | None, limit: int
    ) -> dict[int, float]:
        query = self._table.query().nearest_to(vector).column("vector")
        # The index keeps one bit per dimension: enough to find candidates, but distances need the
        # full vectors, so refine.
        query = query.distance_type("cosine").nprobes(_PROBES).refine_factor(1)
        query = query.select(["_distance"])
        rows = await _fetch(query, condition, limit)
        distances = rows["_distance"].to_pylist()
        numbers = rows["_rowid"].to_pylist()
        return {number: 1 - far for number, far in zip(numbers, distances, strict=True)}

    def rows(self, numbers: Sequence[int], *, with_words_only: bool = False) -> dict[int, FoundRow]:
        """These rows; `with_words_only` also fetches the text that only word search uses."""
        columns = (*_FOUND_COLUMNS, "words_only") if with_words_only else _FOUND_COLUMNS
        if not numbers:
            return {}
        with translate_errors():
            taken = self._table.take_row_ids(list(numbers)).select(list(columns))
            found = wait_for(all_rows(taken.with_row_id()))
            rows = map(found_row, *(found[name].to_pylist() for name in columns))
            return dict(zip(found["_rowid"].to_pylist(), rows, strict=True))


def summed(scores: Sequence[tuple[float, Mapping[int, float]]]) -> dict[int, float]:
    """Weighted sums of several scores; a missing row counts as 0."""
    total: dict[int, float] = {}
    for weight, part in scores:
        for number, score in part.items():
            total[number] = total.get(number, 0.0) + weight * score
    return total


def passages_of(
    chunks: ChunkStore, link_id: str, paths: Sequence[str], *, with_words_only: bool = False
) -> dict[str, list[FoundRow]]:
    """The passages of some notes, by path, in order."""
    columns = (*_FOUND_COLUMNS, "words_only") if with_words_only else _FOUND_COLUMNS
    return chunks.look_up(lambda: _read_passages(chunks, link_id, paths, columns))


def _read_passages(
    chunks: ChunkStore, link_id: str, paths: Sequence[str], columns: Sequence[str]
) -> dict[str, list[FoundRow]]:
    found: dict[str, list[FoundRow]] = {path: [] for path in paths}
    for condition in of_notes(link_id, list(paths)):
        with translate_errors():
            search = chunks.table.search().where(condition).select(list(columns))
            rows = search.limit(None).to_arrow()
            for row in map(found_row, *(rows[name].to_pylist() for name in columns)):
                found[row.source_file].append(row)
    for passages in found.values():
        passages.sort(key=lambda row: row.chunk_index)
    return found


def titles_of(chunks: ChunkStore, condition: str, limit: int) -> dict[str, str]:
    """Titles, by path, of the notes whose rows match the condition."""
    with translate_errors():
        query = chunks.table.search().where(condition).select(["source_file", "title"])
        rows = query.limit(limit).to_arrow()
        return dict(zip(rows["source_file"].to_pylist(), rows["title"].to_pylist(), strict=True))


def public_titles(chunks: ChunkStore, link_id: str, paths: Sequence[str]) -> dict[str, str]:
    """Titles of the notes among these that are not private, from their first chunks."""
    names = ", ".join(quoted(path) for path in paths)
    condition = (
        f"link_id = {quoted(link_id)} AND chunk_index = 0 AND is_private = false"
        f" AND source_file IN ({names})"
    )
    return titles_of(chunks, condition, len(paths))


async def _fetch(query: Any, condition: str | None, limit: int) -> Any:
    """The query's rows; the condition is applied before ranking."""
    with translate_errors():
        if condition:
            query = query.where(condition)
        return await all_rows(query.with_row_id().limit(limit))


def _to_query(clause: Clause) -> Any:
    from lancedb.query import MatchQuery, PhraseQuery

    if clause.is_phrase:
        return PhraseQuery(clause.words, clause.column)
    return MatchQuery(
        clause.words, clause.column, fuzziness=clause.wrong_letters, max_expansions=20
    )


class ChunkPlace(NamedTuple):
    """A chunk, its note, and when the note was modified and indexed."""

    chunk_id: str
    link_id: str
    source_file: str
    modified_at: str
    indexed_at: str


class EmbeddedChunk(NamedTuple):
    """A chunk, its embedded text, and how many characters of that are title and headings."""

    place: ChunkPlace
    text: str
    head_chars: int


def chunk_places(chunks: ChunkStore) -> Iterator[list[ChunkPlace]]:
    """Every chunk, without its text."""
    for batch in _read_batches(chunks, _PLACE_COLUMNS, None):
        yield [ChunkPlace(*values) for values in batch]


def embedded_chunks(
    chunks: ChunkStore, notes: Iterable[tuple[str, str]] | None = None
) -> Iterator[list[EmbeddedChunk]]:
    """Every chunk with its text, or those of some notes, given as (link id, path)."""
    for condition in [None] if notes is None else of_several_vaults(notes):
        for batch in _read_batches(chunks, _PLACE_COLUMNS + _TEXT_COLUMNS, condition):
            yield [
                EmbeddedChunk(ChunkPlace(*place), head + text, len(head))
                for *place, title, headings, text in batch
                for head in [embedding_head(title, headings or ())]
            ]


def _read_batches(
    chunks: ChunkStore, columns: list[str], condition: str | None
) -> Iterator[list[tuple[Any, ...]]]:
    with translate_errors():
        query = chunks.table.search()
        if condition is not None:
            query = query.where(condition)
        for batch in query.select(columns).limit(None).to_batches(_BATCH_ROWS):
            rows = [batch[name].to_pylist() for name in columns]
            yield list(zip(*rows, strict=True))
