"""One index run from scan to swept store: full, sync, or rebuild beside and swap.

`full` and `sync` write into the index in use; `full` also trusts no timestamp and hashes every
file. `reindex` builds a second index and swaps it in, so that search goes on all the while; an
interrupted rebuild is taken up by whatever run comes next.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from obsidian_rag.embed import Embedder
from obsidian_rag.errors import NoteChanged, NotFound, SecurityViolation
from obsidian_rag.index.consumer import NoteConsumer
from obsidian_rag.index.fingerprint import check, fingerprint
from obsidian_rag.index.handover import Handover
from obsidian_rag.index.pipeline import Guarded, Pipeline
from obsidian_rag.index.plan import changes, compare, settled_mtime
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
from obsidian_rag.index.target import LiveTarget, RebuildTarget
from obsidian_rag.index.vault_check import VaultCheck
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
    Links,
    Manifest,
    Properties,
    Queue,
)
from obsidian_rag.vault import (
    FileEntry,
    NoteFile,
    Rules,
    Scan,
    content_hash,
    read_note,
    scan,
    scan_paths,
    sweep,
)

FINGERPRINT = "fingerprint"
INDEX_VERSION = "index_version"
# The first index is not complete; set before anything is searchable, gone when all of it is.
FIRST_UNFINISHED = "first_index_unfinished"
REBUILDING = "rebuilding"
# When the newest note was modified, in nanoseconds.
NEWEST_NOTE = "newest_note_ns"
_PROMOTING = "promoting"
_COMMITS = "commits_since_maintenance"
MAINTAINED = "maintained_at"
_COMMITS_TOLERATED = 64
_BULK_CHUNKS = 4096
_SWEEP_AFTER_S = 86_400.0
# So many notes from all over the vault come first: what many share is known early then.
_SAMPLE = 1024


@dataclass(frozen=True, slots=True)
class Workplace:
    """All an index run works with."""

    database: Database
    chunks: ChunkStore
    embedder: Embedder
    root: Path
    rules: Rules
    limits: ChunkLimits
    guarded: Guarded
    consumer: NoteConsumer | None = None


@dataclass(frozen=True, slots=True)
class _Look:
    """What was found, what was known of it, and the work that follows."""

    found: Scan
    known: dict[str, KnownFile]
    work: list[Change]
    unchanged: int
    is_whole: bool


class IndexRun:
    """One run over the primary vault."""

    def __init__(
        self, place: Workplace, listener: Listener, stop: Stop, *, accepts_removals: bool = False
    ) -> None:
        """`accepts_removals`: the user says that notes which are missing are gone."""
        self._place = place
        self._listener = listener
        self._stop = stop
        self._tally = Tally()
        self._state = IndexState(place.database)
        self._manifest = Manifest(place.database)
        self._queue = Queue(place.database)
        self._links = Links(place.database)
        self._check = VaultCheck(
            place.database, place.root, place.rules, accepts_removals=accepts_removals
        )
        self._link = self._check.link
        consumer = place.consumer
        self._handover = Handover(place.database, consumer, self._link.link_id)
        self._source = Source(
            self._link.link_id,
            place.root,
            place.rules.max_file_bytes,
            place.limits,
            consumer.make_content if consumer is not None else None,
        )

    def run(self, mode: Mode, paths: Sequence[str] | None = None) -> IndexResult:
        """Make the index agree with the vault; with `paths`, only with these files of it.

        Raises:
            EmbeddingMismatch: the index was made differently and `mode` is not reindex.
            NotFound: the vault's folder is not there, and nothing was ever indexed.
            VaultAway: too much of the vault is missing; the index is as it was.
            IndexIncomplete: the index was made of another vault; it is as it was.
            ObsidianRagError: the embedder or the store failed; what was done is kept.
        """
        started = time.monotonic()
        finish_promotion(self._place.database, self._place.chunks)
        wanted = fingerprint(self._place.embedder, self._place.limits)
        is_rebuild = mode is Mode.REINDEX or self._place.database.get(REBUILDING) is not None
        try:
            if is_rebuild and self._place.chunks.exists():
                self._rebuild(wanted)
            else:
                self._update(wanted, paths, mode)
        except Cancelled:
            self._tally.is_cancelled = True
        files, chunks = self._state.totals()
        took = round((time.monotonic() - started) * 1000)
        return IndexResult(mode, files, chunks, took, self._tally)

    def catch_up(self) -> None:
        """Give the consumer what it lacks, and look at nothing else."""
        self._handover.begin(self._place.database.get(FINGERPRINT) or "")
        self._handover.owe()
        self._do_owed(is_for_chunks=False)
        self._finish()

    def _update(self, wanted: str, paths: Sequence[str] | None, mode: Mode) -> None:
        database = self._place.database
        is_thorough = mode is Mode.FULL
        is_first = self._state.totals()[0] == 0
        is_foreign = database.get(FINGERPRINT) != wanted
        is_afresh = not self._place.chunks.exists() or (is_first and is_foreign)
        is_unfinished = is_afresh or database.get(FIRST_UNFINISHED) is not None
        if is_first or is_unfinished or self._check.wants_whole_look:
            paths = None
        if not is_afresh:
            check(database.get(FINGERPRINT), wanted)
        look = self._look(paths)
        if is_afresh:
            self._start_afresh(wanted)
            look = self._compared(look.found, {}, is_whole=True)
        self._tally.unchanged = look.unchanged
        if is_thorough:
            look.work.extend(self._altered(look))
        self._handover.begin(
            wanted, is_rebuild=mode is Mode.REINDEX, is_whole=look.is_whole, is_doubted=is_thorough
        )
        self._owe(look)
        self._do_owed()
        self._note_skips(look.found, is_whole=look.is_whole)
        self._sweep(is_first, is_thorough=is_thorough)
        if is_unfinished and not self._tally.is_cancelled:
            database.put(FIRST_UNFINISHED, None)
        self._finish()

    def _do_owed(self, *, is_for_chunks: bool = True) -> None:
        for_chunks = self._queue.owed(self._link.link_id) if is_for_chunks else []
        tasks = joined(for_chunks, self._handover.owed())
        if tasks:
            target = LiveTarget(self._place.database, self._place.chunks, self._link.link_id)
            self._process(target, _spread(tasks))

    def _finish(self) -> None:
        """Let the consumer come to an end, too."""
        if not self._tally.is_cancelled:
            self._handover.finish(
                self._place.chunks, lambda: self._do_owed(is_for_chunks=False), self._stop
            )
        if self._place.consumer is not None and self._tally.touched:
            self._listener(Progress(Phase.RELATING, self._tally.touched, self._tally.touched))

    def _start_afresh(self, wanted: str) -> None:
        self._place.embedder.probe()
        dimensions = self._place.embedder.dimensions
        with self._place.database.transaction():
            self._state.clear()
            self._queue.clear(self._link.link_id)
            self._handover.clear()
            self._manifest.clear(self._link.link_id)
            self._place.database.put(REBUILDING, None)
            self._place.database.put(MAINTAINED, None)
            self._place.database.put(FINGERPRINT, wanted)
            self._place.database.put(FIRST_UNFINISHED, "1")
        self._place.chunks.create(dimensions)

    def _look(self, paths: Sequence[str] | None) -> "_Look":
        """What is on disk against what we remember of it, for the vault or for some paths."""
        link_id = self._link.link_id
        if paths is not None:
            known = self._manifest.known_at(link_id, paths)
            found = self._there(
                lambda: scan_paths(self._place.root, self._place.rules, {*paths, *known})
            )
            look = self._compared(found, known, is_whole=False) if found.is_complete else None
            if look is not None and not self._check.is_doubtful(look.work):
                return look
        look = self._compared(self._scan(), self._manifest.known(link_id), is_whole=True)
        self._check.allow(look.found, look.known, look.work)
        return look

    def _compared(self, found: Scan, known: dict[str, KnownFile], *, is_whole: bool) -> "_Look":
        difference = compare(found.files, known, found.unreadable_folders)
        work = changes(difference, known, self._hash_of)
        return _Look(found, known, work, difference.unchanged, is_whole)

    def _there(self, walk: Callable[[], Scan]) -> Scan:
        try:
            return walk()
        except NotFound as error:
            self._links.scanned(self._link.link_id, str(error))
            raise self._check.explained(error) from error

    def _scan(self) -> Scan:
        def count(files: int) -> None:
            self._listener(Progress(Phase.SCANNING, files, 0))

        found = self._there(lambda: scan(self._place.root, self._place.rules, count, self._stop))
        if not found.is_complete:
            raise Cancelled
        sweep(self._place.root, found.leftovers)
        self._listener(Progress(Phase.SCANNING, len(found.files), len(found.files)))
        return found

    def _hash_of(self, path: str) -> str | None:
        try:
            file = read_note(self._place.root, path, self._source.max_bytes)
        except (NoteChanged, SecurityViolation):
            return None
        return content_hash(file.data) if isinstance(file, NoteFile) else None

    def _altered(self, look: "_Look") -> list[Change]:
        """Files whose content differs from the index although their metadata does not."""
        hashes = self._state.hashes(self._link.link_id)
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
        self._tally.unchanged -= len(altered)
        return altered

    def _owe(self, look: "_Look") -> None:
        """Write down, in one transaction, what was seen and what must be done about it."""
        link_id, work = self._link.link_id, look.work
        entries = {entry.rel_path: entry for entry in look.found.files} if work else {}
        with self._place.database.transaction():
            self._links.scanned(link_id, None)
            if look.is_whole:
                self._check.adopt()
            self._note_newest(look.found.files, is_whole=look.is_whole)
            present = [entries[c.rel_path] for c in work if c.rel_path in entries]
            self._manifest.record(link_id, present)
            self._manifest.forget(
                link_id,
                (c.old_path or c.rel_path for c in work if c.rel_path not in entries or c.old_path),
            )
            self._queue.split_renames(link_id)
            self._queue.add(link_id, work)
            self._handover.owe(work)

    def _note_newest(self, files: Iterable[FileEntry], *, is_whole: bool) -> None:
        """Keep the time of the newest note, so that an answer has it without asking all notes."""
        before = self._place.database.get(NEWEST_NOTE)
        newest = max((entry.mtime_ns for entry in files), default=0)
        if not is_whole:
            newest = max(newest, int(before or 0))
        if str(newest) != before:
            self._place.database.put(NEWEST_NOTE, str(newest))

    def _note_skips(self, found: Scan, *, is_whole: bool = True) -> None:
        """Remember which files the walk left out, and why; write only if that changed."""
        link_id = self._link.link_id
        skipped = {item.rel_path: item.reason for item in found.skipped}
        self._tally.skipped += len(skipped)
        recorded = {
            state.rel_path: state.reason
            for state in self._state.troubled()
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

    def _process(self, target: LiveTarget | RebuildTarget, tasks: list[Task]) -> None:
        if any(task.for_chunks is not None and not task.is_gone for task in tasks):
            self._place.embedder.probe()
        consumer = self._place.consumer
        if consumer is not None:
            consumer.before_reading(
                task.path for task in tasks if task.for_consumer is not None and not task.is_gone
            )
        pipeline = Pipeline(
            self._source,
            target,
            self._place.embedder,
            self._place.guarded,
            self._tally,
            self._check.keep_watch,
            consumer,
        )
        try:
            pipeline.run(tasks, self._listener, self._stop)
        finally:
            if isinstance(target, LiveTarget) and pipeline.commits:
                self._place.database.add_to(_COMMITS, pipeline.commits)
                self._place.database.add_to(INDEX_VERSION, 1)

    def _sweep(self, is_first: bool, *, is_thorough: bool) -> None:
        """Compact the store when it is worth it; a year of small edits must not bloat it."""
        database, commits = self._place.database, int(_number(self._place.database.get(_COMMITS)))
        maintained = database.get(MAINTAINED)
        age = time.time() - _number(maintained)
        stored = self._tally.embedded_chunks + self._tally.reused_chunks
        is_bulk = is_first or is_thorough or stored >= _BULK_CHUNKS
        is_due = commits and (is_bulk or commits >= _COMMITS_TOLERATED or age > _SWEEP_AFTER_S)
        # Never done means that a first run died just before: there is no word index yet.
        if is_due or (maintained is None and not self._state.is_empty()):
            self._listener(Progress(Phase.OPTIMISING, 0, 0))
            window_s = 0 if is_first else READER_WINDOW_S
            compact(database, self._place.chunks, window_s=window_s)

    def _rebuild(self, wanted: str) -> None:
        begun = time.time_ns()
        found = self._scan()
        known = self._manifest.known(self._link.link_id)
        difference = compare(found.files, known, found.unreadable_folders)
        self._check.allow(found, known, changes(difference, known, lambda _: None))
        database = self._place.database
        successor = ChunkStore(self._place.chunks.uri, NEXT_TABLE)
        target = RebuildTarget(database, successor, self._link.link_id)
        is_resumed = (
            database.get(REBUILDING) == wanted
            and successor.exists()
            and successor.damage(is_deep=True) is None
        )
        if not is_resumed:
            successor.drop()
            with database.transaction():
                target.state.clear()
                database.put(REBUILDING, wanted)
            successor.create(self._place.embedder.dimensions)
        self._handover.begin(wanted, is_rebuild=True)
        done = target.state.hashes(self._link.link_id)
        # An interrupted build may have stored rows that it had no time to note down.
        half_done = successor.paths(self._link.link_id) - done.keys() if is_resumed else set()
        seen = {entry.rel_path for entry in found.files}
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
        self._process(target, _spread(joined(work, for_consumer)))
        if self._tally.is_cancelled:
            return
        self._listener(Progress(Phase.OPTIMISING, 0, 0))
        successor.maintain(window_s=0)
        settled = [
            entry._replace(mtime_ns=settled_mtime(entry.mtime_ns, begun)) for entry in found.files
        ]
        self._note_newest(found.files, is_whole=True)
        self._switch(settled, target, wanted)
        self._note_skips(found)
        self._finish()

    def _switch(self, files: list[FileEntry], target: RebuildTarget, wanted: str) -> None:
        """Adopt the new index: the books first, in one transaction, then the files."""
        database, link_id = self._place.database, self._link.link_id
        hashes = target.state.hashes(link_id)
        with database.transaction():
            self._manifest.clear(link_id)
            self._manifest.record(link_id, files)
            self._manifest.confirm(
                link_id, ((*entry, hashes.get(entry.rel_path)) for entry in files)
            )
            passing = [
                Change(failure.file, ChangeType.UPDATE)
                for failure in self._tally.errors
                if failure.is_passing
            ]
            self._queue.clear(link_id)
            self._queue.add(link_id, passing)
            self._handover.clear()
            self._state.adopt(target.state)
            self._handover.owe(passing)
            Properties(database).forget_others()
            self._links.scanned(link_id, None)
            self._check.adopt()
            database.put(FINGERPRINT, wanted)
            database.put(REBUILDING, None)
            database.put(FIRST_UNFINISHED, None)
            database.put(_COMMITS, "0")
            database.put(MAINTAINED, str(time.time()))
            database.add_to(INDEX_VERSION, 1)
            database.put(_PROMOTING, "1")
        finish_promotion(database, self._place.chunks)


def _spread(tasks: list[Task]) -> list[Task]:
    """The same tasks; of very many, the first ones come from all over the vault."""
    step = len(tasks) // _SAMPLE
    if step < 2:
        return tasks
    return [*tasks[::step], *(task for at, task in enumerate(tasks) if at % step)]


def _number(text: str | None) -> float:
    """A number that was remembered; what is not one is as good as none."""
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


def catch_up(place: Workplace) -> None:
    """Give the consumer what it lacks of the notes that are indexed; of none, if none are."""
    if Links(place.database).primary() is not None and place.database.get(FINGERPRINT) is not None:
        IndexRun(place, lambda _: None, lambda: False).catch_up()


def compact(database: Database, chunks: ChunkStore, *, window_s: float = READER_WINDOW_S) -> None:
    """Compact the store, and have its search indexes count all rows and no others."""
    chunks.maintain(window_s=window_s)
    with database.transaction():
        database.put(_COMMITS, "0")
        database.put(MAINTAINED, str(time.time()))


def finish_promotion(database: Database, chunks: ChunkStore) -> None:
    """Swap in a finished rebuild whose books are switched already; harmless when there is none."""
    if database.get(_PROMOTING) is not None:
        chunks.promote(ChunkStore(chunks.uri, NEXT_TABLE))
        database.put(_PROMOTING, None)
