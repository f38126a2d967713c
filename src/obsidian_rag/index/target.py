"""Where an index run writes: the live index, or the one being built beside it.

For the live index the order is fixed: queue the work, change LanceDB, then record the outcome and
clear the queue in one transaction. After a crash at any point the work is still queued, never lost.
"""

from collections.abc import Callable

from obsidian_rag.index.prepare import Gone, Group, LeftOut, Unchanged
from obsidian_rag.store import (
    LIVE,
    REBUILD,
    ChunkStore,
    Database,
    FileState,
    IndexState,
    Manifest,
    Properties,
    Queue,
    StoredChunk,
)


class Target:
    """An index of one vault that is built beside the live one.

    It marks no attempts, because a resumed build treats every file as half done, and it does not
    use the queue, because a rebuild covers all files.
    """

    def __init__(
        self, database: Database, chunks: ChunkStore, link_id: str, table: str = REBUILD
    ) -> None:
        self.chunks = chunks
        self.state = IndexState(database, table)
        self._properties = Properties(database)
        self._database = database
        self._link_id = link_id

    def old_chunks(self, paths: list[str]) -> dict[str, list[StoredChunk]]:
        """The current rows of these notes."""
        return self.chunks.fetch(self._link_id, paths)

    def begin(self, group: Group) -> None:
        """Called before the store is changed for this group."""

    def commit(self, group: Group, announce: Callable[[], None] = lambda: None) -> None:
        """Record the outcome of a group whose rows are stored."""
        with self._database.transaction():
            announce()
            self._record_states(group)
            record_properties(self._properties, self._link_id, group)

    def _record_states(self, group: Group) -> None:
        self.state.remove(self._link_id, _vanished_paths(group))
        self.state.put(self._link_id, _states(group))


class LiveTarget(Target):
    """The index in use."""

    def __init__(self, database: Database, chunks: ChunkStore, link_id: str) -> None:
        super().__init__(database, chunks, link_id, LIVE)
        self.manifest = Manifest(database)
        self.queue = Queue(database)

    def begin(self, group: Group) -> None:
        """Count the attempt, so that a later run knows the store may be half changed."""
        self.queue.start(self._link_id, (change.rel_path for change in group.changes()))

    def commit(self, group: Group, announce: Callable[[], None] = lambda: None) -> None:
        """Record outcomes, clear the work and announce it, in one transaction."""
        with self._database.transaction():
            announce()
            self._record_states(group)
            self._record_files(group)
            record_properties(self._properties, self._link_id, group)
            for item in group.settled:
                if isinstance(item, LeftOut) and item.is_passing:
                    reason = item.state.reason or "failed"
                    self.queue.fail(self._link_id, item.change.rel_path, reason)
            self.queue.finish(self._link_id, _done_paths(group))

    def _record_files(self, group: Group) -> None:
        self.manifest.forget(self._link_id, _vanished_paths(group))
        confirmed = [(*note.entry, note.state.index_hash) for note in group.notes]
        for item in group.settled:
            if isinstance(item, Unchanged):
                confirmed.append((*item.entry, item.content_hash))
            elif isinstance(item, LeftOut) and item.entry is not None:
                confirmed.append((*item.entry, item.state.index_hash))
        self.manifest.confirm(self._link_id, confirmed)


def record_properties(properties: Properties, link_id: str, group: Group) -> None:
    """Store properties; they depend only on the files, so both indexes share them."""
    left_out = [item.change.rel_path for item in group.settled if isinstance(item, LeftOut)]
    properties.remove(link_id, [*_vanished_paths(group), *left_out])
    properties.put(link_id, ((note.row.source_file, note.properties) for note in group.notes))


def _states(group: Group) -> list[FileState]:
    return [note.state for note in group.notes] + [
        item.state for item in group.settled if isinstance(item, LeftOut)
    ]


def _vanished_paths(group: Group) -> list[str]:
    old = [note.change.old_path for note in group.notes]
    old += [item.change.old_path for item in group.settled]
    gone = [item.change.rel_path for item in group.settled if isinstance(item, Gone)]
    return [path for path in old if path is not None] + gone


def _done_paths(group: Group) -> list[str]:
    return [note.change.rel_path for note in group.notes] + [
        item.change.rel_path
        for item in group.settled
        if not (isinstance(item, LeftOut) and item.is_passing)
    ]
