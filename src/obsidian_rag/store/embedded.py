"""Reads the table's chunks for the meaning-vector pass, in batches of bounded size."""

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from obsidian_rag.notes import embedding_head
from obsidian_rag.store.chunks import ChunkStore, of_several_vaults
from obsidian_rag.store.database import Database, file_identity
from obsidian_rag.store.lance import explained


class FollowedDatabase:
    """A database that is opened at its first use and reopened if replaced; thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._database: Database | None = None
        self._identity: tuple[int, int] | None = None
        self._abandoned: list[Database] = []

    @property
    def now(self) -> Database:
        """The open database."""
        with self._lock:
            if self._database is None:
                self._database = Database(self._path)
                self._identity = file_identity(self._path)
            return self._database

    def follow(self) -> None:
        """Drop a database whose file another process has replaced, or the user removed."""
        identity = file_identity(self._path)
        with self._lock:
            if self._database is not None and identity != self._identity:
                # Not closed: SQLite would delete the journal of that name, now the new file's.
                self._abandoned.append(self._database)
                self._database = None

    def close(self) -> None:
        """Close the file; it is reopened when needed."""
        with self._lock:
            database, self._database = self._database, None
        if database is not None:
            database.close()


_BATCH_ROWS = 4096
_PLACE_COLUMNS = ["chunk_id", "link_id", "source_file", "modified_at", "indexed_at"]
_TEXT_COLUMNS = ["title", "heading_path", "chunk_text"]


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
    with explained():
        query = chunks.table.search()
        if condition is not None:
            query = query.where(condition)
        for batch in query.select(columns).limit(None).to_batches(_BATCH_ROWS):
            rows = [batch[name].to_pylist() for name in columns]
            yield list(zip(*rows, strict=True))
