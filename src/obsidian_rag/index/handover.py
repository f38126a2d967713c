"""What an index run owes to its consumer, and whether the two agree.

They agree while both have the same mark: then the queue alone tells what the consumer lacks. A
consumer that is new, was damaged, or admits other notes than before is compared with the index, for
all vaults: what another vault's notes lack is left to the next run over that vault.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from obsidian_rag.index.consumer import NoteConsumer, NoteRef, Stop, differences
from obsidian_rag.index.plan import spread
from obsidian_rag.index.prepare import may_pass
from obsidian_rag.store import (
    Change,
    ChangeType,
    ChunkStore,
    Consumer,
    Database,
    IndexState,
    Links,
    Queue,
)

MARK = "consumer_mark"
# A consumer may want notes again when it has seen all, or be damaged on the way.
_MOST_TURNS = 3


class Handover:
    """One run's dealings with the consumer; without one it owes nothing."""

    def __init__(self, database: Database, consumer: NoteConsumer | None, link_id: str) -> None:
        self._database = database
        self._consumer = consumer
        self._link_id = link_id
        self._queue = Queue(database, Consumer.RELATIONS)
        self._state = IndexState(database)
        self._must_compare = True

    def begin(
        self,
        fingerprint: str,
        *,
        is_rebuild: bool = False,
        is_whole: bool = True,
        is_doubted: bool = False,
    ) -> None:
        """Have the consumer ready; `is_doubted` compares it with the index in any case."""
        if self._consumer is not None:
            self._consumer.begin(fingerprint, is_rebuild=is_rebuild, is_whole=is_whole)
            mark = self._consumer.mark
            self._must_compare = is_doubted or mark is None or mark != self._database.get(MARK)

    def owe(self, work: Iterable[Change] = ()) -> None:
        """Write down this work, and what the consumer lacks besides if that is not known."""
        if self._consumer is None:
            return
        with self._database.transaction():
            self._queue.split_renames(self._link_id)
            if self._must_compare:
                known = self._known_links()
                self._consumer.keep_only(known)
                for link_id in known:
                    self._queue.add(link_id, spread(self._lacking(self._consumer, link_id)))
                self._must_compare = False
                if self._consumer.is_lost:
                    self._consumer.start_over()
            self._queue.add(self._link_id, work)

    def size(self) -> int:
        """How many files the consumer has not got yet."""
        return self._queue.size(self._link_id) if self._consumer is not None else 0

    def owed_at(self, paths: Sequence[str]) -> list[Change]:
        """What the consumer has not got yet of the files at these paths."""
        return self._queue.owed_at(self._link_id, paths) if self._consumer is not None else []

    def pages(self, size: int, *, is_alone: bool) -> Iterator[list[Change]]:
        """All that it has not got yet, or what is owed to nobody else, some files at a time."""
        if self._consumer is not None:
            yield from self._queue.pages(self._link_id, size, is_alone=is_alone)

    def finish(self, chunks: ChunkStore, do_owed: Callable[[], None], stop: Stop) -> None:
        """Let the consumer do what depends on all notes, until it wants none of them again."""
        if self._consumer is None:
            return
        for _ in range(_MOST_TURNS):
            again = self._ours(self._consumer.settle())
            if not again and not self._consumer.is_lost:
                mark = self._consumer.finish(chunks, self._state.hashes, stop)
                if mark is not None and mark != self._database.get(MARK):
                    self._database.put(MARK, mark)
            if stop() or not (again or self._consumer.is_lost):
                return
            if self._consumer.is_lost:
                self._consumer.start_over()
                self._must_compare = True
            self.owe(Change(path, ChangeType.UPDATE) for path in again)
            do_owed()

    def clear(self) -> None:
        """The index is another one from now on: nothing is owed, and nothing known to agree."""
        for link_id in self._known_links():
            self._queue.clear(link_id)
        self._database.put(MARK, None)

    def _known_links(self) -> list[str]:
        return [link.link_id for link in Links(self._database).all()]

    def _ours(self, again: Sequence[NoteRef]) -> list[str]:
        """The paths of this vault; notes of others are owed to the next run over theirs."""
        for link_id, path in again:
            if link_id != self._link_id:
                self._queue.add(link_id, [Change(path, ChangeType.UPDATE)])
        return [path for link_id, path in again if link_id == self._link_id]

    def _lacking(self, consumer: NoteConsumer, link_id: str) -> list[Change]:
        kept = {state.rel_path for state in self._state.troubled(link_id) if may_pass(state)}
        indexed = self._state.hashes(link_id, is_searchable=True)
        return differences(consumer.contents(link_id), indexed, kept, consumer.admits)
