"""One index run over one vault, from scan to swept store: full, or sync.

Both write into the index in use; `full` also trusts no timestamp and hashes every file. What builds
a second index beside it and swaps it in is `rebuild`.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from obsidian_rag.embed import Embedder
from obsidian_rag.errors import NoteChanged, NotFound, SecurityViolation
from obsidian_rag.index.consumer import NoteConsumer
from obsidian_rag.index.fingerprint import check, fingerprint
from obsidian_rag.index.handover import Handover
from obsidian_rag.index.pipeline import Guarded, Pipeline
from obsidian_rag.index.place import IndexPlace
from obsidian_rag.index.plan import changes, compare, spread
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
from obsidian_rag.index.reader import Source
from obsidian_rag.index.target import LiveTarget, Target
from obsidian_rag.index.vault_check import FIRST_UNFINISHED, VaultCheck
from obsidian_rag.notes import ChunkLimits
from obsidian_rag.store import (
    NEXT_TABLE,
    READER_WINDOW_S,
    Change,
    ChangeType,
    ChunkStore,
    Database,
    EmbeddingStatus,
    FileState,
    IndexState,
    KnownFile,
    LinkFacts,
    Links,
    Manifest,
    Queue,
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

FINGERPRINT = "fingerprint"
INDEX_VERSION = "index_version"
REBUILDING = "rebuilding"
# When the newest note of a vault was modified, in nanoseconds.
NEWEST_NOTE = "newest_note_ns"
PROMOTING = "promoting"
COMMITS = "commits_since_maintenance"
MAINTAINED = "maintained_at"
_COMMITS_TOLERATED = 64
_BULK_CHUNKS = 4096
_SWEEP_AFTER_S = 86_400.0
_TOLD_EVERY_S = 2.0
# Files taken from the queue at a time: a run that is told to end, and one that goes on, are soon
# where they want to be.
_PAGE = 8192


@dataclass(frozen=True, slots=True)
class Workplace:
    """All an index run works with."""

    database: Database
    chunks: ChunkStore
    embedder: Embedder
    vault: Vault
    limits: ChunkLimits
    guarded: Guarded
    consumer: NoteConsumer | None = None

    @classmethod
    def of(cls, place: IndexPlace, vault: Vault, consumer: NoteConsumer | None) -> Self:
        """One vault of an installation."""
        settings = place.config.settings
        guarded = Guarded(settings.memory.patterns, settings.security.sensitive_sections)
        return cls(
            place.database, place.chunks, place.embedder, vault, place.limits, guarded, consumer
        )


@dataclass(frozen=True, slots=True)
class _Look:
    """What was found, what was known of it, and the work that follows."""

    found: Scan
    known: dict[str, KnownFile]
    work: Sequence[Change]
    unchanged: int
    is_whole: bool


class IndexRun:
    """One run over one vault, which has a link id."""

    def __init__(
        self, place: Workplace, listener: Listener, stop: Stop, *, accepts_removals: bool = False
    ) -> None:
        """`accepts_removals`: the user says that notes which are missing are gone."""
        self._place = place
        self._vault = place.vault
        self._link_id = place.vault.link_id
        self._listener = listener
        self._stop = stop
        self.tally = Tally()
        self._told_at = 0.0
        self._state = IndexState(place.database)
        self._manifest = Manifest(place.database)
        self._queue = Queue(place.database)
        self._links = Links(place.database)
        self._facts = LinkFacts(place.database, self._link_id)
        self.check = VaultCheck(place.database, place.vault, accepts_removals=accepts_removals)
        self.handover = Handover(place.database, place.consumer, self._link_id)
        self._source = Source.of(place.vault, place.limits, place.consumer)

    def run(self, mode: Mode, paths: Sequence[str] | None = None) -> IndexResult:
        """Make the index agree with the vault; with `paths`, only with these files of it.

        Raises:
            EmbeddingMismatch: the index was made with other settings and `mode` is not reindex.
            NotFound: the vault's folder is not there, and nothing was ever indexed.
            VaultAway: too much of the vault is missing; the index is as it was.
            IndexIncomplete: the index was made of another vault; it is as it was.
            ObsidianRagError: the embedder or the store failed; what was done is kept.
        """
        wanted = fingerprint(self._place.embedder, self._place.limits)
        try:
            self._update(wanted, paths, mode)
        except Cancelled:
            self.tally.is_cancelled = True
        return IndexResult(mode, *self._state.totals(), self.tally)

    def go_on(self) -> IndexResult:
        """Do what a run that gave way has left, without another look at the vault."""
        self.handover.begin(self._place.database.get(FINGERPRINT) or "", is_whole=False)
        try:
            self._do_owed()
            self._sweep(is_first=False, is_thorough=False)
            self._end()
        except Cancelled:
            self.tally.is_cancelled = True
        return IndexResult(Mode.SYNC, *self._state.totals(), self.tally)

    def catch_up(self) -> None:
        """Give the consumer what it lacks, and look at nothing else."""
        self.handover.begin(self._place.database.get(FINGERPRINT) or "")
        self.handover.owe()
        self._do_owed(is_for_chunks=False)
        self.finish()

    def _update(self, wanted: str, paths: Sequence[str] | None, mode: Mode) -> None:
        database = self._place.database
        is_thorough = mode is Mode.FULL
        is_first, is_empty = self._state.is_empty(self._link_id), self._state.is_empty()
        is_foreign = database.get(FINGERPRINT) != wanted
        is_afresh = not self._place.chunks.exists() or (is_empty and is_foreign)
        is_unfinished = is_afresh or self._facts.get(FIRST_UNFINISHED) is not None
        if is_first or is_unfinished or self.check.wants_whole_look:
            paths = None
        if not is_afresh:
            check(database.get(FINGERPRINT), wanted)
        look = self._look(paths)
        if is_afresh:
            self._start_afresh(wanted)
            look = self._compared(look.found, {}, is_whole=True)
        self.tally.unchanged = look.unchanged
        work = _newest_first(look) if is_unfinished else look.work
        if is_thorough:
            work = [*work, *self._altered(look)]
        look = replace(look, work=spread(work))
        self.handover.begin(
            wanted, is_rebuild=mode is Mode.REINDEX, is_whole=look.is_whole, is_doubted=is_thorough
        )
        self._owe(look)
        self._do_owed(with_failed=look.is_whole)
        self.note_skips(look.found, is_whole=look.is_whole)
        self._sweep(is_first=is_empty, is_thorough=is_thorough)
        self._end()

    def _end(self) -> None:
        """The first index of a vault is complete when a run has come to its end."""
        if not self.tally.is_cancelled and self._facts.get(FIRST_UNFINISHED) is not None:
            self._facts.put(FIRST_UNFINISHED, None)
        self.finish()

    def _do_owed(self, *, is_for_chunks: bool = True, with_failed: bool = True) -> None:
        target = LiveTarget(self._place.database, self._place.chunks, self._link_id)
        counted = self._queue.size(self._link_id) if is_for_chunks else 0
        done, total = 0, max(counted, self.handover.size())
        for tasks in self._owed(is_for_chunks=is_for_chunks, with_failed=with_failed):
            self.process(target, tasks, done, max(total, done + len(tasks)))
            done += len(tasks)
            if self.tally.is_cancelled:
                return

    def _owed(self, *, is_for_chunks: bool, with_failed: bool) -> Iterator[list[Task]]:
        """What waits, a page at a time; then what is owed to the consumer alone."""
        if is_for_chunks:
            for page in self._queue.pages(self._link_id, _PAGE, with_failed=with_failed):
                paths = [change.rel_path for change in page]
                yield joined(page, self.handover.owed_at(paths))
        for page in self.handover.pages(_PAGE, is_alone=is_for_chunks):
            yield joined((), page)

    def finish(self) -> None:
        """Let the consumer come to an end, too."""
        if not self.tally.is_cancelled:
            self.handover.finish(
                self._place.chunks, lambda: self._do_owed(is_for_chunks=False), self._stop
            )
        if self._place.consumer is not None and self.tally.touched:
            self._listener(Progress(Phase.RELATING, self.tally.touched, self.tally.touched))

    def _start_afresh(self, wanted: str) -> None:
        """Begin a chunk table: whatever was indexed of any vault is not any more."""
        self._place.embedder.probe()
        dimensions = self._place.embedder.dimensions
        database = self._place.database
        with database.transaction():
            self._state.clear()
            self.handover.clear()
            for link in self._links.all():
                self._queue.clear(link.link_id)
                self._manifest.clear(link.link_id)
                LinkFacts(database, link.link_id).put(FIRST_UNFINISHED, "1")
            database.put(REBUILDING, None)
            database.put(MAINTAINED, None)
            database.put(FINGERPRINT, wanted)
        self._place.chunks.create(dimensions)

    def _look(self, paths: Sequence[str] | None) -> _Look:
        """What is on disk against what we remember of it, for the vault or for some paths."""
        link_id = self._link_id
        if paths is not None:
            known = self._manifest.known_at(link_id, paths)
            found = self._there(
                lambda: scan_paths(self._vault.root, self._vault.rules, {*paths, *known})
            )
            look = self._compared(found, known, is_whole=False) if found.is_complete else None
            if look is not None and not self.check.is_doubtful(look.work):
                return look
        look = self._compared(self.scan(), self._manifest.known(link_id), is_whole=True)
        self.check.allow(look.found, look.known, look.work)
        return look

    def _compared(self, found: Scan, known: dict[str, KnownFile], *, is_whole: bool) -> _Look:
        difference = compare(found.files, known, found.unreadable_folders)
        work = changes(difference, known, self._hash_of)
        return _Look(found, known, work, difference.unchanged, is_whole)

    def _there(self, walk: Callable[[], Scan]) -> Scan:
        try:
            return walk()
        except NotFound as error:
            self._links.scanned(self._link_id, str(error))
            raise self.check.explained(error) from error

    def scan(self) -> Scan:
        """Walk the vault.

        Raises:
            Cancelled: the caller asked the run to stop.
            NotFound, VaultAway: the vault's folder is not there.
        """

        def count(files: int) -> None:
            self._listener(Progress(Phase.SCANNING, files, 0))

        found = self._there(lambda: scan(self._vault.root, self._vault.rules, count, self._stop))
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

    def _altered(self, look: _Look) -> list[Change]:
        """Files whose content differs from the index although their metadata does not."""
        hashes = self._state.hashes(self._link_id)
        planned = {change.rel_path for change in look.work}
        doubted = [entry.rel_path for entry in look.found.files if entry.rel_path not in planned]
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

    def _owe(self, look: _Look) -> None:
        """Write down, in one transaction, what was seen and what must be done about it."""
        link_id, work = self._link_id, look.work
        entries = {entry.rel_path: entry for entry in look.found.files} if work else {}
        with self._place.database.transaction():
            self._links.scanned(link_id, None)
            if look.is_whole:
                self.check.adopt()
            self.note_newest(look.found.files, is_whole=look.is_whole)
            present = [entries[c.rel_path] for c in work if c.rel_path in entries]
            self._manifest.record(link_id, present)
            self._manifest.forget(
                link_id,
                (c.old_path or c.rel_path for c in work if c.rel_path not in entries or c.old_path),
            )
            self._queue.split_renames(link_id)
            self._queue.add(link_id, work)
            self.handover.owe(work)

    def note_newest(self, files: Iterable[FileEntry], *, is_whole: bool) -> None:
        """Keep the time of the newest note, so that an answer has it without asking all notes."""
        before = self._facts.get(NEWEST_NOTE)
        newest = max((entry.mtime_ns for entry in files), default=0)
        if not is_whole:
            newest = max(newest, int(before or 0))
        if str(newest) != before:
            self._facts.put(NEWEST_NOTE, str(newest))

    def note_skips(self, found: Scan, *, is_whole: bool = True) -> None:
        """Remember which files the walk left out, and why; write only if that changed."""
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
        with self._place.database.transaction():
            self._state.remove(link_id, recorded.keys() - skipped.keys())
            self._state.put(
                link_id,
                (
                    FileState(path, EmbeddingStatus.SKIPPED, reason=reason)
                    for path, reason in skipped.items()
                ),
            )

    def process(
        self, target: Target, tasks: Sequence[Task], done: int = 0, total: int | None = None
    ) -> None:
        """Do these tasks, into this index; `done` of `total` were done before them."""
        if any(task.for_chunks is not None and not task.is_gone for task in tasks):
            self._place.embedder.probe()
        consumer = self._place.consumer
        if consumer is not None:
            wanted = (task for task in tasks if task.for_consumer is not None)
            consumer.before_reading(self._vault, (task.path for task in wanted if not task.is_gone))
        pipeline = Pipeline(
            self._source,
            target,
            self._place.embedder,
            self._place.guarded,
            self.tally,
            self.check.keep_watch,
            consumer,
            lambda: self._tell_readers(target, pipeline),
        )
        try:
            pipeline.run(tasks, self._counting_from(done, total or len(tasks)), self._stop)
        finally:
            self._told_at = 0.0
            self._tell_readers(target, pipeline)

    def _counting_from(self, done: int, total: int) -> Listener:
        return lambda told: self._listener(Progress(told.phase, done + told.current, total))

    def _tell_readers(self, target: Target, pipeline: Pipeline) -> None:
        """Let other processes see what is stored so far, now and then and at the end."""
        commits, now = pipeline.commits, time.monotonic()
        if isinstance(target, LiveTarget) and commits and now - self._told_at >= _TOLD_EVERY_S:
            self._told_at, pipeline.commits = now, 0
            with self._place.database.transaction():
                self._place.database.add_to(COMMITS, commits)
                self._place.database.add_to(INDEX_VERSION, 1)

    def _sweep(self, *, is_first: bool, is_thorough: bool) -> None:
        """Compact the store when it is worth it; a year of small edits must not bloat it."""
        database, commits = self._place.database, int(_number(self._place.database.get(COMMITS)))
        maintained = database.get(MAINTAINED)
        age = time.time() - _number(maintained)
        stored = self.tally.embedded_chunks + self.tally.reused_chunks
        is_bulk = is_first or is_thorough or stored >= _BULK_CHUNKS
        is_due = commits and (is_bulk or commits >= _COMMITS_TOLERATED or age > _SWEEP_AFTER_S)
        # Never done means that a first run died just before: there is no word index yet. One that
        # is to end leaves the rest to the next.
        is_never = maintained is None and not self._state.is_empty()
        if is_never or (is_due and not self.tally.is_cancelled):
            self._listener(Progress(Phase.OPTIMISING, 0, 0))
            window_s = 0 if is_first else READER_WINDOW_S
            compact(database, self._place.chunks, window_s=window_s)


def _newest_first(look: _Look) -> list[Change]:
    """What was written last is asked for first, so it is searchable first."""
    written = {entry.rel_path: entry.mtime_ns for entry in look.found.files}
    return sorted(look.work, key=lambda change: -written.get(change.rel_path, 0))


def _number(text: str | None) -> float:
    """A number that was remembered; what is not one is as good as none."""
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


def catch_up(place: IndexPlace) -> None:
    """Give the consumer what it lacks of the notes that are indexed; of none, if none are."""
    with place.relations_consumer() as consumer:
        for vault in place.vaults:
            if vault.link_id and place.database.get(FINGERPRINT) is not None:
                workplace = Workplace.of(place, vault, consumer)
                IndexRun(workplace, lambda _: None, lambda: False).catch_up()


def compact(database: Database, chunks: ChunkStore, *, window_s: float = READER_WINDOW_S) -> None:
    """Compact the store, and have its search indexes count all rows and no others."""
    chunks.maintain(window_s=window_s)
    with database.transaction():
        database.put(COMMITS, "0")
        database.put(MAINTAINED, str(time.time()))


def finish_promotion(database: Database, chunks: ChunkStore) -> None:
    """Swap in a finished rebuild whose books are switched already; harmless when there is none."""
    if database.get(PROMOTING) is not None:
        chunks.promote(ChunkStore(chunks.uri, NEXT_TABLE))
        database.put(PROMOTING, None)
