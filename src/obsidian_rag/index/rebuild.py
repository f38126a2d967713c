"""Builds a second index of all vaults beside the live one and swaps it in when complete.

Search keeps working meanwhile. So any run that finds an index of another program version rebuilds
it; the next run, whatever its mode, resumes an interrupted rebuild.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from obsidian_rag.index.fingerprint import is_outdated
from obsidian_rag.index.parts import Parts
from obsidian_rag.index.plan import changes, compare, settled_mtime, spread
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
from obsidian_rag.index.relate import doubt_relations
from obsidian_rag.index.run import IndexRun, Workplace, finish_promotion
from obsidian_rag.index.target import Target
from obsidian_rag.store import (
    REBUILD,
    Change,
    ChangeType,
    IndexFact,
    IndexState,
    LinkFact,
    LinkFacts,
    Links,
    Manifest,
    Properties,
    Queue,
)
from obsidian_rag.vault import Scan, Vault

_REBUILT_MESSAGE = "The index was made by another version of obsidian-rag and was rebuilt."


@dataclass(frozen=True, slots=True)
class _Part:
    """One vault of a rebuild: its run, its scan and when that began."""

    vault: Vault
    run: IndexRun
    found: Scan
    begun_ns: int


def is_rebuild_due(parts: Parts, mode: Mode) -> bool:
    """Whether a run in this mode must rebuild: requested, unfinished, or outdated index."""
    facts = parts.database.facts()
    is_wanted = mode is Mode.REINDEX or IndexFact.REBUILDING in facts
    is_due = is_wanted or is_outdated(facts.get(IndexFact.FINGERPRINT), parts.fingerprint)
    return is_due and parts.chunks.exists()


class Rebuild:
    """One rebuild of all vaults; a missing vault stops it before anything changes."""

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
        self._accepts_removals = accepts_removals
        self._state = IndexState(place.database)
        self._built = IndexState(place.database, REBUILD)
        self._successor = place.chunks.successor()
        self._tally = Tally()

    def run(self, mode: Mode) -> IndexResult:
        """Build the index and swap it in.

        Raises:
            VaultAway: a vault, or too much of it, is missing; the live index is unchanged.
            IndexIncomplete: the index belongs to another vault; it is unchanged.
            ObsidianRagError: the embedder or the store failed; the next run continues.
        """
        finish_promotion(self._place.database, self._place.chunks)
        made = self._place.database.get(IndexFact.FINGERPRINT)
        is_outdated_now = is_outdated(made, self._place.fingerprint)
        try:
            self._build()
        except Cancelled:
            self._tally.is_cancelled = True
        repair = _REBUILT_MESSAGE if is_outdated_now and not self._tally.is_cancelled else ""
        return IndexResult(mode, *self._state.totals(), self._tally, repair=repair)

    def _build(self) -> None:
        wanted = self._place.fingerprint
        parts = [self._scan_vault(vault) for vault in self._vaults]
        is_resumed = self._prepare_table(wanted)
        if (relating := parts[0].run.relating) is not None:
            relating.begin(wanted, is_rebuild=True)
        for part in parts:
            target = Target(self._place.database, self._successor, part.vault.link_id)
            part.run.process(target, self._list_work(part, is_resumed=is_resumed))
            self._tally.add(part.run.tally)
            if self._tally.is_cancelled:
                return
        self._listener(Progress(Phase.OPTIMISING, 0, 0))
        self._successor.maintain(window_s=0)
        self._adopt(parts, wanted)
        for part in parts:
            skipped = part.run.tally.skipped
            part.run.note_skips(part.found)
            self._tally.skipped += part.run.tally.skipped - skipped
            part.run.finish()

    def _scan_vault(self, vault: Vault) -> _Part:
        begun = time.time_ns()
        place = replace(self._place, vault=vault)
        run = IndexRun(place, self._listener, self._stop, accepts_removals=self._accepts_removals)
        found = run.scan()
        known = Manifest(self._place.database).known(vault.link_id)
        difference = compare(found.files, known, found.unreadable_folders)
        run.brake.allow(found, known, changes(difference, known, lambda _: None))
        return _Part(vault, run, found, begun)

    def _prepare_table(self, wanted: str) -> bool:
        """Prepare the new table; returns whether it resumes an interrupted build."""
        database, successor = self._place.database, self._successor
        if (
            database.get(IndexFact.REBUILDING) == wanted
            and successor.exists()
            and successor.is_recorded()
            and successor.damage(is_deep=True) is None
        ):
            return True
        successor.drop()
        with database.transaction():
            self._built.clear()
            database.put(IndexFact.REBUILDING, wanted)
        self._place.embedder.probe()
        successor.create(self._place.embedder.dimensions)
        return False

    def _list_work(self, part: _Part, *, is_resumed: bool) -> Sequence[Change]:
        link_id = part.vault.link_id
        done = self._built.hashes(link_id)
        # An interrupted build may have stored rows that it did not record.
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
        return spread(work)

    def _adopt(self, parts: list[_Part], wanted: str) -> None:
        """Switch to the new index: SQLite first, in one transaction, then the files."""
        database = self._place.database
        with database.transaction():
            doubt_relations(database)
            for part in parts:
                self._record_files(part)
            self._state.adopt(self._built)
            Properties(database).forget_others()
            database.put(IndexFact.FINGERPRINT, wanted)
            database.put(IndexFact.REBUILDING, None)
            database.put(IndexFact.COMMITS, "0")
            database.put(IndexFact.MAINTAINED, str(time.time()))
            database.add_to(IndexFact.VERSION, 1)
            database.put(IndexFact.PROMOTING, "1")
        finish_promotion(database, self._place.chunks)

    def _record_files(self, part: _Part) -> None:
        """Record a vault's files, and queue those that could not be read."""
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
        queue.add(link_id, _retry_changes(part))
        part.run.note_newest(part.found.files, is_whole=True)
        Links(database).scanned(link_id, None)
        part.run.brake.adopt()
        LinkFacts(database, link_id).put(LinkFact.FIRST_UNFINISHED, None)


def _retry_changes(part: _Part) -> list[Change]:
    """Changes that retry the files which could not be read."""
    errors = part.run.tally.errors
    return [Change(one.file, ChangeType.UPDATE) for one in errors if one.is_passing]
