"""Changes in, searchable notes out: prepare, embed and store run side by side, a few groups each.

Memory is bounded by the groups under way, not by the vault. The sizes of groups follow the
embedder's speed, so that a slow one loses little when the process dies.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from obsidian_rag.embed import Embedder, InputsRejected
from obsidian_rag.index.consumer import NoteConsumer
from obsidian_rag.index.fingerprint import other_width
from obsidian_rag.index.prepare import Group, LeftOut, NewChunk, Prepared, Preparer, Task, Unchanged
from obsidian_rag.index.progress import Failure, Listener, Phase, Progress, Stop, Tally
from obsidian_rag.index.reader import Source
from obsidian_rag.notes import chunk_categories, sensitive_categories
from obsidian_rag.store import MOST_ATTEMPTS, ChangeType, ChunkRow, EmbeddingStatus, FileState
from obsidian_rag.vault import Ahead

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from obsidian_rag.index.target import Target

_GROUPS_AHEAD = 2
_MOST_CHUNKS = 2048
_FEWEST_CHUNKS = 64
# Between two of these it can stop.
_CHUNKS_AT_ONCE = 256
_BRISK_S = 1.0
_SLOW_S = 8.0


@dataclass(frozen=True, slots=True)
class Guarded:
    """What must never be sent to an embedder outside this machine."""

    patterns: Mapping[str, Sequence[str]]
    sections: Sequence[str]

    def is_sensitive(self, note: Prepared, chunk: NewChunk) -> bool:
        """Whether this chunk is private."""
        return note.row.is_private or bool(
            chunk_categories(chunk.chunk, self.patterns, self.sections)
            or sensitive_categories(note.row.title, None, (), self.patterns, self.sections)
        )


@dataclass(frozen=True, slots=True)
class _Embedded:
    group: Group
    rows: list[ChunkRow]
    vectors: "NDArray[np.float32]"
    fresh: int


class Pipeline:
    """Does one list of tasks: into one target, and for the consumer, if there is one."""

    def __init__(
        self,
        source: Source,
        target: "Target",
        embedder: Embedder,
        guarded: Guarded,
        tally: Tally,
        check: Callable[[Group], None] = lambda _: None,
        consumer: NoteConsumer | None = None,
        stored: Callable[[], None] = lambda: None,
    ) -> None:
        """`check` sees each group before the store changes, and may stop the run.

        `stored` hears of each group that is searchable now.
        """
        self._stored = stored
        self._check = check
        self._consumer = consumer
        self._target = target
        self._embedder = embedder
        self._guarded = guarded
        self._tally = tally
        self._source = source
        self._width: int | None = None
        self.commits = 0

    def run(self, tasks: Sequence[Task], listener: Listener, stop: Stop) -> None:
        """Do every task, or as many as there are until `stop` says so."""
        total = len(tasks)
        paths = [task.path for task in tasks]
        hashes = self._target.state.hashes(self._source.link_id, paths)
        if any(task.for_chunks is not None for task in tasks):
            self._width = self._target.chunks.dimensions
        self._preparer = Preparer(self._source, hashes, self._target.old_chunks, self._consumer)

        def counted(groups: Iterator[Group], phase: Phase) -> Iterator[Group]:
            done = 0
            for group in groups:
                done += group.files
                listener(Progress(phase, done, total))
                yield group

        done = 0
        groups = counted(self._preparer.groups(tasks, stop), Phase.PARSING)
        with Ahead(self._embedded(groups, stop), _GROUPS_AHEAD, stop) as ready:
            for item in ready:
                listener(Progress(Phase.EMBEDDING, done + item.group.files, total))
                self._store(item)
                done += item.group.files
                listener(Progress(Phase.STORING, done, total))
        self._tally.is_cancelled |= done < total

    def _embedded(self, groups: Iterator[Group], stop: Stop) -> Iterator[_Embedded]:
        for group in groups:
            started = time.monotonic()
            embedded = self._embed(group, stop)
            if embedded is None:
                return
            self._adapt(time.monotonic() - started)
            yield embedded

    def _adapt(self, seconds: float) -> None:
        if seconds < _BRISK_S:
            self._preparer.group_chunks = min(self._preparer.group_chunks * 2, _MOST_CHUNKS)
        elif seconds > _SLOW_S:
            self._preparer.group_chunks = max(self._preparer.group_chunks // 2, _FEWEST_CHUNKS)

    def _embed(self, group: Group, stop: Stop) -> _Embedded | None:
        """The group with its vectors; None if it is time to stop."""
        fresh = [
            (note, chunk)
            for note in group.notes
            for chunk in note.chunks
            if chunk.vector is None and not self._is_withheld(note, chunk)
        ]
        made: dict[int, NDArray[np.float32]] = {}
        for start in range(0, len(fresh), _CHUNKS_AT_ONCE):
            if stop():
                return None
            some = fresh[start : start + _CHUNKS_AT_ONCE]
            try:
                vectors = self._embedder.embed_documents([chunk.embedded for _, chunk in some])
            except InputsRejected as error:
                rejected = {id(some[position][0]) for position in error.positions}
                return self._embed(_without(group, rejected, error.message), stop)
            self._check_width(vectors)
            made |= {id(chunk): vector for (_, chunk), vector in zip(some, vectors, strict=True)}
        return self._placed(group, made)

    def _check_width(self, vectors: "NDArray[np.float32]") -> None:
        """A server may have another model under the same name by now."""
        if len(vectors) and self._width not in (None, vectors.shape[1]):
            raise other_width(vectors.shape[1], self._width)

    def _placed(self, group: Group, made: "dict[int, NDArray[np.float32]]") -> _Embedded:
        rows = []
        columns = []
        for note in group.notes:
            for position, chunk in enumerate(note.chunks):
                rows.append(
                    ChunkRow(
                        note=note.row,
                        chunk=chunk.chunk,
                        chunk_id=chunk.chunk_id,
                        chunk_index=position,
                        total_chunks=len(note.chunks),
                        content_hash=chunk.content_hash,
                    )
                )
                vector = chunk.vector if chunk.vector is not None else made.get(id(chunk))
                columns.append(vector if vector is not None else self._blank())
        matrix = np.vstack(columns) if columns else np.zeros((0, 1), dtype=np.float32)
        return _Embedded(group, rows, matrix, len(made))

    def _is_withheld(self, note: Prepared, chunk: NewChunk) -> bool:
        return self._embedder.is_external and self._guarded.is_sensitive(note, chunk)

    def _blank(self) -> "NDArray[np.float32]":
        """The vector of a text that must not leave the machine: it is found by words only."""
        vector = np.zeros(self._embedder.dimensions, dtype=np.float32)
        vector[0] = 1
        return vector

    def _store(self, item: _Embedded) -> None:
        self._check(item.group)
        self._target.begin(item.group)
        stale = item.group.stale_paths()
        if stale or item.rows:
            self._target.chunks.replace(self._source.link_id, stale, item.rows, item.vectors)
            self.commits += 1 + bool(stale)
        self._target.commit(item.group)
        self._count(item)
        # Questions need not wait for the consumer.
        self._stored()
        self._hand_over(item)

    def _hand_over(self, item: _Embedded) -> None:
        """Give the consumer its part: after the chunks, so that it is never ahead of them."""
        if self._consumer is None:
            return
        passages: dict[str, list[tuple[str, NDArray[np.float32]]]] = defaultdict(list)
        for row, vector in zip(item.rows, item.vectors, strict=True):
            passages[row.note.source_file].append((row.content_hash, vector))
        given = item.group.delivery
        stored = {note.row.source_file for note in item.group.notes}
        given.notes = [
            replace(note, passages=passages[note.path]) if note.path in stored else note
            for note in given.notes
        ]
        if self._consumer.take(self._source.link_id, given):
            self._target.hand_over(given)

    def _count(self, item: _Embedded) -> None:
        tally = self._tally
        for note in item.group.notes:
            match note.change.change_type:
                case ChangeType.CREATE:
                    tally.added += 1
                case ChangeType.RENAME:
                    tally.renamed += 1
                case _:
                    tally.changed += 1
        for settled in item.group.settled:
            if isinstance(settled, Unchanged):
                tally.unchanged += 1
            elif isinstance(settled, LeftOut):
                tally.skipped += settled.message is None
                if settled.message is not None:
                    reason = settled.state.reason or "failed"
                    path = settled.change.rel_path
                    # What has failed too often waits for a change to the file, not for time.
                    is_passing = settled.is_passing and settled.change.attempts + 1 < MOST_ATTEMPTS
                    link_id = self._source.link_id
                    tally.errors.append(Failure(path, reason, settled.message, is_passing, link_id))
            else:
                tally.removed += 1
        tally.embedded_chunks += item.fresh
        tally.reused_chunks += len(item.rows) - item.fresh


def _without(group: Group, rejected: set[int], message: str) -> Group:
    """The group with the notes that cannot be embedded moved to its failures."""
    failed = [
        LeftOut(
            note.change,
            FileState(note.change.rel_path, EmbeddingStatus.FAILED, reason="embedding_failed"),
            message=f"{note.change.rel_path} was not indexed: {message}",
            is_passing=True,
        )
        for note in group.notes
        if id(note) in rejected
    ]
    kept = [note for note in group.notes if id(note) not in rejected]
    return replace(group, notes=kept, settled=[*group.settled, *failed])
