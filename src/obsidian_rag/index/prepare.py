"""Turns changed files into groups: chunks ready to embed, and input for relations.

Chunks whose text is already in the index keep their id; if the whole embedded text (title,
headings, text) is unchanged they keep their vector too.
"""

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from obsidian_rag.index.limits import Guarded
from obsidian_rag.index.plan import trusted_mtime
from obsidian_rag.index.progress import Stop
from obsidian_rag.index.reader import Read, Request, VaultSource, Wanted, read_files
from obsidian_rag.notes import Chunk, RagPolicy, embedding_text
from obsidian_rag.relations import RelatedChanges, RelationsWriter
from obsidian_rag.store import (
    Change,
    ChangeType,
    EmbeddingStatus,
    FileState,
    NoteRow,
    StoredChunk,
    chunk_hash,
    now,
)
from obsidian_rag.vault import FileEntry, SkippedFile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAX_GROUP_FILES = 512
# The note should be text but could not be read as such; all other skips come from rules.
_FAILURES = {
    "not_utf8": "it is not UTF-8, and its encoding could not be detected",
    "binary": "it is not text",
}
TEMPORARY = {"unreadable": "it cannot be read", "changing": "it is being written to"}


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A chunk with its id and hash; `vector` is set if the old one can be reused."""

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
    """A file that no longer exists."""

    change: Change


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A file whose content is already in the index."""

    change: Change
    entry: FileEntry
    content_hash: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that is not indexed, because of a rule or a failure.

    `message` is set for failures; a temporary one is retried and keeps its old rows.
    """

    change: Change
    state: FileState
    entry: FileEntry | None = None
    message: str | None = None
    is_passing: bool = False


Settled = Gone | Unchanged | LeftOut


@dataclass(slots=True)
class Group:
    """Files that are written to the store together."""

    notes: list[Prepared] = field(default_factory=list)
    settled: list[Settled] = field(default_factory=list)
    related: RelatedChanges = field(default_factory=RelatedChanges)
    files: int = 0

    def changes(self) -> list[Change]:
        """The changes this group covers."""
        return [item.change for item in (*self.notes, *self.settled)]

    def stale_paths(self) -> set[str]:
        """Paths whose rows must be deleted before the new ones are added."""
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
        source: VaultSource,
        indexed_hashes: Mapping[str, str | None],
        old_chunks: Callable[[list[str]], dict[str, list[StoredChunk]]],
        guarded: Guarded,
        relations: RelationsWriter | None = None,
    ) -> None:
        self._source = source
        self._indexed_hashes = indexed_hashes
        self._old_chunks = old_chunks
        self._guarded = guarded
        self._relations = relations
        self._related_hashes: Mapping[str, str] = {}
        self.group_chunks = 256

    def groups(self, changes: Sequence[Change], stop: Stop) -> Iterator[Group]:
        """Yield groups of about `group_chunks` chunks until done or stopped.

        `group_chunks` may be changed meanwhile.
        """
        if self._relations is not None:
            paths = [change.rel_path for change in changes]
            self._related_hashes = self._relations.contents(self._source.link_id, paths)
        group, read, waiting = Group(), list[tuple[Change, Read]](), 0
        for change, found in self._read_changes(changes):
            if stop():
                return
            group.files += 1
            self._relate(group.related, change, found)
            outcome = _classify(change, found)
            if isinstance(outcome, Read):
                read.append((change, outcome))
                waiting += len(outcome.chunks or ())
            else:
                group.settled.append(outcome)
            if waiting >= self.group_chunks or group.files >= _MAX_GROUP_FILES:
                group.notes = self._match(read)
                yield group
                group, read, waiting = Group(), [], 0
        if group.files:
            group.notes = self._match(read)
            yield group

    def _read_changes(
        self, changes: Sequence[Change]
    ) -> Iterator[tuple[Change, Read | SkippedFile]]:
        gone, present = list[Change](), list[Change]()
        for change in changes:
            (gone if change.change_type is ChangeType.DELETE else present).append(change)
        yield from ((change, SkippedFile(change.rel_path, "missing")) for change in gone)
        requests = [
            Request(
                change.rel_path, self._want_for_chunks(change), self._want_for_relations(change)
            )
            for change in present
        ]
        yield from zip(present, read_files(self._source, requests), strict=True)

    def _want_for_chunks(self, change: Change) -> Wanted:
        """The content hash for which no work is needed.

        After an interrupted attempt the store may be newer than the recorded state.
        """
        if change.change_type is ChangeType.RENAME or change.attempts > 0:
            return Wanted(None)
        return Wanted(self._indexed_hashes.get(change.rel_path))

    def _want_for_relations(self, change: Change) -> Wanted | None:
        if self._relations is None or not self._relations.admits(change.rel_path):
            return None
        # A note's title may come from its file name.
        is_renamed = change.change_type is ChangeType.RENAME
        return Wanted(None if is_renamed else self._related_hashes.get(change.rel_path))

    def _relate(self, related: RelatedChanges, change: Change, found: Read | SkippedFile) -> None:
        if self._relations is None:
            return
        if change.old_path is not None:
            related.renamed.append((change.old_path, change.rel_path))
        add_outcome(related, found, is_admitted=self._relations.admits(change.rel_path))

    def _match(self, read: list[tuple[Change, Read]]) -> list[Prepared]:
        origins = [
            change.old_path or change.rel_path for change, _ in read if may_have_rows(change)
        ]
        old = self._old_chunks(origins) if origins else {}
        return [
            self._prepare(change, found, old.get(change.old_path or change.rel_path, []))
            for change, found in read
        ]

    def _prepare(self, change: Change, found: Read, old: list[StoredChunk]) -> Prepared:
        kept = defaultdict(list)
        for before in reversed(old):
            kept[before.content_hash].append(before)
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
        stored = [one for one in found.chunks or () if not self._guarded.leaves_out(row, one)]
        chunks = [_reuse_or_create(chunk, found.title, kept) for chunk in stored]
        state = FileState(
            found.path,
            EmbeddingStatus.INDEXED,
            index_hash=found.content_hash,
            chunk_count=len(chunks),
            parse_error=_warning_text(found, len(found.chunks or ()) - len(chunks)),
            policy=found.policy,
        )
        return Prepared(
            change, row, chunks, state, _with_trusted_mtime(found.entry), found.properties
        )


def add_outcome(related: RelatedChanges, found: Read | SkippedFile, *, is_admitted: bool) -> None:
    """Add a file to the notes or the removals; what cannot be read now is left unchanged."""
    if isinstance(found, SkippedFile):
        if found.reason not in TEMPORARY:
            related.removed.append(found.rel_path)
    elif found.related is not None:
        related.notes.append(found.related)
    elif found.policy is RagPolicy.NEVER or not is_admitted:
        related.removed.append(found.path)


def may_have_rows(change: Change) -> bool:
    """Whether the store may hold old rows of this file."""
    return change.change_type is not ChangeType.CREATE or change.attempts > 0


def is_temporary(state: FileState) -> bool:
    """Whether a file failed for a reason that may be temporary."""
    return state.status is EmbeddingStatus.FAILED and state.reason not in _FAILURES


def _reuse_or_create(chunk: Chunk, title: str, kept: dict[str, list[StoredChunk]]) -> NewChunk:
    text_hash = chunk_hash(chunk.text, chunk.words_only)
    embedded = embedding_text(title, chunk.heading_path, chunk.text)
    if not kept[text_hash]:
        return NewChunk(chunk, str(uuid.uuid4()), text_hash, embedded, None)
    stored = kept[text_hash].pop()
    is_same = embedding_text(stored.title, stored.heading_path, chunk.text) == embedded
    vector = stored.vector if is_same else None
    return NewChunk(chunk, stored.chunk_id, text_hash, embedded, vector)


def _warning_text(found: Read, left_out: int) -> str | None:
    """Warnings about an indexed note, if any."""
    passages = "1 private passage is" if left_out == 1 else f"{left_out} private passages are"
    kept_out = f"{passages} kept out of the vector store" if left_out else None
    return "; ".join(filter(None, (found.parse_error, kept_out))) or None


def _classify(change: Change, found: Read | SkippedFile) -> Read | Settled:
    """The file to index, or why there is nothing to index."""
    if isinstance(found, SkippedFile):
        return _classify_skipped(change, found.reason)
    if found.chunks is not None:
        return found
    entry = _with_trusted_mtime(found.entry)
    if found.policy is RagPolicy.NEVER:
        state = FileState(
            found.path,
            EmbeddingStatus.SKIPPED,
            index_hash=found.content_hash,
            reason="rag_false",
            policy=found.policy,
        )
        return LeftOut(change, state, entry=entry)
    if found.reason is not None:
        # No content has an empty hash: a full run tries again, perhaps with another limit.
        state = FileState(found.path, EmbeddingStatus.SKIPPED, index_hash="", reason=found.reason)
        return LeftOut(change, state, entry=entry)
    return Unchanged(change, entry, found.content_hash)


def _classify_skipped(change: Change, reason: str) -> Settled:
    path = change.rel_path
    if reason == "missing":
        return Gone(change)
    if reason in TEMPORARY or reason in _FAILURES:
        because = TEMPORARY.get(reason) or _FAILURES[reason]
        state = FileState(path, EmbeddingStatus.FAILED, reason=reason)
        message = f"{path} was not indexed: {because}."
        return LeftOut(change, state, message=message, is_passing=reason in TEMPORARY)
    return LeftOut(change, FileState(path, EmbeddingStatus.SKIPPED, reason=reason))


def _loses_rows(item: Settled) -> bool:
    return isinstance(item, Gone) or (isinstance(item, LeftOut) and not item.is_passing)


def _with_trusted_mtime(entry: FileEntry) -> FileEntry:
    return entry._replace(mtime_ns=trusted_mtime(entry.mtime_ns, time.time_ns()))


def _iso(mtime_ns: int) -> str:
    at = datetime.fromtimestamp(mtime_ns // 1_000_000_000, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
