"""From changed files to groups of chunks that await their vectors.

Chunks whose text stands already in the index keep their id; those whose whole embedded text
(title, headings, text) is unchanged keep their vector too.
"""

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import xxhash

from obsidian_rag.index.plan import settled_mtime
from obsidian_rag.index.reader import Read, Request, Source, read_files
from obsidian_rag.notes import Chunk, RagPolicy, embedding_text
from obsidian_rag.store import (
    Change,
    ChangeType,
    EmbeddingStatus,
    FileState,
    NoteRow,
    StoredChunk,
    now,
)
from obsidian_rag.vault import FileEntry, SkippedFile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_FILES = 512
# The note was not read as text, though it should be one; everything else is a rule's decision.
_FAILURES = {
    "not_utf8": "it is not UTF-8, and no other encoding can be told",
    "binary": "it is not text",
}
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
    properties: tuple[tuple[str, str], ...]


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

    def changes(self) -> list[Change]:
        """The work this group does."""
        return [item.change for item in (*self.notes, *self.settled)]

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
        settled: list[Settled] = []
        read: list[tuple[Change, Read]] = []
        waiting = 0
        for change, found in self._found(changes):
            outcome = _outcome(change, found)
            if isinstance(outcome, Read):
                read.append((change, outcome))
                waiting += len(outcome.chunks or ())
            else:
                settled.append(outcome)
            if waiting >= self.group_chunks or len(read) + len(settled) >= _MOST_FILES:
                yield Group(self._match(read), settled)
                settled, read, waiting = [], [], 0
        if settled or read:
            yield Group(self._match(read), settled)

    def _found(self, changes: list[Change]) -> Iterator[tuple[Change, Read | SkippedFile]]:
        gone = [change for change in changes if change.change_type is ChangeType.DELETE]
        yield from ((change, SkippedFile(change.rel_path, "missing")) for change in gone)
        present = [change for change in changes if change.change_type is not ChangeType.DELETE]
        requests = [Request(change.rel_path, self._known_hash(change)) for change in present]
        yield from zip(present, read_files(self._source, requests), strict=True)

    def _known_hash(self, change: Change) -> str | None:
        """The content for which there is nothing to do.

        After an interrupted attempt the store may hold something newer than the state tells.
        """
        if change.change_type is ChangeType.RENAME or change.attempts > 0:
            return None
        return self._indexed_hashes.get(change.rel_path)

    def _match(self, read: list[tuple[Change, Read]]) -> list[Prepared]:
        origins = [
            change.old_path or change.rel_path for change, _ in read if may_have_rows(change)
        ]
        old = self._old_chunks(origins) if origins else {}
        return [
            self._prepared(change, found, old.get(change.old_path or change.rel_path, []))
            for change, found in read
        ]

    def _prepared(self, change: Change, found: Read, old: list[StoredChunk]) -> Prepared:
        kept = defaultdict(list)
        for stored in reversed(old):
            kept[stored.content_hash].append(stored)
        row = NoteRow(
            link_id=self._source.link_id,
            source_file=found.path,
            title=found.title,
            aliases=found.aliases,
            date=found.date,
            is_private=found.policy is RagPolicy.PRIVATE,
            modified_at=_iso(found.entry.mtime_ns),
            indexed_at=now(),
        )
        chunks = [_placed(chunk, found.title, kept) for chunk in found.chunks or ()]
        state = FileState(
            found.path,
            EmbeddingStatus.INDEXED,
            index_hash=found.content_hash,
            chunk_count=len(chunks),
            parse_error=found.parse_error,
        )
        return Prepared(change, row, chunks, state, _settled(found.entry), found.properties)


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


def _outcome(change: Change, found: Read | SkippedFile) -> Read | Settled:
    """What is to be done about a file that was looked at."""
    if isinstance(found, SkippedFile):
        return _left_out(change, found.reason)
    if found.chunks is not None:
        return found
    entry = _settled(found.entry)
    if found.policy is RagPolicy.NEVER:
        state = FileState(
            found.path, EmbeddingStatus.SKIPPED, index_hash=found.content_hash, reason="rag_false"
        )
        return LeftOut(change, state, entry=entry)
    return Unchanged(change, entry, found.content_hash)


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
