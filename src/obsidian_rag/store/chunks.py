"""The LanceDB table `obsidian_chunks`: every passage with its vector, rebuildable at any time.

LanceDB takes over a second to import, so it is imported when the first row is read or written.
Files are compared with their recorded checksums before they are read, because a damaged one can
make LanceDB's core answer wrongly, panic, or allocate all memory. Any other damage found while
reading rows is raised as IndexCorrupted, without quoting what was read.
"""

import contextlib
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
from obsidian_rag.store.lance import REINDEX, lancedb, translate_errors, wait_for
from obsidian_rag.store.owner import Ownership
from obsidian_rag.store.rows import ChunkRow, card

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

TABLE = "obsidian_chunks"
NEXT_TABLE = "obsidian_chunks_next"
VECTOR_INDEX_FROM = 30_000
# How long a version is kept for readers. A search is short, and retried if its version is gone.
READER_WINDOW_S = 60.0
# Bytes of untouched files hashed per check: about ten milliseconds.
_MAX_HASHED_BYTES = 32_000_000
WORD_COLUMNS = ("chunk_text", "names", "words_only")
# LanceDB's name for the index of the first column.
WORD_INDEX = f"{WORD_COLUMNS[0]}_idx"
_PATHS_PER_FILTER = 500
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """The part of an old row needed to keep its id and vector."""

    chunk_id: str
    content_hash: str
    title: str
    heading_path: tuple[str, ...]
    vector: "NDArray[np.float32]"


def no_index() -> IndexNotFound:
    """The error for a missing index."""
    return IndexNotFound("There is no index yet.", "Run `obsidian-rag index`.")


class ChunkStore:
    """One table of chunks in a local folder or an object store.

    `home` is the data folder that must own the store; without it ownership is not checked.
    """

    def __init__(self, uri: str, name: str = TABLE, home: Path | None = None) -> None:
        self.uri = uri
        self._ownership = Ownership(uri, home) if home is not None else None
        self.name = name
        self._handle: Any = None
        self._reader: Any = None
        # Files whose hash was verified, as they were then.
        self._verified: dict[str, checksums.Stamp] = {}
        # Whether the files were checked since the last `close`.
        self._is_checked = False
        # Whether checksums of all our writes are recorded.
        self._is_recorded = False

    @property
    def folder(self) -> Path | None:
        """The table's local folder; None for an object store."""
        return None if "://" in self.uri else Path(self.uri) / f"{self.name}.lance"

    def exists(self) -> bool:
        """Whether the table exists; cheap for a local one."""
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
        """Create an empty table, replacing any old one."""
        self.drop()
        with translate_errors():
            self._handle = _connect(self.uri).create_table(
                self.name, schema=_schema(dimensions), mode="overwrite"
            )
            self.record(begins=True)

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
            IndexNotFound: the table is missing.
            IndexCorrupted: it cannot be opened.
        """
        handle = self._handle  # another thread may reset it at any moment
        if handle is None:
            self._check_once()
            with translate_errors():
                handle = self._handle = _connect(self.uri).open_table(self.name)
        return handle

    @property
    def reader(self) -> Any:
        """The table for searches: LanceDB's asynchronous one, at the current version.

        Raises:
            IndexNotFound: the table is missing.
            IndexCorrupted: it cannot be opened.
        """
        reader = self._reader
        if reader is None:
            self._check_once()
            with translate_errors():
                reader = self._reader = wait_for(_open_reader(self.uri, self.name))
        return reader

    def must_exist(self) -> None:
        """Check that the table exists.

        Raises:
            IndexNotFound: the table is missing.
        """
        if not self.exists():
            raise no_index()

    def successor(self) -> "ChunkStore":
        """The table that a rebuild creates beside this one."""
        made = ChunkStore(self.uri, NEXT_TABLE)
        made._ownership = self._ownership
        return made

    def close(self) -> None:
        """Close the table; it is reopened when needed."""
        self._handle = self._reader = None
        self._is_checked = self._is_recorded = False

    def look_up(self, read: Callable[[], T]) -> T:
        """Read from the table; retries once if another process dropped or swapped its version."""
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
        with translate_errors():
            return int(self.table.count_rows())

    def count_by_link(self, link_ids: Collection[str]) -> dict[str | None, int]:
        """Chunk counts of these vaults, freshly read from disk; None counts all others."""
        with translate_errors():
            table = _connect(self.uri).open_table(self.name)
            found: dict[str | None, int] = {
                one: int(table.count_rows(f"link_id = {quoted(one)}")) for one in link_ids
            }
            found[None] = int(table.count_rows()) - sum(found.values())
        return {link_id: count for link_id, count in found.items() if count}

    def fetch(self, link_id: str, paths: Iterable[str]) -> dict[str, list[StoredChunk]]:
        """The rows of these notes, by path, in order."""
        columns = ["chunk_id", "content_hash", "title", "heading_path", "vector", "source_file"]
        found: dict[str, list[StoredChunk]] = {}
        for condition in of_notes(link_id, list(paths)):
            with translate_errors():
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

        Two commits: after a crash in between notes are missing, but their queue rows remain.
        """
        self._reader = None
        self._is_recorded = False
        added = _to_arrow(rows, vectors) if rows else None
        with translate_errors():
            for condition in of_notes(link_id, list(stale)):
                self.table.delete(condition)
            if added is not None:
                self.table.add(added)
            self.record()

    def remove_link(self, link_id: str) -> None:
        """Remove all rows of a vault."""
        self._reader = None
        self._is_recorded = False
        with translate_errors():
            self.table.delete(f"link_id = {quoted(link_id)}")
            self.record()

    def maintain(self, *, window_s: float = READER_WINDOW_S) -> None:
        """Merge small files, drop old versions, and bring the search indexes up to date.

        Versions of the last `window_s` seconds are kept for readers.
        """
        self._reader = None
        self._is_recorded = False
        with translate_errors():
            rows = int(self.table.count_rows())
            if rows == 0:
                return
            if self.folder is not None:
                checksums.unsettle(self.folder)
            # Merge first: an index built before the merge would be rebuilt.
            keep = timedelta(seconds=window_s)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # "removes every version": intended
                _retry(lambda: self.table.optimize(cleanup_older_than=keep))
            _retry(lambda: self._create_indexes(rows))
            self.record()

    def _create_indexes(self, rows: int) -> None:
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
        """How many versions are kept; all but the newest just use space."""
        with translate_errors():
            return len(self.table.list_versions())

    def paths(self, link_id: str) -> set[str]:
        """The notes of a vault that have rows."""
        with translate_errors():
            query = self.table.search().where(f"link_id = {quoted(link_id)}")
            rows = query.select(["source_file"]).limit(None).to_arrow()
            return set(rows["source_file"].unique().to_pylist())

    def texts(self) -> Iterator[tuple[str, str, str, str, float]]:
        """Every chunk's (path, text, words only, content hash, vector length), for checks."""
        columns = ["source_file", "chunk_text", "words_only", "content_hash"]
        with translate_errors():
            query = self.table.search().select([*columns, "vector"]).limit(None)
            for batch in query.to_batches(8192):
                vectors = batch["vector"].flatten().to_numpy().reshape(len(batch), -1)
                lengths = ((vectors.astype("float64") ** 2).sum(axis=1) ** 0.5).tolist()
                plain = (batch[name].to_pylist() for name in columns)
                yield from zip(*plain, lengths, strict=True)

    def record(self, *, begins: bool = False) -> None:
        """Record checksums of new files; a table without a record gets one only if `begins`."""
        is_due = begins or not self._is_recorded
        if is_due and self.folder is not None and self.folder.is_dir():
            checksums.record(self.folder, begins=begins)
            self._is_recorded = True

    def check(self) -> None:
        """Check the files before anything is read from them.

        Raises:
            StoreForeign: they belong to another data folder.
            IndexCorrupted: they are damaged.
        """
        self.check_owner()
        if (damage := self.damage()) is not None:
            raise IndexCorrupted(f"The index is damaged: {damage}.", REINDEX)
        self._is_checked = True

    def check_owner(self) -> None:
        """Refuse a store that another data folder made.

        Raises:
            StoreForeign: it did.
        """
        if self._ownership is not None:
            self._ownership.check()

    def claim(self, own_links: Collection[str]) -> None:
        """Claim ownership before writing anything.

        A store without an owner record comes from an earlier version: it is ours if it lies in our
        data folder, or if all its rows belong to our vaults, whose link ids are `own_links`.

        Raises:
            StoreForeign: it belongs to another data folder.
        """
        ownership = self._ownership
        if ownership is None:
            return
        if ownership.recorded() is None and not ownership.is_inside and self.exists():
            stored = self.count_by_link(own_links)
            if None in stored:
                raise ownership.refusal()
        ownership.claim()

    def _check_once(self) -> None:
        self.must_exist()
        if not self._is_checked:
            self.check()

    def damage(self, *, is_deep: bool = False) -> str | None:
        """What is wrong with the files on disk, if anything.

        Cheap enough for every status: existence, sizes, and the hashes of touched files and of
        some others. `is_deep` hashes them all. A damaged table is closed, so that nobody keeps
        using what is still in memory.
        """
        if self.folder is None:
            return None
        if is_deep:
            self._verified.clear()
        most = sys.maxsize if is_deep else _MAX_HASHED_BYTES
        found = checksums.find_damage(self.folder, self._verified, most)
        found = found or checksums.find_cut_off(self.folder, self._verified)
        if found is not None:
            self.close()
        return found

    def is_recorded(self) -> bool:
        """Whether checksums of the files exist, so that damage can be detected."""
        with contextlib.suppress(checksums.Unreadable):
            return self.folder is None or checksums.read(self.folder) is not None
        return True

    def promote(self, successor: "ChunkStore") -> None:
        """Replace this table by `successor`'s.

        On a local disk two renames swap the folders, indexes included; a reader that opens the
        table in between finds none and retries. It is idempotent, so after a crash it is run
        again. An object store cannot rename, so there the rows are copied.
        """
        successor.close()
        self.close()
        if self.folder is None or successor.folder is None:
            if not successor.exists():
                return
            with translate_errors():
                table = successor.table
                batches = table.search().limit(None).to_batches(8192)
                self._handle = _connect(self.uri).create_table(
                    self.name, data=batches, schema=table.schema, mode="overwrite"
                )
            # Drop old versions too: they may hold text that the new index leaves out.
            self.maintain(window_s=0)
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


def _retry(action: "Any", tries: int = 3) -> None:
    for left in reversed(range(tries)):
        try:
            action()
            return
        except RuntimeError as error:
            if left == 0 or "etryable" not in str(error):
                raise


def of_notes(link_id: str, paths: list[str]) -> Iterator[str]:
    """SQL conditions for the rows of these notes, in batches of bounded size."""
    for start in range(0, len(paths), _PATHS_PER_FILTER):
        names = ", ".join(quoted(path) for path in paths[start : start + _PATHS_PER_FILTER])
        yield f"source_file IN ({names}) AND link_id = {quoted(link_id)}"


def of_several_vaults(notes: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Like `of_notes`, for notes given as (link id, path)."""
    by_vault: dict[str, list[str]] = {}
    for link_id, path in notes:
        by_vault.setdefault(link_id, []).append(path)
    for link_id, paths in by_vault.items():
        yield from of_notes(link_id, paths)


def quoted(text: str) -> str:
    """`text` as a SQL string literal for LanceDB filters."""
    return "'" + text.replace("'", "''") + "'"


def _columns() -> "list[tuple[pa.Field[Any], Callable[[ChunkRow], object]]]":
    """Every column except the vectors, and how to get its value from a row."""
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
        (pa.field("dates", texts), lambda row: date_keys(row.dates, row.chunk.mentioned_dates)),
        (pa.field("is_dated", flag), lambda row: bool(row.dates)),
    ]


def _schema(dimensions: int) -> Any:
    import pyarrow as pa

    vector = pa.field("vector", pa.list_(pa.float32(), dimensions))
    return pa.schema([vector, *(field for field, _ in _columns())])


def _to_arrow(rows: Sequence[ChunkRow], vectors: "NDArray[np.float32]") -> Any:
    import pyarrow as pa

    width = vectors.shape[1]
    columns: dict[str, object] = {
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), width)
    }
    for field, value_of in _columns():
        columns[field.name] = [value_of(row) for row in rows]
    return pa.Table.from_pydict(columns, schema=_schema(width))
