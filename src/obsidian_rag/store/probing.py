"""Finds damage in the chunk table that its files do not show.

A few rows are read without any index; then each search index is queried for their values. An index
that does not find a row of the table is damaged, whatever its own metadata says. And each chunk's
text is compared with its stored hash.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from obsidian_rag.errors import IndexCorrupted
from obsidian_rag.notes import WORD_PART
from obsidian_rag.store.chunks import WORD_COLUMNS, WORD_INDEX, ChunkStore, quoted
from obsidian_rag.store.lance import translate_errors
from obsidian_rag.store.rows import chunk_hash

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The word index drops longer words, and shorter ones are everywhere.
_WORD_LENGTHS = range(4, 31)
_COLUMNS = ("chunk_id", *WORD_COLUMNS, "source_file", "dates", "tag_keys", "vector")
_QUICK_SAMPLES, _DEEP_SAMPLES = 3, 10
_PROBES = 16
# Stored vectors have length one, within this tolerance.
_UNIT_TOLERANCE = 0.001
_REINDEX = "Run `obsidian-rag reindex`."


@dataclass(frozen=True, slots=True)
class _Sample:
    chunk_id: str
    texts: dict[str, str]
    source_file: str
    dates: tuple[str, ...]
    tags: tuple[str, ...]
    vector: "NDArray[np.float32]"


def verify_table(chunks: ChunkStore) -> None:
    """Verify a table that has no checksums from its own rows, read from disk.

    Raises:
        IndexNotFound: the table is missing.
        IndexCorrupted: it is damaged.
    """
    chunks.close()
    probe_indexes(chunks, is_deep=True)
    verify_texts(chunks)


def verify_texts(chunks: ChunkStore) -> int:
    """Compare every chunk with its hash; returns their number.

    Raises:
        IndexNotFound: the table is missing.
        IndexCorrupted: a chunk is not what was written.
    """
    count = 0
    for path, text, words_only, expected, length in chunks.texts():
        count += 1
        is_unit = abs(length - 1) < _UNIT_TOLERANCE
        if chunk_hash(text, words_only) != expected or not is_unit:
            raise IndexCorrupted(f"A chunk of {path} is not what was written.", _REINDEX)
    return count


def probe_indexes(chunks: ChunkStore, *, is_deep: bool = False) -> int:
    """Query each search index for rows known to be in the table; returns the number of queries.

    Raises:
        IndexNotFound: the table is missing.
        IndexCorrupted: the table or an index cannot be read, or an index misses a row.
    """
    asked, wrong = _find_wrong_index(chunks, _DEEP_SAMPLES if is_deep else _QUICK_SAMPLES)
    if wrong is not None:
        raise IndexCorrupted(
            f"The search index of {wrong} misses rows that the table has.", _REINDEX
        )
    return asked


def _find_wrong_index(chunks: ChunkStore, most: int) -> tuple[int, str | None]:
    """Number of queries made, and the column whose index gave a wrong answer, if any."""
    asked = 0
    with translate_errors():
        table = chunks.table
        indexed = {column for index in table.list_indices() for column in index.columns}
        missed = 0
        samples = list(_read_samples(table, most))
        for sample in samples:
            for column, found in _probe(table, indexed, sample):
                asked += 1
                if found:
                    continue
                if column != "vector":
                    return asked, column
                missed += 1  # this index is approximate, and may miss some
        if missed * 2 > len(samples):
            return asked, "vector"
    return asked, None


def unindexed(chunks: ChunkStore) -> tuple[int, int]:
    """Number of rows not yet in the word index, and of those in it. Cheap."""
    with translate_errors():
        stats = chunks.table.index_stats(WORD_INDEX)
        if stats is None:
            return int(chunks.table.count_rows()), 0
        return int(stats.num_unindexed_rows), int(stats.num_indexed_rows)


def _read_samples(table: Any, most: int) -> Iterator[_Sample]:
    """Rows from all over the table, read without an index."""
    count = int(table.count_rows())
    places = sorted({position * count // most for position in range(most)} if count else ())
    for place in places:
        rows = table.search().select(list(_COLUMNS)).limit(1).offset(place).to_arrow()
        for row in rows.to_pylist():
            texts = {column: row[column] or "" for column in WORD_COLUMNS}
            yield _Sample(
                row["chunk_id"],
                texts,
                row["source_file"],
                tuple(row["dates"] or ()),
                tuple(row["tag_keys"] or ()),
                rows["vector"].combine_chunks().flatten().to_numpy(),
            )


def _probe(table: Any, indexed: set[str], sample: _Sample) -> Iterator[tuple[str, bool]]:
    this = f"chunk_id = {quoted(sample.chunk_id)}"
    for column in WORD_COLUMNS:
        word = _rarest_word(sample.texts[column])
        if word is not None and column in indexed:
            yield column, _finds(_by_word(table, word, column), this)
    conditions = {"source_file": f"source_file = {quoted(sample.source_file)}"}
    if sample.dates:
        conditions["dates"] = f"array_has_any(dates, [{quoted(sample.dates[-1])}])"
    if sample.tags:
        conditions["tag_keys"] = f"array_has_any(tag_keys, [{quoted(sample.tags[-1])}])"
    for column, condition in conditions.items():
        if column in indexed:
            yield column, _finds(table.search(), f"{condition} AND {this}")
    if "vector" in indexed and sample.vector.any():
        query = table.search(sample.vector, vector_column_name="vector")
        yield "vector", _finds(query.distance_type("cosine").nprobes(_PROBES), this)


def _by_word(table: Any, word: str, column: str) -> Any:
    from lancedb.query import MatchQuery

    return table.search(MatchQuery(word, column), query_type="fts")


def _finds(query: Any, condition: str) -> bool:
    return bool(query.where(condition, prefilter=True).select(["chunk_id"]).limit(1).to_list())


def _rarest_word(text: str) -> str | None:
    """The longest word: a long one is a rare one."""
    words = [
        word for word in WORD_PART.findall(text) if len(word) in _WORD_LENGTHS and word.isascii()
    ]
    return max(words, key=len, default=None)
