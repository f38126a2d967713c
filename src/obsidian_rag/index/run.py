"""One index run over one vault, from the scan to compaction: full or sync.

Both write into the live index; `full` ignores timestamps and hashes every file. `rebuild` builds a
second index beside it and swaps it in.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from obsidian_rag.embed import Embedder
from obsidian_rag.errors import NoteChanged, NotFound, SecurityViolation
from obsidian_rag.health import Brake
from obsidian_rag.index.fingerprint import check_fingerprint, fingerprint
from obsidian_rag.index.limits import Guarded
from obsidian_rag.index.parts import Parts
from obsidian_rag.index.pipeline import Pipeline
from obsidian_rag.index.plan import changes, compare, spread
from obsidian_rag.index.prepare import Gone, Group
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
from obsidian_rag.index.reader import VaultSource
from obsidian_rag.index.relate import RelationsUpdate, doubt_relations
from obsidian_rag.index.target import LiveTarget, Target
from obsidian_rag.notes import ChunkLimits
from obsidian_rag.relations import RelationsWriter
from obsidian_rag.store import (
    READER_WINDOW_S,
    Change,
    ChangeType,
    ChunkStore,
    Database,
    EmbeddingStatus,
    FileState,
    IndexFact,
    IndexState,
    KnownFile,
    LinkFact,
    LinkFacts,
    Links,
    Manifest,
    Queue,
    unindexed,
)
from obsidian_rag.vault import (
    FileEntry,
    NoteFile,
    Scan,
    Vault,
    VaultMode,
    content_hash,
    scan,
    scan_paths,
    sweep,
)

_COMPACT_AFTER_COMMITS = 64
_BULK_RUN_CHUNKS = 4096
# Searches scan unindexed rows one by one: allow this many, or one in 32 of all rows.
_MAX_UNINDEXED_ROWS = 4096
_MOST_UNINDEXED_SHARE = 32
# Chunks between two checks of that number.
_REFRESH_CHECK_CHUNKS = 1024
_COMPACT_AFTER_S = 86_400.0
_PUBLISH_INTERVAL_S = 2.0
# Small enough that a run starts and stops quickly.
_QUEUE_PAGE_FILES = 8192


@dataclass(frozen=True, slots=True)
class RunParts:
    """Everything an index run works with."""

    database: Database
    chunks: ChunkStore
    embedder: Embedder
    vault: Vault
    limits: ChunkLimits
    guarded: Guarded
    relations: RelationsWriter | None = None

    @classmethod
    def of(cls, parts: Parts, vault: Vault, relations: RelationsWriter | None) -> Self:
        """One vault of an installation."""
        return cls(
            database=parts.database,
            chunks=parts.chunks,
            embedder=parts.embedder,
            vault=vault,
            limits=parts.limits,
            guarded=parts.guarded,
            relations=relations,
        )

    @property
    def fingerprint(self) -> str:
        """The fingerprint of an index that this run would build."""
        return fingerprint(self.embedder, self.limits, self.guarded)


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """Files on disk, what the manifest knew of them, and the resulting work."""

    found: Scan
    known: dict[str, KnownFile]
    work: Sequence[Change]
    unchanged: int
    is_whole: bool


class IndexRun:
    """One run over one vault, which has a link id."""

    def __init__(
        self, parts: RunParts, listener: Listener, stop: Stop, *, accepts_removals: bool = False
    ) -> None:
        """`accepts_removals`: the user confirmed that missing notes were deleted."""
        self._parts = parts
        self._vault = parts.vault
        self._link_id = parts.vault.link_id
        self._listener = listener
        self._stop = stop
        self.tally = Tally()
        self._published_at_s = 0.0
        self._next_refresh_check = 0
        self._state = IndexState(parts.database)
        self._manifest = Manifest(parts.database)
        self._queue = Queue(parts.database)
        self._links = Links(parts.database)
        self._facts = LinkFacts(parts.database, self._link_id)
        self.brake = Brake(parts.database, parts.vault, accepts_removals=accepts_removals)
        self._is_first_unfinished = LinkFact.FIRST_UNFINISHED in self.brake.known_facts
        self.relations_update = (
            RelationsUpdate(parts.database, parts.vault, parts.limits, parts.relations)
            if parts.relations is not None
            else None
        )
        self._source = VaultSource.of(parts.vault, parts.limits, parts.relations)

    def run(self, mode: Mode, paths: Sequence[str] | None = None) -> IndexResult:
        """Bring the index up to date with the vault, or only with these `paths`.

        Raises:
            EmbeddingMismatch: the index has other settings and `mode` is not reindex.
            NotFound: the vault's folder is missing, and nothing was ever indexed.
            VaultAway: too much of the vault is missing; the index is unchanged.
            IndexIncomplete: the index belongs to another vault; it is unchanged.
            ObsidianRagError: the embedder or the store failed; finished work is kept.
        """
        try:
            self._update(self._parts.fingerprint, paths, mode)
        except Cancelled:
            self.tally.is_cancelled = True
        return IndexResult(mode, *self._state.totals(), self.tally)

    def go_on(self) -> IndexResult:
        """Finish the queue of a preempted run, without scanning the vault again."""
        if self.relations_update is not None:
            made = self._parts.database.get(IndexFact.FINGERPRINT) or ""
            self.relations_update.begin(made, is_whole=False)
        try:
            self._process_queue()
            self._compact_if_due(is_first=False, is_thorough=False)
            self._complete()
        except Cancelled:
            self.tally.is_cancelled = True
        return IndexResult(Mode.SYNC, *self._state.totals(), self.tally)

    def _update(self, wanted: str, paths: Sequence[str] | None, mode: Mode) -> None:
        database = self._parts.database
        is_thorough = mode is Mode.FULL
        is_first = self._state.is_empty(self._link_id)
        is_empty = is_first and self._state.is_empty()
        made = database.get(IndexFact.FINGERPRINT)
        is_afresh = not self._parts.chunks.exists() or (is_empty and made != wanted)
        is_unfinished = is_afresh or self._is_first_unfinished
        if is_first or is_unfinished or self.brake.needs_full_scan:
            paths = None
        if not is_afresh:
            check_fingerprint(made, wanted)
        snapshot = self._take_snapshot(paths)
        if is_afresh:
            self._start_over(wanted)
            self._is_first_unfinished = True
            snapshot = self._compare(snapshot.found, {}, is_whole=True)
        self.tally.unchanged = snapshot.unchanged
        work = _newest_first(snapshot) if is_unfinished else snapshot.work
        if is_thorough:
            work = [*work, *self._find_altered(snapshot)]
        snapshot = replace(snapshot, work=spread(work))
        if self.relations_update is not None:
            is_rebuild = mode is Mode.REINDEX
            self.relations_update.begin(
                wanted, is_rebuild=is_rebuild, is_whole=snapshot.is_whole, is_doubted=is_thorough
            )
        self._enqueue(snapshot)
        self._process_queue(with_failed=snapshot.is_whole)
        self.note_skips(snapshot.found, is_whole=snapshot.is_whole)
        self._compact_if_due(is_first=is_empty, is_thorough=is_thorough)
        self._complete()

    def _complete(self) -> None:
        """Mark the vault's first index as complete if the run was not cancelled."""
        if not self.tally.is_cancelled and self._is_first_unfinished:
            self._facts.put(LinkFact.FIRST_UNFINISHED, None)
        self.finish()

    def _process_queue(self, *, with_failed: bool = True) -> None:
        target = LiveTarget(self._parts.database, self._parts.chunks, self._link_id)
        done = total = 0
        for page in self._queue.pages(self._link_id, _QUEUE_PAGE_FILES, with_failed=with_failed):
            if done == 0:
                total = (
                    len(page) if len(page) < _QUEUE_PAGE_FILES else self._queue.size(self._link_id)
                )
            self.process(target, page, done, max(total, done + len(page)))
            done += len(page)
            if self.tally.is_cancelled:
                return

    def finish(self) -> None:
        """Bring the related notes up to date with the index."""
        if self.relations_update is None:
            return
        if not self.tally.is_cancelled:
            self.relations_update.finish(self._parts.chunks, self._listener, self._stop)
        if self.tally.touched:
            self._listener(Progress(Phase.RELATING, self.tally.touched, self.tally.touched))

    def _start_over(self, wanted: str) -> None:
        """Create an empty chunk table; nothing of any vault is indexed any more."""
        self._parts.embedder.probe()
        dimensions = self._parts.embedder.dimensions
        database = self._parts.database
        with database.transaction():
            self._state.clear()
            doubt_relations(database)
            for link in self._links.all():
                self._queue.clear(link.link_id)
                self._manifest.clear(link.link_id)
                LinkFacts(database, link.link_id).put(LinkFact.FIRST_UNFINISHED, "1")
            database.put(IndexFact.REBUILDING, None)
            database.put(IndexFact.MAINTAINED, None)
            database.put(IndexFact.FINGERPRINT, wanted)
        self._parts.chunks.create(dimensions)

    def _take_snapshot(self, paths: Sequence[str] | None) -> _Snapshot:
        """Compare the files on disk with the manifest, for the vault or for some paths."""
        link_id = self._link_id
        if paths is not None:
            known = self._manifest.known_at(link_id, paths)
            found = self._walk(
                lambda: scan_paths(self._vault.root, self._vault.rules, {*paths, *known})
            )
            snapshot = self._compare(found, known, is_whole=False) if found.is_complete else None
            if snapshot is not None and not self.brake.is_doubtful(snapshot.work):
                return snapshot
        snapshot = self._compare(self.scan(), self._manifest.known(link_id), is_whole=True)
        self.brake.allow(snapshot.found, snapshot.known, snapshot.work)
        return snapshot

    def _compare(self, found: Scan, known: dict[str, KnownFile], *, is_whole: bool) -> _Snapshot:
        difference = compare(found.files, known, found.unreadable_folders)
        work = changes(difference, known, self._hash_of)
        return _Snapshot(found, known, work, difference.unchanged, is_whole)

    def _walk(self, walk: Callable[[], Scan]) -> Scan:
        try:
            return walk()
        except NotFound as error:
            self._links.scanned(self._link_id, str(error))
            raise self.brake.explain(error) from error

    def scan(self) -> Scan:
        """Walk the vault.

        Raises:
            Cancelled: the caller asked the run to stop.
            NotFound, VaultAway: the vault's folder is missing.
        """

        def count(files: int) -> None:
            self._listener(Progress(Phase.SCANNING, files, 0))

        found = self._walk(lambda: scan(self._vault.root, self._vault.rules, count, self._stop))
        if not found.is_complete:
            raise Cancelled
        if self._vault.mode is VaultMode.READ_WRITE:
            sweep(self._vault.root, found.leftovers)
        self._listener(Progress(Phase.SCANNING, len(found.files), len(found.files)))
        return found

    def _hash_of(self, path: str) -> str | None:
        try:
            file = self._vault.read(path)
        except (NoteChanged, SecurityViolation):
            return None
        return content_hash(file.data) if isinstance(file, NoteFile) else None

    def _find_altered(self, snapshot: _Snapshot) -> list[Change]:
        """Files whose content differs from the index although their metadata does not."""
        hashes = self._state.hashes(self._link_id)
        planned = {change.rel_path for change in snapshot.work}
        doubted = [
            entry.rel_path for entry in snapshot.found.files if entry.rel_path not in planned
        ]
        altered = []
        for number, path in enumerate(doubted, start=1):
            if self._stop():
                raise Cancelled
            indexed = hashes.get(path)
            if indexed is None or indexed != self._hash_of(path):
                altered.append(Change(path, ChangeType.UPDATE))
            if number % 64 == 0 or number == len(doubted):
                self._listener(Progress(Phase.HASHING, number, len(doubted)))
        self.tally.unchanged -= len(altered)
        return altered

    def _enqueue(self, snapshot: _Snapshot) -> None:
        """Record in one transaction the files seen and the work to do."""
        link_id, work = self._link_id, snapshot.work
        entries = {entry.rel_path: entry for entry in snapshot.found.files} if work else {}
        with self._parts.database.transaction():
            self._links.scanned(link_id, None)
            if snapshot.is_whole:
                self.brake.adopt()
            self.note_newest(snapshot.found.files, is_whole=snapshot.is_whole)
            present = [entries[c.rel_path] for c in work if c.rel_path in entries]
            self._manifest.record(link_id, present)
            self._manifest.forget(
                link_id,
                (c.old_path or c.rel_path for c in work if c.rel_path not in entries or c.old_path),
            )
            self._queue.split_renames(link_id)
            self._queue.add(link_id, work)

    def note_newest(self, files: Iterable[FileEntry], *, is_whole: bool) -> None:
        """Store the time of the newest note, so that no answer has to query all notes for it."""
        before = self.brake.known_facts.get(LinkFact.NEWEST_NOTE)
        newest = max((entry.mtime_ns for entry in files), default=0)
        if not is_whole:
            newest = max(newest, int(before or 0))
        if str(newest) != before:
            self._facts.put(LinkFact.NEWEST_NOTE, str(newest))

    def note_skips(self, found: Scan, *, is_whole: bool = True) -> None:
        """Record which files the walk skipped, and why; write only if that changed."""
        link_id = self._link_id
        skipped = {item.rel_path: item.reason for item in found.skipped}
        self.tally.skipped += len(skipped)
        recorded = {
            state.rel_path: state.reason
            for state in self._state.troubled(link_id)
            if state.status is EmbeddingStatus.SKIPPED and state.index_hash is None
            if is_whole or state.rel_path in skipped
        }
        if recorded == skipped:
            return
        with self._parts.database.transaction():
            self._state.remove(link_id, recorded.keys() - skipped.keys())
            self._state.put(
                link_id,
                (
                    FileState(path, EmbeddingStatus.SKIPPED, reason=reason)
                    for path, reason in skipped.items()
                ),
            )

    def process(
        self, target: Target, work: Sequence[Change], done: int = 0, total: int | None = None
    ) -> None:
        """Process these changes into this index; `done` of `total` were processed before."""
        # A short run leaves the search indexes to upkeep.
        self._next_refresh_check = self._stored_chunks + (
            _REFRESH_CHECK_CHUNKS if len(work) < _REFRESH_CHECK_CHUNKS else 0
        )
        present = [one.rel_path for one in work if one.change_type is not ChangeType.DELETE]
        if present:
            self._parts.embedder.probe()
        if self._parts.relations is not None:
            self._parts.relations.before_reading(self._vault, present)
        pipeline = Pipeline(
            self._source,
            target,
            self._parts.embedder,
            self._parts.guarded,
            self.tally,
            self._check_missing,
            self._parts.relations,
            lambda: self._announce(target, pipeline),
            lambda: self._refresh_if_due(target),
        )
        try:
            pipeline.run(work, self._report_from(done, total or len(work)), self._stop)
        finally:
            self._published_at_s = 0.0
            self._publish(target, pipeline)

    def _check_missing(self, group: Group) -> None:
        self.brake.check_missing(one.change for one in group.settled if isinstance(one, Gone))

    def _report_from(self, done: int, total: int) -> Listener:
        return lambda at: self._listener(Progress(at.phase, done + at.current, total))

    @property
    def _stored_chunks(self) -> int:
        return self.tally.embedded_chunks + self.tally.reused_chunks

    def _announce(self, target: Target, pipeline: Pipeline) -> None:
        """Called inside the transaction that clears a group's queue rows."""
        relations = self._parts.relations
        if relations is not None and relations.is_lost:
            # Nothing else records that they lack this group.
            doubt_relations(self._parts.database)
        self._publish(target, pipeline)

    def _refresh_if_due(self, target: Target) -> None:
        if isinstance(target, LiveTarget) and self._stored_chunks >= self._next_refresh_check:
            self._next_refresh_check = self._stored_chunks + _REFRESH_CHECK_CHUNKS
            if not self._stop() and is_refresh_due(*unindexed(self._parts.chunks)):
                compact(self._parts.database, self._parts.chunks)
                self._published_at_s = 0.0
                self._parts.database.add_to(IndexFact.VERSION, 1)

    def _publish(self, target: Target, pipeline: Pipeline) -> None:
        """Show other processes what is stored so far, at intervals and at the end."""
        commits, now = pipeline.commits, time.monotonic()
        if (
            isinstance(target, LiveTarget)
            and commits
            and now - self._published_at_s >= _PUBLISH_INTERVAL_S
        ):
            self._published_at_s, pipeline.commits = now, 0
            with self._parts.database.transaction():
                self._parts.database.add_to(IndexFact.COMMITS, commits)
                self._parts.database.add_to(IndexFact.VERSION, 1)

    def _compact_if_due(self, *, is_first: bool, is_thorough: bool) -> None:
        """Compact the store when it pays; a year of small edits must not bloat it."""
        database, facts = self._parts.database, self._parts.database.facts()
        commits = int(_stored_float(facts.get(IndexFact.COMMITS)))
        maintained = facts.get(IndexFact.MAINTAINED)
        age = time.time() - _stored_float(maintained)
        is_bulk = is_first or is_thorough or self._stored_chunks >= _BULK_RUN_CHUNKS
        is_due = commits and (
            is_bulk or commits >= _COMPACT_AFTER_COMMITS or age > _COMPACT_AFTER_S
        )
        # Never compacted: a first run died just before, so there is no word index yet. A
        # cancelled run leaves the rest to the next one.
        is_never = maintained is None and not self._state.is_empty()
        if is_never or (is_due and not self.tally.is_cancelled):
            self._listener(Progress(Phase.OPTIMISING, 0, 0))
            window_s = 0 if is_first else READER_WINDOW_S
            compact(database, self._parts.chunks, window_s=window_s)


def is_refresh_due(waiting: int, indexed: int) -> bool:
    """Whether a running import must refresh the search indexes to keep searches fast."""
    most = max(_MAX_UNINDEXED_ROWS, indexed // _MOST_UNINDEXED_SHARE)
    return waiting >= min(most, max(_REFRESH_CHECK_CHUNKS, indexed))


def _newest_first(snapshot: _Snapshot) -> list[Change]:
    """Changes by mtime, newest first: users search for those notes first."""
    written = {entry.rel_path: entry.mtime_ns for entry in snapshot.found.files}
    return sorted(snapshot.work, key=lambda change: -written.get(change.rel_path, 0))


def _stored_float(text: str | None) -> float:
    """The stored number, or 0 if it is missing or damaged."""
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


def compact(database: Database, chunks: ChunkStore, *, window_s: float = READER_WINDOW_S) -> None:
    """Compact the store, so that its search indexes cover exactly the present rows."""
    chunks.maintain(window_s=window_s)
    with database.transaction():
        database.put(IndexFact.COMMITS, "0")
        database.put(IndexFact.MAINTAINED, str(time.time()))


def finish_promotion(database: Database, chunks: ChunkStore) -> None:
    """Swap in the files of a rebuild that SQLite already points to, if there is one."""
    if database.get(IndexFact.PROMOTING) is not None:
        chunks.promote(chunks.successor())
        database.put(IndexFact.PROMOTING, None)
