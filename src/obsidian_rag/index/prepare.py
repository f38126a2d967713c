"""From a changed file to chunks that await their vectors: read, hash, parse, chunk, match.

Chunks whose text stands already in the index keep their id; those whose whole embedded text
(title, headings, text) is unchanged keep their vector too.
"""

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import xxhash

from obsidian_rag.errors import NoteChanged, SecurityViolation
from obsidian_rag.index.plan import settled_mtime
from obsidian_rag.notes import (
    Chunk,
    ChunkLimits,
    Note,
    RagPolicy,
    chunk_note,
    embedding_text,
    parse_note,
)
from obsidian_rag.store import Change, ChangeType, EmbeddingStatus, FileState, NoteRow, StoredChunk
from obsidian_rag.store.database import now
from obsidian_rag.vault import FileEntry, NoteFile, SkippedFile, content_hash, read_note

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The note was not read as text, though it should be one; everything else is a rule's decision.
_FAILURES = {"not_utf8": "it is not UTF-8 text"}
_PASSING = {"unreadable": "it cannot be read", "changing": "it is being written to"}


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A chunk with its place in the index; `vector` is there if an old one can be kept."""

    chunk: Chunk
    chunk_id: str
    content_hash: str
    embedded: str
    vector: "NDArray[np.float32] | None"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A note ready to be embedded and stored."""

    change: Change
    row: NoteRow
    chunks: list[NewChunk]
    state: FileState
    entry: FileEntry


@dataclass(frozen=True, slots=True)
class Gone:
    """A file that is no longer there."""

    change: Change


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A file whose content turned out to be what the index holds."""

    change: Change
    entry: FileEntry
    content_hash: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that is not indexed: by a rule, or because something is wrong with it.

    `message` is there for failures; one that may pass is tried again and keeps its old rows.
    """

    change: Change
    state: FileState
    entry: FileEntry | None = None
    message: str | None = None
    is_passing: bool = False


Settled = Gone | Unchanged | LeftOut


@dataclass(slots=True)
class Group:
    """Files that go into the store together."""

    notes: list[Prepared] = field(default_factory=list)
    settled: list[Settled] = field(default_factory=list)

    @property
    def chunks(self) -> int:
        """How many chunks the group holds."""
        return sum(len(note.chunks) for note in self.notes)

    @property
    def files(self) -> int:
        """How many files the group settles."""
        return len(self.notes) + len(self.settled)

    def stale_paths(self) -> set[str]:
        """Paths whose rows must leave the store before the new ones come in."""
        stale: set[str] = set()
        changes = [note.change for note in self.notes if may_have_rows(note.change)]
        changes += [item.change for item in self.settled if _loses_rows(item)]
        for change in changes:
            stale.add(change.rel_path)
            if change.old_path is not None:
                stale.add(change.old_path)
        return stale


@dataclass(frozen=True, slots=True)
class Source:
    """One vault and how its notes are cut."""

    link_id: str
    root: Path
    max_bytes: int
    limits: ChunkLimits


class Preparer:
    """Turns changes into groups, reading each file once."""

    def __init__(
        self,
        source: Source,
        indexed_hashes: Mapping[str, str | None],
        old_chunks: Callable[[list[str]], dict[str, list[StoredChunk]]],
    ) -> None:
        self._source = source
        self._indexed_hashes = indexed_hashes
        self._old_chunks = old_chunks
        self.group_chunks = 256

    def groups(self, changes: list[Change]) -> Iterator[Group]:
        """Groups of about `group_chunks` chunks, which the consumer may change as it goes."""
        group = Group()
        pending: list[tuple[Change, Note, NoteFile, list[Chunk]]] = []
        waiting = 0
        for change in changes:
            outcome = self._read(change)
            if not isinstance(outcome, tuple):
                group.settled.append(outcome)
            else:
                pending.append(outcome)
                waiting += len(outcome[3])
            if waiting >= self.group_chunks or len(pending) + len(group.settled) >= 512:
                group.notes = self._match(pending)
                yield group
                group, pending, waiting = Group(), [], 0
        group.notes = self._match(pending)
        if group.files:
            yield group

    def _read(self, change: Change) -> Settled | tuple[Change, Note, NoteFile, list[Chunk]]:
        if change.change_type is ChangeType.DELETE:
            return Gone(change)
        try:
            file = read_note(self._source.root, change.rel_path, self._source.max_bytes)
        except NoteChanged:
            file = SkippedFile(change.rel_path, "changing")
        except SecurityViolation:
            file = SkippedFile(change.rel_path, "outside_vault")
        if isinstance(file, SkippedFile):
            return _left_out(change, file.reason)
        found = content_hash(file.data)
        # After an interrupted attempt the store may hold something newer than the state tells.
        is_certain = change.change_type is not ChangeType.RENAME and change.attempts == 0
        if is_certain and self._indexed_hashes.get(change.rel_path) == found:
            return Unchanged(change, _settled(file.entry), found)
        note = parse_note(change.rel_path, file.text)
        if note.policy is RagPolicy.NEVER:
            state = FileState(
                change.rel_path, EmbeddingStatus.SKIPPED, index_hash=found, reason="rag_false"
            )
            return LeftOut(change, state, entry=_settled(file.entry))
        return change, note, file, chunk_note(note, self._source.limits)

    def _match(self, pending: list[tuple[Change, Note, NoteFile, list[Chunk]]]) -> list[Prepared]:
        origins = [
            change.old_path or change.rel_path for change, *_ in pending if may_have_rows(change)
        ]
        old = self._old_chunks(origins) if origins else {}
        return [
            self._prepared(change, note, file, chunks, old)
            for change, note, file, chunks in pending
        ]

    def _prepared(
        self,
        change: Change,
        note: Note,
        file: NoteFile,
        chunks: list[Chunk],
        old: dict[str, list[StoredChunk]],
    ) -> Prepared:
        kept = defaultdict(list)
        for stored in reversed(old.get(change.old_path or change.rel_path, ())):
            kept[stored.content_hash].append(stored)
        row = NoteRow(
            link_id=self._source.link_id,
            source_file=note.path,
            title=note.title,
            aliases=note.aliases,
            date=note.date,
            is_private=note.policy is RagPolicy.PRIVATE,
            modified_at=_iso(file.entry.mtime_ns),
            indexed_at=now(),
        )
        state = FileState(
            note.path,
            EmbeddingStatus.INDEXED,
            index_hash=content_hash(file.data),
            chunk_count=len(chunks),
            parse_error=note.parse_error,
        )
        placed = [_placed(chunk, note.title, kept) for chunk in chunks]
        return Prepared(change, row, placed, state, _settled(file.entry))


def may_have_rows(change: Change) -> bool:
    """Whether the store may hold rows of this file from before."""
    return change.change_type is not ChangeType.CREATE or change.attempts > 0


def chunk_hash(text: str, words_only: str) -> str:
    """The identity of a chunk's text."""
    return xxhash.xxh3_128_hexdigest(f"{text}\0{words_only}".encode(errors="surrogatepass"))


def _placed(chunk: Chunk, title: str, kept: dict[str, list[StoredChunk]]) -> NewChunk:
    text_hash = chunk_hash(chunk.text, chunk.words_only)
    embedded = embedding_text(title, chunk.heading_path, chunk.text)
    if not kept[text_hash]:
        return NewChunk(chunk, str(uuid.uuid4()), text_hash, embedded, None)
    stored = kept[text_hash].pop()
    is_same = embedding_text(stored.title, stored.heading_path, chunk.text) == embedded
    vector = stored.vector if is_same else None
    return NewChunk(chunk, stored.chunk_id, text_hash, embedded, vector)


def _left_out(change: Change, reason: str) -> Settled:
    path = change.rel_path
    if reason == "missing":
        return Gone(change)
    if reason in _PASSING or reason in _FAILURES:
        because = _PASSING.get(reason) or _FAILURES[reason]
        state = FileState(path, EmbeddingStatus.FAILED, reason=reason)
        message = f"{path} was not indexed: {because}."
        return LeftOut(change, state, message=message, is_passing=reason in _PASSING)
    return LeftOut(change, FileState(path, EmbeddingStatus.SKIPPED, reason=reason))


def _loses_rows(item: Settled) -> bool:
    return isinstance(item, Gone) or (isinstance(item, LeftOut) and not item.is_passing)


def _settled(entry: FileEntry) -> FileEntry:
    return entry._replace(mtime_ns=settled_mtime(entry.mtime_ns, time.time_ns()))


def _iso(mtime_ns: int) -> str:
    at = datetime.fromtimestamp(mtime_ns // 1_000_000_000, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
