"""Turns changes into searchable notes: prepare, embed and store run concurrently on groups.

Memory is bounded by the groups in flight, not by the vault. Group size adapts to the embedder's
speed, so that little is lost when the process dies during a slow one.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from obsidian_rag.embed import Embedder, InputsRejected
from obsidian_rag.index.fingerprint import other_width
from obsidian_rag.index.limits import Guarded
from obsidian_rag.index.prepare import Group, LeftOut, NewChunk, Prepared, Preparer, Unchanged
from obsidian_rag.index.progress import Failure, Listener, Phase, Progress, Stop, Tally
from obsidian_rag.index.reader import VaultSource
from obsidian_rag.relations import RelatedChanges, RelationsWriter
from obsidian_rag.store import (
    MOST_ATTEMPTS,
    Change,
    ChangeType,
    ChunkRow,
    EmbeddingStatus,
    FileState,
)
from obsidian_rag.vault import Ahead

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from obsidian_rag.index.target import Target

_MAX_GROUPS_AHEAD = 2
_MAX_GROUP_CHUNKS = 2048
_MIN_GROUP_CHUNKS = 64
# It can stop between two batches.
_BATCH_CHUNKS = 256
_FAST_GROUP_S = 1.0
_SLOW_GROUP_S = 8.0


@dataclass(frozen=True, slots=True)
class _Embedded:
    group: Group
    rows: list[ChunkRow]
    vectors: "NDArray[np.float32]"
    fresh: int


class Pipeline:
    """Writes a list of changes to one target, and to the related notes if enabled."""

    def __init__(
        self,
        source: VaultSource,
        target: "Target",
        embedder: Embedder,
        guarded: Guarded,
        tally: Tally,
        check: Callable[[Group], None] = lambda _: None,
        relations: RelationsWriter | None = None,
        announce: Callable[[], None] = lambda: None,
        stored: Callable[[], None] = lambda: None,
    ) -> None:
        """`check` gets each group before the store changes, and may raise to stop the run.

        `announce` runs inside the transaction that marks a group as indexed, `stored` after it.
        """
        self._announce = announce
        self._stored = stored
        self._check = check
        self._relations = relations
        self._target = target
        self._embedder = embedder
        self._guarded = guarded
        self._tally = tally
        self._source = source
        self._width: int | None = None
        self.commits = 0

    def run(self, changes: Sequence[Change], listener: Listener, stop: Stop) -> None:
        """Process the changes until done or `stop` returns true."""
        total = len(changes)
        hashes = self._target.state.hashes(
            self._source.link_id, [change.rel_path for change in changes]
        )
        self._width = self._target.chunks.dimensions if changes else None
        self._preparer = Preparer(
            self._source, hashes, self._target.old_chunks, self._guarded, self._relations
        )

        def counted(groups: Iterator[Group], phase: Phase) -> Iterator[Group]:
            done = 0
            for group in groups:
                done += group.files
                listener(Progress(phase, done, total))
                yield group

        done = 0
        groups = counted(self._preparer.groups(changes, stop), Phase.PARSING)
        with Ahead(self._embed_groups(groups, stop), _MAX_GROUPS_AHEAD, stop) as ready:
            for item in ready:
                listener(Progress(Phase.EMBEDDING, done + item.group.files, total))
                self._store(item)
                done += item.group.files
                listener(Progress(Phase.STORING, done, total))
        self._tally.is_cancelled |= done < total

    def _embed_groups(self, groups: Iterator[Group], stop: Stop) -> Iterator[_Embedded]:
        for group in groups:
            started = time.monotonic()
            embedded = self._embed(group, stop)
            if embedded is None:
                return
            self._adapt_group_size(time.monotonic() - started)
            yield embedded

    def _adapt_group_size(self, seconds: float) -> None:
        if seconds < _FAST_GROUP_S:
            self._preparer.group_chunks = min(self._preparer.group_chunks * 2, _MAX_GROUP_CHUNKS)
        elif seconds > _SLOW_GROUP_S:
            self._preparer.group_chunks = max(self._preparer.group_chunks // 2, _MIN_GROUP_CHUNKS)

    def _embed(self, group: Group, stop: Stop) -> _Embedded | None:
        """The group with its vectors; None if stopped."""
        fresh = [
            (note, chunk, text)
            for note in group.notes
            for chunk in note.chunks
            if chunk.vector is None and (text := self._text_to_embed(note, chunk)) is not None
        ]
        made: dict[int, NDArray[np.float32]] = {}
        for start in range(0, len(fresh), _BATCH_CHUNKS):
            if stop():
                return None
            some = fresh[start : start + _BATCH_CHUNKS]
            try:
                vectors = self._embedder.embed_documents([text for _, _, text in some])
            except InputsRejected as error:
                rejected = {id(some[position][0]) for position in error.positions}
                return self._embed(_without(group, rejected, error.message), stop)
            self._check_width(vectors)
            made |= {id(chunk): vector for (_, chunk, _), vector in zip(some, vectors, strict=True)}
        return self._assemble(group, made)

    def _check_width(self, vectors: "NDArray[np.float32]") -> None:
        """A server may have switched to another model under the same name."""
        if len(vectors) and self._width not in (None, vectors.shape[1]):
            raise other_width(vectors.shape[1], self._width)

    def _assemble(self, group: Group, made: "dict[int, NDArray[np.float32]]") -> _Embedded:
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
                columns.append(vector if vector is not None else self._placeholder_vector())
        matrix = np.vstack(columns) if columns else np.zeros((0, 1), dtype=np.float32)
        return _Embedded(group, rows, matrix, len(made))

    def _text_to_embed(self, note: Prepared, chunk: NewChunk) -> str | None:
        """The text to embed; None if it must not leave this machine."""
        if not self._embedder.is_external:
            return chunk.embedded
        row = note.row
        return self._guarded.sendable(row.title, chunk.chunk, is_private=row.is_private)

    def _placeholder_vector(self) -> "NDArray[np.float32]":
        """A vector for text that must not leave the machine: keyword search alone finds it."""
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
        # Before the queue rows are cleared: after a crash in between the work is done again.
        if self._relations is not None:
            self._relations.write(self._source.link_id, _related_changes(item))
        self._target.commit(item.group, self._announce)
        self._count(item)
        self._stored()

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
                    # After too many failures only a change to the file triggers another attempt.
                    is_passing = settled.is_passing and settled.change.attempts + 1 < MOST_ATTEMPTS
                    link_id = self._source.link_id
                    tally.errors.append(Failure(path, reason, settled.message, is_passing, link_id))
            else:
                tally.removed += 1
        tally.embedded_chunks += item.fresh
        tally.reused_chunks += len(item.rows) - item.fresh


def _related_changes(item: _Embedded) -> RelatedChanges:
    """A group's changes for relations; stored notes carry their passages."""
    passages: dict[str, list[tuple[str, NDArray[np.float32]]]] = {
        note.row.source_file: [] for note in item.group.notes
    }
    for row, vector in zip(item.rows, item.vectors, strict=True):
        passages[row.note.source_file].append((row.content_hash, vector))
    related = item.group.related
    notes = [replace(note, passages=passages.get(note.path)) for note in related.notes]
    return replace(related, notes=notes)


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
