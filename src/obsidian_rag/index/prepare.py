"""From changed files to groups: chunks that await their vectors, and what a consumer gets.

Chunks whose text stands already in the index keep their id; those whose whole embedded text
(title, headings, text) is unchanged keep their vector too.
"""

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import xxhash

from obsidian_rag.index.consumer import Delivery, NoteConsumer, ParsedNote, Stop
from obsidian_rag.index.plan import settled_mtime
from obsidian_rag.index.reader import Read, Request, Source, Wanted, read_files
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
class Task:
    """A file to look at, for the chunk table, for the consumer, or for both."""

    path: str
    for_chunks: Change | None = None
    for_consumer: Change | None = None

    @property
    def is_gone(self) -> bool:
        """Whether there is no file to read."""
        changes = [one for one in (self.for_chunks, self.for_consumer) if one is not None]
        return all(one.change_type is ChangeType.DELETE for one in changes)


def joined(for_chunks: Iterable[Change], for_consumer: Iterable[Change]) -> list[Task]:
    """Each file once, whoever its change is owed to."""
    tasks = {change.rel_path: Task(change.rel_path, change) for change in for_chunks}
    for change in for_consumer:
        task = tasks.get(change.rel_path, Task(change.rel_path))
        tasks[change.rel_path] = replace(task, for_consumer=change)
    return list(tasks.values())


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
    delivery: Delivery = field(default_factory=Delivery)
    files: int = 0

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
    """Turns tasks into groups, reading each file once."""

    def __init__(
        self,
        source: Source,
        indexed_hashes: Mapping[str, str | None],
        old_chunks: Callable[[list[str]], dict[str, list[StoredChunk]]],
        consumer: NoteConsumer | None = None,
    ) -> None:
        self._source = source
        self._indexed_hashes = indexed_hashes
        self._old_chunks = old_chunks
        self._consumer = consumer
        self._held: Mapping[str, str] = {}
        self.group_chunks = 256

    def groups(self, tasks: Sequence[Task], stop: Stop) -> Iterator[Group]:
        """Groups of about `group_chunks` chunks, which the consumer may change as it goes.

        When `stop` says so there are no more of them.
        """
        if self._consumer is not None:
            self._held = self._consumer.contents(
                self._source.link_id, [one.path for one in tasks if one.for_consumer]
            )
        group, read, waiting = Group(), list[tuple[Change, Read]](), 0
        for task, found in self._found(tasks):
            if stop():
                return
            group.files += 1
            if task.for_consumer is not None:
                if task.for_consumer.old_path is not None:
                    group.delivery.renamed.append((task.for_consumer.old_path, task.path))
                # Of a note that is indexed, a look at the vault says whether it was removed.
                is_indexed = task.for_chunks is None and task.path in self._indexed_hashes
                is_removal = task.is_gone or not is_indexed
                wants = self._for_consumer(task) is not None
                sort_in(group.delivery, found, is_wanted=wants, is_removal=is_removal)
            outcome = _outcome(task.for_chunks, found) if task.for_chunks is not None else None
            if task.for_chunks is not None and isinstance(outcome, Read):
                read.append((task.for_chunks, outcome))
                waiting += len(outcome.chunks or ())
            elif outcome is not None and not isinstance(outcome, Read):
                group.settled.append(outcome)
            if waiting >= self.group_chunks or group.files >= _MOST_FILES:
                group.notes = self._match(read)
                yield group
                group, read, waiting = Group(), [], 0
        if group.files:
            group.notes = self._match(read)
            yield group

    def _found(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Read | SkippedFile]]:
        yield from ((task, SkippedFile(task.path, "missing")) for task in tasks if task.is_gone)
        present = [task for task in tasks if not task.is_gone]
        requests = [
            Request(task.path, self._for_chunks(task), self._for_consumer(task)) for task in present
        ]
        yield from zip(present, read_files(self._source, requests), strict=True)

    def _for_chunks(self, task: Task) -> Wanted | None:
        """The content for which there is nothing to do.

        After an interrupted attempt the store may hold something newer than the state tells.
        """
        change = task.for_chunks
        if change is None:
            return None
        if change.change_type is ChangeType.RENAME or change.attempts > 0:
            return Wanted(None)
        return Wanted(self._indexed_hashes.get(change.rel_path))

    def _for_consumer(self, task: Task) -> Wanted | None:
        change = task.for_consumer
        if change is None or self._consumer is None or not self._consumer.admits(task.path):
            return None
        # A note can have its title from its file's name.
        is_renamed = change.change_type is ChangeType.RENAME
        return Wanted(None if is_renamed else self._held.get(task.path))

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


def sort_in(
    delivery: Delivery, found: Read | SkippedFile, *, is_wanted: bool, is_removal: bool
) -> None:
    """Put a file that was looked at where it belongs; `is_removal` believes a missing one."""
    if isinstance(found, SkippedFile):
        if found.reason in _PASSING or (found.reason == "missing" and not is_removal):
            delivery.postponed.append((found.rel_path, found.reason))
        else:
            delivery.removed.append(found.rel_path)
    elif found.content is not None:
        delivery.notes.append(ParsedNote(found.path, found.content_hash, found.content))
    elif found.policy is RagPolicy.NEVER or not is_wanted:
        delivery.removed.append(found.path)
    else:
        delivery.unchanged.append(found.path)


def may_have_rows(change: Change) -> bool:
    """Whether the store may hold rows of this file from before."""
    return change.change_type is not ChangeType.CREATE or change.attempts > 0


def may_pass(state: FileState) -> bool:
    """Whether a file was left out for a reason that the next run may not meet."""
    return state.status is EmbeddingStatus.FAILED and state.reason not in _FAILURES


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
    if found.reason is not None:
        # No content has an empty hash: a full run tries again, perhaps with another limit.
        state = FileState(found.path, EmbeddingStatus.SKIPPED, index_hash="", reason=found.reason)
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
