"""Reads a file, hashes and parses it once, and cuts it into chunks.

Runs in this process, or in reader processes beside the embedder.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from obsidian_rag.errors import NoteChanged, SecurityViolation
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
from obsidian_rag.relations import ContentReader, RelatedText, RelationsWriter
from obsidian_rag.vault import (
    WORTH_A_PROCESS,
    FileEntry,
    SkippedFile,
    Vault,
    content_hash,
    read_beside,
    read_note,
)

_BATCH_FILES = 32
_MAX_ANSWERS_AHEAD = 24


@dataclass(frozen=True, slots=True)
class VaultSource:
    """One vault and how its notes are read."""

    link_id: str
    root: Path
    max_bytes: int
    limits: ChunkLimits
    # Called once in each reader process; must be picklable.
    make_content: Callable[[], ContentReader] | None = None

    @classmethod
    def of(cls, vault: Vault, limits: ChunkLimits, relations: RelationsWriter | None) -> Self:
        """A vault's source for the chunk table and, with `relations`, for the related notes."""
        make_content = relations.make_content if relations is not None else None
        return cls(vault.link_id, vault.root, vault.max_file_bytes, limits, make_content)


class Wanted(NamedTuple):
    """Parse a note unless its content has this hash."""

    known_hash: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """A file to read, and for which purposes."""

    path: str
    for_chunks: Wanted | None = None
    for_relations: Wanted | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """A file that was read completely.

    `chunks` and `related` (the input for related notes) are None if they are not needed or not
    allowed. `reason` says why a note that may be indexed has no chunks.
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
    related: RelatedText | None = None
    reason: str | None = None


class NoteReader:
    """Reads files of one vault."""

    def __init__(self, source: VaultSource) -> None:
        self._source = source
        self._make_content = source.make_content() if source.make_content is not None else None

    def __call__(self, requests: list[Request]) -> list[Read | SkippedFile]:
        """Read files in order."""
        return [self.read(request) for request in requests]

    def read(self, request: Request) -> Read | SkippedFile:
        """Read one file; parse it if its chunks or relations are out of date."""
        try:
            file = read_note(self._source.root, request.path, self._source.max_bytes)
        except NoteChanged:
            return SkippedFile(request.path, "changing")
        except SecurityViolation:
            return SkippedFile(request.path, "outside_vault")
        if isinstance(file, SkippedFile):
            return file
        found = content_hash(file.data)
        for_chunks, for_relations = (
            wanted is not None and wanted.known_hash != found
            for wanted in (request.for_chunks, request.for_relations)
        )
        if not for_chunks and not for_relations:
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
            parse_error=_warning_text(note.parse_error, file.encoding),
            properties=property_values(note.frontmatter),
            chunks=None if is_too_much else chunks,
            related=self._related(note, found) if for_relations else None,
            reason="too_many_chunks" if is_too_much else None,
        )

    def _related(self, note: Note, content_hash: str) -> RelatedText | None:
        if self._make_content is None:
            return None
        return RelatedText(note.path, content_hash, *self._make_content(note))

    def _chunks(self, note: Note) -> list[Chunk]:
        return with_dates(note, chunk_note(note, self._source.limits))


def _warning_text(parse_error: str | None, encoding: str | None) -> str | None:
    """Warnings about a note that is indexed anyway."""
    read_as = f"read as {encoding}" if encoding is not None else None
    return "; ".join(filter(None, (parse_error, read_as))) or None


def read_files(source: VaultSource, requests: list[Request]) -> Iterator[Read | SkippedFile]:
    """Read files in order, in reader processes if there are many."""
    if len(requests) < WORTH_A_PROCESS:
        yield from map(NoteReader(source).read, requests)
        return
    starts = range(0, len(requests), _BATCH_FILES)
    batches = [requests[start : start + _BATCH_FILES] for start in starts]
    for found in read_beside(NoteReader, source, batches, _MAX_ANSWERS_AHEAD):
        yield from found
