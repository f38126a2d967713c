"""The chunks of the table as the pass of meaning vectors reads them, a bounded number at a time."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from obsidian_rag.notes import embedding_head
from obsidian_rag.store.chunks import ChunkStore, of_several_vaults
from obsidian_rag.store.lance import explained

_AT_ONCE = 4096
_PLACE = ["chunk_id", "link_id", "source_file", "modified_at", "indexed_at"]
_TEXT = ["title", "heading_path", "chunk_text"]


class ChunkPlace(NamedTuple):
    """A chunk, its note, and when that was modified and read."""

    chunk_id: str
    link_id: str
    source_file: str
    modified_at: str
    indexed_at: str


class EmbeddedChunk(NamedTuple):
    """A chunk, the text that its vector is made of, and how much of that is title and headings."""

    place: ChunkPlace
    text: str
    head_chars: int


def chunk_places(chunks: ChunkStore) -> Iterator[list[ChunkPlace]]:
    """Every chunk, without its text."""
    for batch in _batches(chunks, _PLACE, None):
        yield [ChunkPlace(*values) for values in batch]


def embedded_chunks(
    chunks: ChunkStore, notes: Iterable[tuple[str, str]] | None = None
) -> Iterator[list[EmbeddedChunk]]:
    """Every chunk with its text, or those of some notes, given as (link id, path)."""
    for condition in [None] if notes is None else of_several_vaults(notes):
        for batch in _batches(chunks, _PLACE + _TEXT, condition):
            yield [
                EmbeddedChunk(ChunkPlace(*place), head + text, len(head))
                for *place, title, headings, text in batch
                for head in [embedding_head(title, headings or ())]
            ]


def _batches(
    chunks: ChunkStore, columns: list[str], condition: str | None
) -> Iterator[list[tuple[Any, ...]]]:
    with explained():
        query = chunks.table.search()
        if condition is not None:
            query = query.where(condition)
        for batch in query.select(columns).limit(None).to_batches(_AT_ONCE):
            rows = [batch[name].to_pylist() for name in columns]
            yield list(zip(*rows, strict=True))
