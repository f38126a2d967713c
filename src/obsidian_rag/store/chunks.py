"""The LanceDB table `obsidian_chunks`: every passage with its vector, rebuildable at any time.

LanceDB costs over a second to import, so it is imported when the first row is touched. Files are
compared with what was recorded of them before they are read, because a damaged one can make the
core of LanceDB answer wrongly, panic, or ask for all the memory there is. Whatever still surfaces
while rows are read is told to the caller as IndexCorrupted, without a word of what was read.
"""

import contextlib
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from obsidian_rag.errors import IndexCorrupted, IndexNotFound
from obsidian_rag.notes import date_keys, tag_keys
from obsidian_rag.store import checksums
from obsidian_rag.store.lance import REINDEX, explained, lancedb, wait_for
from obsidian_rag.store.rows import ChunkRow, card

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

TABLE = "obsidian_chunks"
NEXT_TABLE = "obsidian_chunks_next"
SCHEMA_VERSION = 4
VECTOR_INDEX_FROM = 30_000
# How long a version is kept for readers. A question takes a moment, and is asked again when its
# version is gone.
READER_WINDOW_S = 60.0
# What a look hashes of files that nobody touched: some ten milliseconds' worth.
_HASHED_AT_ONCE = 32_000_000
WORD_COLUMNS = ("chunk_text", "names", "words_only")
_PATHS_PER_FILTER = 500
_MAGIC = b"LANC"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """What is needed of an old row to keep its id and vector."""

    chunk_id: str
    content_hash: str
    title: str
    heading_path: tuple[str, ...]
    vector: "NDArray[np.float32]"


class ChunkStore:
    """One table of chunks in a local folder or an object store."""

    def __init__(self, uri: str, name: str = TABLE) -> None:
        self.uri = uri
        self.name = name
        self._handle: Any = None
        self._reader: Any = None
        # The files that were hashed and found right, as they were then.
        self._verified: dict[str, checksums.Stamp] = {}
        # Whether its files were looked at since it was let go.
        self._is_checked = False
        # Whether we have recorded all that we wrote.
        self._is_recorded = False

    @property
    def folder(self) -> Path | None:
        """Where the table lies on this machine; None for an object store."""
        return None if "://" in self.uri else Path(self.uri) / f"{self.name}.lance"

    def exists(self) -> bool:
        """Whether there is a table; cheap for a local one."""
        if self.folder is not None:
            return self.folder.is_dir()
        try:
            _connect(self.uri).open_table(self.name)
        except (ValueError, FileNotFoundError) as error:
            if "not found" not in str(error):
                raise
            return False
        return True

    def create(self, dimensions: int) -> None:
        """Make an empty table, in place of whatever was there."""
        self.drop()
        with explained():
            self._handle = _connect(self.uri).create_table(
                self.name, schema=_schema(dimensions), mode="overwrite"
            )
            self.record()

    def drop(self) -> None:
        """Remove the table, damaged or not."""
        self.close()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        elif self.exists():
            _connect(self.uri).drop_table(self.name)

    @property
    def table(self) -> Any:
        """The open table.

        Raises:
            IndexNotFound: there is none.
            IndexCorrupted: it cannot be opened.
        """
        handle = self._handle  # another thread may let go of it at any moment
        if handle is None:
            self._check_once()
            with explained():
                handle = self._handle = _connect(self.uri).open_table(self.name)
        return handle

    @property
    def reader(self) -> Any:
        """The table for questions: LanceDB's asynchronous one, at the version of now.

        Raises:
            IndexNotFound: there is none.
            IndexCorrupted: it cannot be opened.
        """
        reader = self._reader
        if reader is None:
            self._check_once()
            with explained():
                reader = self._reader = wait_for(_open_reader(self.uri, self.name))
        return reader

    def must_exist(self) -> None:
        """Refuse to go on without a table.

        Raises:
            IndexNotFound: there is none.
        """
        if not self.exists():
            raise IndexNotFound("There is no index yet.", "Run `obsidian-rag index`.")

    def close(self) -> None:
        """Let go of the table; it is opened again when needed."""
        self._handle = self._reader = None
        self._is_checked = self._is_recorded = False

    def look_up(self, read: Callable[[], T]) -> T:
        """What is read of the table, also if another process drops its version or swaps it."""
        try:
            return read()
        except IndexCorrupted:
            self.close()
            return read()

    @property
    def dimensions(self) -> int:
        """The width of the stored vectors."""
        return int(self.table.schema.field("vector").type.list_size)

    def count(self) -> int:
        """The number of chunks."""
        with explained():
            return int(self.table.count_rows())

    def fetch(self, link_id: str, paths: Iterable[str]) -> dict[str, list[StoredChunk]]:
        """The rows of these notes, by note, in their order."""
        columns = ["chunk_id", "content_hash", "title", "heading_path", "vector", "source_file"]
        found: dict[str, list[StoredChunk]] = {}
        for condition in of_notes(link_id, list(paths)):
            with explained():
                rows = self.table.search().where(condition).select(columns).limit(None).to_arrow()
                vectors = rows["vector"].combine_chunks()
                matrix = vectors.flatten().to_numpy().reshape(len(rows), -1) if len(rows) else []
                plain = [rows[name].to_pylist() for name in columns if name != "vector"]
            for position, (chunk_id, text_hash, title, headings, path) in enumerate(
                zip(*plain, strict=True)
            ):
                found.setdefault(path, []).append(
                    StoredChunk(chunk_id, text_hash, title, tuple(headings), matrix[position])
                )
        return found

    def replace(
        self,
        link_id: str,
        stale: Iterable[str],
        rows: Sequence[ChunkRow],
        vectors: "NDArray[np.float32]",
    ) -> None:
        """Remove the rows of the `stale` notes and add new ones.

        Two commits: a crash between them leaves notes missing whose queue rows still stand.
        """
        self._reader = None
        self._is_recorded = False
        added = _arrow(rows, vectors) if rows else None
        with explained():
            for condition in of_notes(link_id, list(stale)):
                self.table.delete(condition)
            if added is not None:
                self.table.add(added)
            self.record()

    def remove_link(self, link_id: str) -> None:
        """Remove all rows of a vault."""
        self._reader = None
        self._is_recorded = False
        with explained():
            self.table.delete(f"link_id = {quoted(link_id)}")
            self.record()

    def maintain(self, *, window_s: float = READER_WINDOW_S) -> None:
        """Merge small files, drop old versions, and bring the search indexes up to date.

        Versions of the last `window_s` seconds are kept for readers.
        """
        self._reader = None
        self._is_recorded = False
        with explained():
            rows = int(self.table.count_rows())
            if rows == 0:
                return
            if self.folder is not None:
                checksums.unsettle(self.folder)
            # Merge first: an index made before it would be made again.
            keep = timedelta(seconds=window_s)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # "removes every version": intended
                _retry(lambda: self.table.optimize(cleanup_older_than=keep))
            _retry(lambda: self._index(rows))
            self.record()

    def _index(self, rows: int) -> None:
        from lancedb.index import FTS, BTree, IvfRq, LabelList

        present = {column for index in self.table.list_indices() for column in index.columns}
        for column in WORD_COLUMNS:
            if column not in present:
                words = FTS(
                    with_position=column == "chunk_text",
                    base_tokenizer="icu",
                    stem=True,
                    remove_stop_words=False,
                )
                self.table.create_index(column, config=words)
        for column, kind in (
            ("link_id", BTree()),
            ("source_file", BTree()),
            ("chunk_id", BTree()),
            ("dates", LabelList()),
            ("tag_keys", LabelList()),
        ):
            if column not in present:
                self.table.create_index(column, config=kind)
        if "vector" not in present and rows >= VECTOR_INDEX_FROM:
            self.table.create_index("vector", config=IvfRq(distance_type="cosine"))

    def version_count(self) -> int:
        """How many versions are kept; every one but the newest only takes up space."""
        with explained():
            return len(self.table.list_versions())

    def paths(self, link_id: str) -> set[str]:
        """The notes of a vault that have rows."""
        with explained():
            query = self.table.search().where(f"link_id = {quoted(link_id)}")
            rows = query.select(["source_file"]).limit(None).to_arrow()
            return set(rows["source_file"].unique().to_pylist())

    def texts(self) -> Iterator[tuple[str, str, str, str]]:
        """(path, text, words only, content hash) of every chunk, for the deep check."""
        columns = ["source_file", "chunk_text", "words_only", "content_hash"]
        with explained():
            for batch in self.table.search().select(columns).limit(None).to_batches(8192):
                yield from zip(*(batch[name].to_pylist() for name in columns), strict=True)

    def record(self) -> None:
        """Remember sizes and hashes of the files that are new; for the writer, after a change."""
        if self.folder is not None and self.folder.is_dir() and not self._is_recorded:
            checksums.record(self.folder)
            self._is_recorded = True

    def check(self) -> None:
        """Look at the files before something is read from them.

        Raises:
            IndexCorrupted: they are damaged.
        """
        if (damage := self.damage()) is not None:
            raise IndexCorrupted(f"The index is damaged: {damage}.", REINDEX)
        self._is_checked = True

    def _check_once(self) -> None:
        self.must_exist()
        if not self._is_checked:
            self.check()

    def damage(self, *, is_deep: bool = False) -> str | None:
        """What a look at the files from outside shows to be broken, if anything.

        Cheap enough for every status: presence, sizes, and the hashes of files that were touched
        and of some of the others. `is_deep` hashes them all. Who has the table open lets go of it
        when it is damaged, so that nobody goes on with what is still in memory.
        """
        if self.folder is None:
            return None
        if is_deep:
            self._verified.clear()
        most = sys.maxsize if is_deep else _HASHED_AT_ONCE
        found = checksums.find_damage(self.folder, self._verified, most)
        found = found or _cut_off(self.folder, self._verified)
        if found is not None:
            self.close()
        return found

    def is_recorded(self) -> bool:
        """Whether sizes and hashes of the files are known, so that damage can be told."""
        with contextlib.suppress(checksums.Unreadable):
            return self.folder is None or checksums.read(self.folder) is not None
        return True

    def promote(self, successor: "ChunkStore") -> None:
        """Put `successor`'s table in this one's place.

        On a local disk two renames swap the folders, indexes and all; a reader that opens the
        table in between finds none and tries again. Running it twice does no harm, which is how a
        crash half-way is healed. An object store cannot rename, so there the rows are copied.
        """
        successor.close()
        self.close()
        if self.folder is None or successor.folder is None:
            if not successor.exists():
                return
            with explained():
                table = successor.table
                batches = table.search().limit(None).to_batches(8192)
                self._handle = _connect(self.uri).create_table(
                    self.name, data=batches, schema=table.schema, mode="overwrite"
                )
            self.maintain()
            successor.drop()
            return
        retired = self.folder.with_name(f"{self.name}_retired.lance")
        if successor.folder.is_dir():
            shutil.rmtree(retired, ignore_errors=True)
            if self.folder.is_dir():
                self.folder.rename(retired)
            successor.folder.rename(self.folder)
        shutil.rmtree(retired, ignore_errors=True)


def _connect(uri: str) -> Any:
    return lancedb().connect(uri)


async def _open_reader(uri: str, name: str) -> Any:
    connection = await lancedb().connect_async(uri)
    return await connection.open_table(name)


def _cut_off(folder: Path, verified: Collection[str]) -> str | None:
    """What is broken at first sight in files that were not hashed, or have no checksums."""
    versions = list(folder.glob("_versions/*.manifest"))
    if not versions:
        return "it has no version that can be opened"
    for file in (*versions, *folder.glob("data/*.lance")):
        if f"{file.parent.name}/{file.name}" in verified:
            continue
        with contextlib.suppress(FileNotFoundError), file.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - len(_MAGIC)))
            if stream.read() != _MAGIC:
                return f"{file.name} is cut off"
    return None


def _retry(action: "Any", tries: int = 3) -> None:
    for left in reversed(range(tries)):
        try:
            action()
            return
        except RuntimeError as error:
            if left == 0 or "etryable" not in str(error):
                raise


def of_notes(link_id: str, paths: list[str]) -> Iterator[str]:
    """SQL conditions that select the rows of these notes, a bounded number of notes each."""
    for start in range(0, len(paths), _PATHS_PER_FILTER):
        names = ", ".join(quoted(path) for path in paths[start : start + _PATHS_PER_FILTER])
        yield f"source_file IN ({names}) AND link_id = {quoted(link_id)}"


def of_several_vaults(notes: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The same for notes of several vaults, given as (link id, path)."""
    by_vault: dict[str, list[str]] = {}
    for link_id, path in notes:
        by_vault.setdefault(link_id, []).append(path)
    for link_id, paths in by_vault.items():
        yield from of_notes(link_id, paths)


def quoted(text: str) -> str:
    """`text` as an SQL string of LanceDB's filters."""
    return "'" + text.replace("'", "''") + "'"


def _columns() -> "list[tuple[pa.Field[Any], Callable[[ChunkRow], object]]]":
    """Every column besides the vectors, and what of a row stands in it."""
    import pyarrow as pa

    text, texts, number, flag = pa.string(), pa.list_(pa.string()), pa.int32(), pa.bool_()
    key = {"lance-schema:unenforced-primary-key": "true"}
    return [
        (pa.field("chunk_id", text, nullable=False, metadata=key), attrgetter("chunk_id")),
        (pa.field("chunk_text", text), attrgetter("chunk.text")),
        (pa.field("source_file", text), attrgetter("note.source_file")),
        (pa.field("source_directory", text), attrgetter("note.source_directory")),
        (pa.field("section", text), attrgetter("chunk.section")),
        (pa.field("date", text), attrgetter("note.date")),
        (pa.field("tags", texts), attrgetter("chunk.tags")),
        (pa.field("chunk_index", number), attrgetter("chunk_index")),
        (pa.field("total_chunks", number), attrgetter("total_chunks")),
        (pa.field("modified_at", text), attrgetter("note.modified_at")),
        (pa.field("indexed_at", text), attrgetter("note.indexed_at")),
        (pa.field("link_id", text), attrgetter("note.link_id")),
        (pa.field("title", text), attrgetter("note.title")),
        (pa.field("aliases", texts), attrgetter("note.aliases")),
        (pa.field("heading_path", texts), attrgetter("chunk.heading_path")),
        (pa.field("start_line", number), attrgetter("chunk.start_line")),
        (pa.field("end_line", number), attrgetter("chunk.end_line")),
        (pa.field("content_hash", text), attrgetter("content_hash")),
        (pa.field("words_only", text), attrgetter("chunk.words_only")),
        (pa.field("is_private", flag), attrgetter("note.is_private")),
        (pa.field("names", text), attrgetter("names")),
        (pa.field("tag_keys", texts), lambda row: tag_keys(row.chunk.tags)),
        (pa.field("card", text), card),
        (pa.field("dates", texts), lambda row: date_keys(row.dates, row.chunk.said)),
        (pa.field("is_dated", flag), lambda row: bool(row.dates)),
    ]


def _schema(dimensions: int) -> Any:
    import pyarrow as pa

    vector = pa.field("vector", pa.list_(pa.float32(), dimensions))
    return pa.schema([vector, *(field for field, _ in _columns())])


def _arrow(rows: Sequence[ChunkRow], vectors: "NDArray[np.float32]") -> Any:
    import pyarrow as pa

    width = vectors.shape[1]
    columns: dict[str, object] = {
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), width)
    }
    for field, value_of in _columns():
        columns[field.name] = [value_of(row) for row in rows]
    return pa.Table.from_pydict(columns, schema=_schema(width))
