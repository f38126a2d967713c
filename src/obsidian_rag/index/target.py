"""Where an index run writes: the index in use, or the one being built beside it.

For the index in use the order is fixed: owe the work, change LanceDB, then record the outcome and
clear the work in one transaction; then the same for the consumer. A crash at any point leaves work
owed, never lost.
"""

from obsidian_rag.index.consumer import Delivery
from obsidian_rag.index.prepare import Gone, Group, LeftOut, Unchanged
from obsidian_rag.store import (
    LIVE,
    REBUILD,
    ChunkStore,
    Consumer,
    Database,
    FileState,
    IndexState,
    Manifest,
    Properties,
    Queue,
    StoredChunk,
)


class Target:
    """An index of one vault that is built beside the one in use.

    Nothing is announced, because every file of a resumed build is taken for half done, and nothing
    is owed, because what is built anew is built whole.
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
        """The rows these notes have now."""
        return self.chunks.fetch(self._link_id, paths)

    def begin(self, group: Group) -> None:
        """Say that the store is about to be changed for this group."""

    def commit(self, group: Group) -> None:
        """Record the outcome of a group whose rows are stored."""
        with self._database.transaction():
            self._record_states(group)
            record_properties(self._properties, self._link_id, group)

    def hand_over(self, delivery: Delivery) -> None:
        """Record that the consumer has got this."""

    def _record_states(self, group: Group) -> None:
        self.state.remove(self._link_id, _vanished(group))
        self.state.put(self._link_id, _states(group))


class LiveTarget(Target):
    """The index in use."""

    def __init__(self, database: Database, chunks: ChunkStore, link_id: str) -> None:
        super().__init__(database, chunks, link_id, LIVE)
        self.manifest = Manifest(database)
        self.queue = Queue(database)
        self._for_consumer = Queue(database, Consumer.RELATIONS)

    def begin(self, group: Group) -> None:
        """Count the attempt, so that a later run knows the store may be half changed."""
        with self._database.transaction():
            self.queue.start(self._link_id, (change.rel_path for change in group.changes()))

    def commit(self, group: Group) -> None:
        """Record outcomes and clear the work, in one transaction."""
        with self._database.transaction():
            self._record_states(group)
            self._record_files(group)
            record_properties(self._properties, self._link_id, group)
            for item in group.settled:
                if isinstance(item, LeftOut) and item.is_passing:
                    reason = item.state.reason or "failed"
                    self.queue.fail(self._link_id, item.change.rel_path, reason)
            self.queue.finish(self._link_id, _done(group))

    def hand_over(self, delivery: Delivery) -> None:
        """Clear the work that was owed to the consumer, but for what cannot be read now."""
        with self._database.transaction():
            for path, reason in delivery.postponed:
                self._for_consumer.fail(self._link_id, path, reason)
            self._for_consumer.finish(self._link_id, delivery.done())

    def _record_files(self, group: Group) -> None:
        self.manifest.forget(self._link_id, _vanished(group))
        confirmed = [(*note.entry, note.state.index_hash) for note in group.notes]
        for item in group.settled:
            if isinstance(item, Unchanged):
                confirmed.append((*item.entry, item.content_hash))
            elif isinstance(item, LeftOut) and item.entry is not None:
                confirmed.append((*item.entry, item.state.index_hash))
        self.manifest.confirm(self._link_id, confirmed)


def record_properties(properties: Properties, link_id: str, group: Group) -> None:
    """Properties come from the files alone, so both kinds of index share them."""
    left_out = [item.change.rel_path for item in group.settled if isinstance(item, LeftOut)]
    properties.remove(link_id, [*_vanished(group), *left_out])
    properties.put(link_id, ((note.row.source_file, note.properties) for note in group.notes))


def _states(group: Group) -> list[FileState]:
    return [note.state for note in group.notes] + [
        item.state for item in group.settled if isinstance(item, LeftOut)
    ]


def _vanished(group: Group) -> list[str]:
    old = [note.change.old_path for note in group.notes]
    old += [item.change.old_path for item in group.settled]
    gone = [item.change.rel_path for item in group.settled if isinstance(item, Gone)]
    return [path for path in old if path is not None] + gone


def _done(group: Group) -> list[str]:
    return [note.change.rel_path for note in group.notes] + [
        item.change.rel_path
        for item in group.settled
        if not (isinstance(item, LeftOut) and item.is_passing)
    ]
