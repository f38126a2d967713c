"""From a file to its chunks: read, hash, parse, cut. In this process, or beside the embedder."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from obsidian_rag.errors import NoteChanged, SecurityViolation
from obsidian_rag.notes import (
    Chunk,
    ChunkLimits,
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
    content_hash,
    read_beside,
    read_note,
)

_FILES_PER_REQUEST = 32
_ANSWERS_AHEAD = 24


@dataclass(frozen=True, slots=True)
class Source:
    """One vault and how its notes are cut."""

    link_id: str
    root: Path
    max_bytes: int
    limits: ChunkLimits


@dataclass(frozen=True, slots=True)
class Request:
    """A file to read; one whose content has `known_hash` is not parsed."""

    path: str
    known_hash: str | None


@dataclass(frozen=True, slots=True)
class Read:
    """A file that was read whole. `chunks` is None where it need not or must not be indexed."""

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


def read_file(source: Source, request: Request) -> Read | SkippedFile:
    """Read one file, and cut it into chunks if it is to be indexed."""
    try:
        file = read_note(source.root, request.path, source.max_bytes)
    except NoteChanged:
        return SkippedFile(request.path, "changing")
    except SecurityViolation:
        return SkippedFile(request.path, "outside_vault")
    if isinstance(file, SkippedFile):
        return file
    found = content_hash(file.data)
    if found == request.known_hash:
        return Read(request.path, file.entry, found)
    note = parse_note(request.path, file.text)
    if note.policy is RagPolicy.NEVER:
        return Read(request.path, file.entry, found, policy=note.policy)
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
        chunks=with_dates(note, chunk_note(note, source.limits)),
    )


def _trouble(parse_error: str | None, encoding: str | None) -> str | None:
    """What to tell of a note that is indexed all the same."""
    read_as = f"read as {encoding}" if encoding is not None else None
    return "; ".join(filter(None, (parse_error, read_as))) or None


def read_files(source: Source, requests: list[Request]) -> Iterator[Read | SkippedFile]:
    """Read files in order, by reader processes when there are many."""
    if len(requests) < WORTH_A_PROCESS:
        yield from (read_file(source, request) for request in requests)
        return
    starts = range(0, len(requests), _FILES_PER_REQUEST)
    batches = [requests[start : start + _FILES_PER_REQUEST] for start in starts]
    for found in read_beside(_reading, source, batches, _ANSWERS_AHEAD):
        yield from found


def _reading(source: Source) -> Callable[[list[Request]], list[Read | SkippedFile]]:
    return lambda requests: [read_file(source, request) for request in requests]
