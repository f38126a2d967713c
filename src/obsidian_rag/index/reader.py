"""From a file to its chunks and what else is made of it: read, hash, parse once, cut.

In this process, or beside the embedder.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from obsidian_rag.errors import NoteChanged, SecurityViolation
from obsidian_rag.index.consumer import MakeContent, NoteConsumer
from obsidian_rag.notes import (
    Chunk,
    ChunkLimits,
    Note,
    RagPolicy,
    chunk_note,
    parse_note,
    property_values,
    with_dates,
)
from obsidian_rag.vault import (
    WORTH_A_PROCESS,
    FileEntry,
    SkippedFile,
    Vault,
    content_hash,
    read_beside,
    read_note,
)

_FILES_PER_REQUEST = 32
_ANSWERS_AHEAD = 24


@dataclass(frozen=True, slots=True)
class Source:
    """One vault and what is made of its notes."""

    link_id: str
    root: Path
    max_bytes: int
    limits: ChunkLimits
    make_content: MakeContent | None = None

    @classmethod
    def of(cls, vault: Vault, limits: ChunkLimits, consumer: NoteConsumer | None) -> Self:
        """A vault, for the chunk table and for a consumer, if there is one."""
        make_content = consumer.make_content if consumer is not None else None
        return cls(vault.link_id, vault.root, vault.max_file_bytes, limits, make_content)


class Wanted(NamedTuple):
    """A consumer wants a note, unless its content has this hash."""

    known_hash: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """A file to read, and who wants it."""

    path: str
    for_chunks: Wanted | None = None
    for_consumer: Wanted | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """A file that was read whole.

    `chunks` is None where it need not or must not be indexed, and so is `content`, which is what
    the consumer made of the note. `reason` says why a note that may be indexed has no chunks.
    """

    path: str
    entry: FileEntry
    content_hash: str
    title: str = ""
    aliases: tuple[str, ...] = ()
    date: str | None = None
    policy: RagPolicy = RagPolicy.INDEX
    parse_error: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    chunks: list[Chunk] | None = None
    content: object = None
    reason: str | None = None


class NoteReader:
    """Reads files of one vault."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._make_content = source.make_content() if source.make_content is not None else None

    def __call__(self, requests: list[Request]) -> list[Read | SkippedFile]:
        """Read files in order."""
        return [self.read(request) for request in requests]

    def read(self, request: Request) -> Read | SkippedFile:
        """Read one file; parse it if any consumer has not got this content of it."""
        try:
            file = read_note(self._source.root, request.path, self._source.max_bytes)
        except NoteChanged:
            return SkippedFile(request.path, "changing")
        except SecurityViolation:
            return SkippedFile(request.path, "outside_vault")
        if isinstance(file, SkippedFile):
            return file
        found = content_hash(file.data)
        for_chunks, for_consumer = (
            wanted is not None and wanted.known_hash != found
            for wanted in (request.for_chunks, request.for_consumer)
        )
        if not for_chunks and not for_consumer:
            return Read(request.path, file.entry, found)
        note = parse_note(request.path, file.text)
        if note.policy is RagPolicy.NEVER:
            return Read(request.path, file.entry, found, policy=note.policy)
        chunks = self._chunks(note) if for_chunks else None
        is_too_much = chunks is not None and len(chunks) > self._source.limits.max_chunks
        return Read(
            path=request.path,
            entry=file.entry,
            content_hash=found,
            title=note.title,
            aliases=note.aliases,
            date=note.date,
            policy=note.policy,
            parse_error=_trouble(note.parse_error, file.encoding),
            properties=property_values(note.frontmatter),
            chunks=None if is_too_much else chunks,
            content=self._make_content(note) if for_consumer and self._make_content else None,
            reason="too_many_chunks" if is_too_much else None,
        )

    def _chunks(self, note: Note) -> list[Chunk]:
        return with_dates(note, chunk_note(note, self._source.limits))


def _trouble(parse_error: str | None, encoding: str | None) -> str | None:
    """What to tell of a note that is indexed all the same."""
    read_as = f"read as {encoding}" if encoding is not None else None
    return "; ".join(filter(None, (parse_error, read_as))) or None


def read_files(source: Source, requests: list[Request]) -> Iterator[Read | SkippedFile]:
    """Read files in order, by reader processes when there are many."""
    if len(requests) < WORTH_A_PROCESS:
        yield from map(NoteReader(source).read, requests)
        return
    starts = range(0, len(requests), _FILES_PER_REQUEST)
    batches = [requests[start : start + _FILES_PER_REQUEST] for start in starts]
    for found in read_beside(NoteReader, source, batches, _ANSWERS_AHEAD):
        yield from found
