"""A second index of all vaults, built beside the one in use and swapped in when it is whole.

Search goes on all the while. So it is done by any run that finds an index of another version of the
program; an interrupted rebuild is taken up by whatever run comes next.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from obsidian_rag.index.fingerprint import fingerprint, is_outdated
from obsidian_rag.index.place import IndexPlace
from obsidian_rag.index.plan import changes, compare, settled_mtime, spread
from obsidian_rag.index.prepare import Task, joined
from obsidian_rag.index.progress import (
    Cancelled,
    IndexResult,
    Listener,
    Mode,
    Phase,
    Progress,
    Stop,
    Tally,
)
from obsidian_rag.index.run import (
    COMMITS,
    FINGERPRINT,
    INDEX_VERSION,
    MAINTAINED,
    PROMOTING,
    REBUILDING,
    IndexRun,
    Workplace,
    finish_promotion,
)
from obsidian_rag.index.target import Target
from obsidian_rag.index.vault_check import FIRST_UNFINISHED
from obsidian_rag.store import (
    NEXT_TABLE,
    REBUILD,
    Change,
    ChangeType,
    ChunkStore,
    Consumer,
    IndexState,
    LinkFacts,
    Links,
    Manifest,
    Properties,
    Queue,
)
from obsidian_rag.vault import Scan, Vault

_BUILT_ANEW = "The index was made by another version of obsidian-rag and was built anew."


@dataclass(frozen=True, slots=True)
class _Part:
    """One vault of a rebuild: its run, what was found of it and when."""

    vault: Vault
    run: IndexRun
    found: Scan
    begun_ns: int


def is_rebuild_due(place: IndexPlace, mode: Mode) -> bool:
    """Whether a run in this mode is to build a second index: asked for, or not finished."""
    is_wanted = mode is Mode.REINDEX or place.database.get(REBUILDING) is not None
    return (is_wanted or _is_of_another_version(place)) and place.chunks.exists()


def _is_of_another_version(place: IndexPlace | Workplace) -> bool:
    return is_outdated(place.database.get(FINGERPRINT), fingerprint(place.embedder, place.limits))


class Rebuild:
    """One rebuild of all vaults; a vault that is away stops it before anything is changed."""

    def __init__(
        self,
        place: Workplace,
        vaults: Sequence[Vault],
        listener: Listener,
        stop: Stop,
        *,
        accepts_removals: bool = False,
    ) -> None:
        self._place = place
        self._vaults = vaults
        self._listener = listener
        self._stop = stop
        self._accepts = accepts_removals
        self._state = IndexState(place.database)
        self._built = IndexState(place.database, REBUILD)
        self._successor = ChunkStore(place.chunks.uri, NEXT_TABLE)
        self._tally = Tally()

    def run(self, mode: Mode) -> IndexResult:
        """Build the index and swap it in.

        Raises:
            VaultAway: a vault, or too much of it, is missing; the index in use is as it was.
            IndexIncomplete: the index was made of another vault; it is as it was.
            ObsidianRagError: the embedder or the store failed; the next run goes on.
        """
        finish_promotion(self._place.database, self._place.chunks)
        is_outdated_now = _is_of_another_version(self._place)
        try:
            self._build()
        except Cancelled:
            self._tally.is_cancelled = True
        repair = _BUILT_ANEW if is_outdated_now and not self._tally.is_cancelled else ""
        return IndexResult(mode, *self._state.totals(), self._tally, repair=repair)

    def _build(self) -> None:
        wanted = fingerprint(self._place.embedder, self._place.limits)
        parts = [self._look(vault) for vault in self._vaults]
        is_resumed = self._begin(wanted)
        first = parts[0].run
        first.handover.begin(wanted, is_rebuild=True)
        for part in parts:
            target = Target(self._place.database, self._successor, part.vault.link_id)
            part.run.process(target, self._tasks(part, is_resumed=is_resumed))
            self._tally.add(part.run.tally)
            if self._tally.is_cancelled:
                return
        self._listener(Progress(Phase.OPTIMISING, 0, 0))
        self._successor.maintain(window_s=0)
        self._switch(parts, wanted)
        for part in parts:
            skipped = part.run.tally.skipped
            part.run.note_skips(part.found)
            self._tally.skipped += part.run.tally.skipped - skipped
        first.finish()

    def _look(self, vault: Vault) -> _Part:
        begun = time.time_ns()
        place = replace(self._place, vault=vault)
        run = IndexRun(place, self._listener, self._stop, accepts_removals=self._accepts)
        found = run.scan()
        known = Manifest(self._place.database).known(vault.link_id)
        difference = compare(found.files, known, found.unreadable_folders)
        run.check.allow(found, known, changes(difference, known, lambda _: None))
        return _Part(vault, run, found, begun)

    def _begin(self, wanted: str) -> bool:
        """Have a table to build; whether it is one that an interrupted build left."""
        database, successor = self._place.database, self._successor
        if (
            database.get(REBUILDING) == wanted
            and successor.exists()
            and successor.damage(is_deep=True) is None
        ):
            return True
        successor.drop()
        with database.transaction():
            self._built.clear()
            database.put(REBUILDING, wanted)
        self._place.embedder.probe()
        successor.create(self._place.embedder.dimensions)
        return False

    def _tasks(self, part: _Part, *, is_resumed: bool) -> Sequence[Task]:
        link_id = part.vault.link_id
        done = self._built.hashes(link_id)
        # An interrupted build may have stored rows that it had no time to note down.
        half_done = self._successor.paths(link_id) - done.keys() if is_resumed else set()
        seen = {entry.rel_path for entry in part.found.files}
        work = [
            Change(
                path,
                ChangeType.UPDATE if path in done else ChangeType.CREATE,
                attempts=int(path in half_done),
            )
            for path in sorted(seen)
        ]
        work += [Change(path, ChangeType.DELETE) for path in {*done, *half_done} - seen]
        for_consumer = work[: len(seen)] if self._place.consumer is not None else []
        return spread(joined(work, for_consumer))

    def _switch(self, parts: list[_Part], wanted: str) -> None:
        """Adopt the new index: the books first, in one transaction, then the files."""
        database, handover = self._place.database, parts[0].run.handover
        with database.transaction():
            handover.clear()
            for part in parts:
                self._note_files(part)
            self._state.adopt(self._built)
            handover.owe()
            for part in parts if self._place.consumer is not None else ():
                Queue(database, Consumer.RELATIONS).add(part.vault.link_id, _passing(part))
            Properties(database).forget_others()
            database.put(FINGERPRINT, wanted)
            database.put(REBUILDING, None)
            database.put(COMMITS, "0")
            database.put(MAINTAINED, str(time.time()))
            database.add_to(INDEX_VERSION, 1)
            database.put(PROMOTING, "1")
        finish_promotion(database, self._place.chunks)

    def _note_files(self, part: _Part) -> None:
        """What was seen of one vault, and what could not be read of it."""
        database, link_id = self._place.database, part.vault.link_id
        manifest, queue = Manifest(database), Queue(database)
        hashes = self._built.hashes(link_id)
        files = [
            entry._replace(mtime_ns=settled_mtime(entry.mtime_ns, part.begun_ns))
            for entry in part.found.files
        ]
        manifest.clear(link_id)
        manifest.record(link_id, files)
        manifest.confirm(link_id, ((*entry, hashes.get(entry.rel_path)) for entry in files))
        queue.clear(link_id)
        queue.add(link_id, _passing(part))
        part.run.note_newest(part.found.files, is_whole=True)
        Links(database).scanned(link_id, None)
        part.run.check.adopt()
        LinkFacts(database, link_id).put(FIRST_UNFINISHED, None)


def _passing(part: _Part) -> list[Change]:
    """The files of a vault that could not be read this time."""
    errors = part.run.tally.errors
    return [Change(one.file, ChangeType.UPDATE) for one in errors if one.is_passing]
