"""Builds a second index of all vaults beside the live one and swaps it in when complete.

Search keeps working meanwhile. So any run that finds an index of another program version rebuilds
it; the next run, whatever its mode, resumes an interrupted rebuild.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from obsidian_rag.index.fingerprint import is_outdated
from obsidian_rag.index.parts import Parts
from obsidian_rag.index.plan import changes, compare, spread, trusted_mtime
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
from obsidian_rag.index.run import IndexRun, RunParts, finish_promotion
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
class _VaultRebuild:
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
        parts: RunParts,
        vaults: Sequence[Vault],
        listener: Listener,
        stop: Stop,
        *,
        accepts_removals: bool = False,
    ) -> None:
        self._parts = parts
        self._vaults = vaults
        self._listener = listener
        self._stop = stop
        self._accepts_removals = accepts_removals
        self._state = IndexState(parts.database)
        self._built = IndexState(parts.database, REBUILD)
        self._successor = parts.chunks.successor()
        self._tally = Tally()

    def run(self, mode: Mode) -> IndexResult:
        """Build the index and swap it in.

        Raises:
            VaultAway: a vault, or too much of it, is missing; the live index is unchanged.
            IndexIncomplete: the index belongs to another vault; it is unchanged.
            ObsidianRagError: the embedder or the store failed; the next run continues.
        """
        finish_promotion(self._parts.database, self._parts.chunks)
        made = self._parts.database.get(IndexFact.FINGERPRINT)
        is_outdated_now = is_outdated(made, self._parts.fingerprint)
        try:
            self._build()
        except Cancelled:
            self._tally.is_cancelled = True
        repair = _REBUILT_MESSAGE if is_outdated_now and not self._tally.is_cancelled else ""
        return IndexResult(mode, *self._state.totals(), self._tally, repair=repair)

    def _build(self) -> None:
        wanted = self._parts.fingerprint
        vaults = [self._scan_vault(vault) for vault in self._vaults]
        is_resumed = self._prepare_table(wanted)
        if (relations_update := vaults[0].run.relations_update) is not None:
            relations_update.begin(wanted, is_rebuild=True)
        for one in vaults:
            target = Target(self._parts.database, self._successor, one.vault.link_id)
            one.run.process(target, self._list_work(one, is_resumed=is_resumed))
            self._tally.add(one.run.tally)
            if self._tally.is_cancelled:
                return
        self._listener(Progress(Phase.OPTIMISING, 0, 0))
        self._successor.maintain(window_s=0)
        self._adopt(vaults, wanted)
        for one in vaults:
            skipped = one.run.tally.skipped
            one.run.note_skips(one.found)
            self._tally.skipped += one.run.tally.skipped - skipped
            one.run.finish()

    def _scan_vault(self, vault: Vault) -> _VaultRebuild:
        begun = time.time_ns()
        parts = replace(self._parts, vault=vault)
        run = IndexRun(parts, self._listener, self._stop, accepts_removals=self._accepts_removals)
        found = run.scan()
        known = Manifest(self._parts.database).known(vault.link_id)
        difference = compare(found.files, known, found.unreadable_folders)
        run.brake.allow(found, known, changes(difference, known, lambda _: None))
        return _VaultRebuild(vault, run, found, begun)

    def _prepare_table(self, wanted: str) -> bool:
        """Prepare the new table; returns whether it resumes an interrupted build."""
        database, successor = self._parts.database, self._successor
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
        self._parts.embedder.probe()
        successor.create(self._parts.embedder.dimensions)
        return False

    def _list_work(self, one: _VaultRebuild, *, is_resumed: bool) -> Sequence[Change]:
        link_id = one.vault.link_id
        done = self._built.hashes(link_id)
        # An interrupted build may have stored rows that it did not record.
        half_done = self._successor.paths(link_id) - done.keys() if is_resumed else set()
        seen = {entry.rel_path for entry in one.found.files}
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

    def _adopt(self, vaults: list[_VaultRebuild], wanted: str) -> None:
        """Switch to the new index: SQLite first, in one transaction, then the files."""
        database = self._parts.database
        with database.transaction():
            doubt_relations(database)
            for one in vaults:
                self._record_files(one)
            self._state.adopt(self._built)
            Properties(database).forget_others()
            database.put(IndexFact.FINGERPRINT, wanted)
            database.put(IndexFact.REBUILDING, None)
            database.put(IndexFact.COMMITS, "0")
            database.put(IndexFact.MAINTAINED, str(time.time()))
            database.add_to(IndexFact.VERSION, 1)
            database.put(IndexFact.PROMOTING, "1")
        finish_promotion(database, self._parts.chunks)

    def _record_files(self, one: _VaultRebuild) -> None:
        """Record a vault's files, and queue those that could not be read."""
        database, link_id = self._parts.database, one.vault.link_id
        manifest, queue = Manifest(database), Queue(database)
        hashes = self._built.hashes(link_id)
        files = [
            entry._replace(mtime_ns=trusted_mtime(entry.mtime_ns, one.begun_ns))
            for entry in one.found.files
        ]
        manifest.clear(link_id)
        manifest.record(link_id, files)
        manifest.confirm(link_id, ((*entry, hashes.get(entry.rel_path)) for entry in files))
        queue.clear(link_id)
        queue.add(link_id, _retry_changes(one))
        one.run.note_newest(one.found.files, is_whole=True)
        Links(database).scanned(link_id, None)
        one.run.brake.adopt()
        LinkFacts(database, link_id).put(LinkFact.FIRST_UNFINISHED, None)


def _retry_changes(one: _VaultRebuild) -> list[Change]:
    """Changes that retry the files which could not be read."""
    errors = one.run.tally.errors
    return [Change(one.file, ChangeType.UPDATE) for one in errors if one.is_passing]
