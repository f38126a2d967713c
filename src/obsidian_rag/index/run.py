"""One index run from scan to swept store: full, sync, or rebuild beside and swap.

`full` and `sync` write into the index in use; `full` also trusts no timestamp and hashes every
file. `reindex` builds a second index and swaps it in, so that search goes on all the while; an
interrupted rebuild is taken up by whatever run comes next.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from obsidian_rag.embed import Embedder
from obsidian_rag.errors import IndexerFailed, NoteChanged, SecurityViolation
from obsidian_rag.index.fingerprint import check, fingerprint
from obsidian_rag.index.pipeline import Guarded, Pipeline
from obsidian_rag.index.plan import changes, compare, settled_mtime
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
from obsidian_rag.notes import ChunkLimits
from obsidian_rag.store import (
    NEXT_TABLE,
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
)

FINGERPRINT = "fingerprint"
INDEX_VERSION = "index_version"
_REBUILDING = "rebuilding"
_PROMOTING = "promoting"
_COMMITS = "commits_since_maintenance"
_MAINTAINED = "maintained_at"
_COMMITS_TOLERATED = 64
_BULK_CHUNKS = 4096
_SWEEP_AFTER_S = 86_400.0


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


class IndexRun:
    """One run over the primary vault."""

    def __init__(self, place: Workplace, listener: Listener, stop: Stop) -> None:
        self._place = place
        self._listener = listener
        self._stop = stop
        self._tally = Tally()
        self._state = IndexState(place.database)
        self._manifest = Manifest(place.database)
        self._queue = Queue(place.database)
        self._links = Links(place.database)
        self._link = self._links.set_primary(place.root)
        self._source = Source(
            self._link.link_id, place.root, place.rules.max_file_bytes, place.limits
        )

    def run(self, mode: Mode, paths: Sequence[str] | None = None) -> IndexResult:
        """Make the index agree with the vault; with `paths`, only with these files of it.

        Raises:
            EmbeddingMismatch: the index was made differently and `mode` is not reindex.
            NotFound: the vault's folder is not there.
            ObsidianRagError: the embedder or the store failed; what was done is kept.
        """
        started = time.monotonic()
        finish_promotion(self._place.database, self._place.chunks)
        wanted = fingerprint(self._place.embedder, self._place.limits)
        is_rebuild = mode is Mode.REINDEX or self._place.database.get(_REBUILDING) is not None
        try:
            if is_rebuild and self._place.chunks.exists():
                self._rebuild(wanted, is_asked_for=mode is Mode.REINDEX)
            else:
                self._update(wanted, paths, is_thorough=mode is Mode.FULL)
        except Cancelled:
            self._tally.is_cancelled = True
        files, chunks = self._state.totals()
        took = round((time.monotonic() - started) * 1000)
        return IndexResult(mode, files, chunks, took, self._tally)

    def _update(self, wanted: str, paths: Sequence[str] | None, *, is_thorough: bool) -> None:
        is_first = self._state.totals()[0] == 0
        is_foreign = self._place.database.get(FINGERPRINT) != wanted
        if not self._place.chunks.exists() or (is_first and is_foreign):
            self._start_afresh(wanted)
        check(self._place.database.get(FINGERPRINT), wanted)
        found, known = self._seen(None if is_first else paths)
        difference = compare(found.files, known, found.unreadable_folders)
        self._tally.unchanged = difference.unchanged
        work = changes(difference, known, self._hash_of)
        if is_thorough:
            work += self._altered(found, {change.rel_path for change in work})
        self._owe(found, work)
        owed = self._queue.owed(self._link.link_id)
        if owed:
            target = LiveTarget(self._place.database, self._place.chunks, self._link.link_id)
            self._process(target, owed)
        self._note_skips(found, is_whole=paths is None)
        self._sweep(is_first)

    def _start_afresh(self, wanted: str) -> None:
        self._place.embedder.probe()
        dimensions = self._place.embedder.dimensions
        with self._place.database.transaction():
            self._state.clear()
            self._queue.clear(self._link.link_id)
            self._manifest.clear(self._link.link_id)
            self._place.database.put(_REBUILDING, None)
            self._place.database.put(_MAINTAINED, None)
            self._place.database.put(FINGERPRINT, wanted)
        self._place.chunks.create(dimensions)

    def _seen(self, paths: Sequence[str] | None) -> tuple[Scan, dict[str, KnownFile]]:
        """What is on disk and what we remember of it, for the vault or for some paths."""
        link_id = self._link.link_id
        if paths is not None:
            known = self._manifest.known_at(link_id, paths)
            found = scan_paths(self._place.root, self._place.rules, {*paths, *known})
            if found.is_complete:
                return found, known
        found, known = self._scan(), self._manifest.known(link_id)
        self._refuse_empty(found, len(known))
        return found, known

    def _scan(self) -> Scan:
        def count(files: int) -> None:
            self._listener(Progress(Phase.SCANNING, files, 0))

        try:
            found = scan(self._place.root, self._place.rules, count, self._stop)
        except Exception as error:
            self._links.scanned(self._link.link_id, str(error))
            raise
        if not found.is_complete:
            raise Cancelled
        self._listener(Progress(Phase.SCANNING, len(found.files), len(found.files)))
        return found

    def _refuse_empty(self, found: Scan, known: int) -> None:
        """A mount point without its disk looks like a vault whose notes were all deleted."""
        if known and not found.files and found.folders <= 1:
            raise IndexerFailed(
                f"The vault folder {self._place.root} is empty, but {known} notes were indexed.",
                "Is its disk mounted? If the notes are really gone, run `obsidian-rag reindex`.",
            )

    def _hash_of(self, path: str) -> str | None:
        try:
            file = read_note(self._place.root, path, self._source.max_bytes)
        except (NoteChanged, SecurityViolation):
            return None
        return content_hash(file.data) if isinstance(file, NoteFile) else None

    def _altered(self, found: Scan, planned: set[str]) -> list[Change]:
        """Files whose content differs from the index although their metadata does not."""
        hashes = self._state.hashes(self._link.link_id)
        doubted = [entry.rel_path for entry in found.files if entry.rel_path not in planned]
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

    def _owe(self, found: Scan, work: list[Change]) -> None:
        """Write down, in one transaction, what was seen and what must be done about it."""
        link_id = self._link.link_id
        entries = {entry.rel_path: entry for entry in found.files} if work else {}
        with self._place.database.transaction():
            self._links.scanned(link_id, None)
            present = [entries[c.rel_path] for c in work if c.rel_path in entries]
            self._manifest.record(link_id, present)
            self._manifest.forget(
                link_id,
                (c.old_path or c.rel_path for c in work if c.rel_path not in entries or c.old_path),
            )
            self._queue.split_renames(link_id)
            self._queue.add(link_id, work)

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

    def _process(self, target: LiveTarget | RebuildTarget, work: list[Change]) -> None:
        if any(change.change_type is not ChangeType.DELETE for change in work):
            self._place.embedder.probe()
        pipeline = Pipeline(
            self._source, target, self._place.embedder, self._place.guarded, self._tally
        )
        try:
            pipeline.run(work, self._listener, self._stop)
        finally:
            if isinstance(target, LiveTarget) and pipeline.commits:
                self._place.database.add_to(_COMMITS, pipeline.commits)
                self._place.database.add_to(INDEX_VERSION, 1)

    def _sweep(self, is_first: bool) -> None:
        """Compact the store when it is worth it; a year of small edits must not bloat it."""
        database, commits = self._place.database, int(self._place.database.get(_COMMITS) or 0)
        maintained = database.get(_MAINTAINED)
        age = time.time() - float(maintained or 0)
        stored = self._tally.embedded_chunks + self._tally.reused_chunks
        is_bulk = is_first or stored >= _BULK_CHUNKS
        is_due = commits and (is_bulk or commits >= _COMMITS_TOLERATED or age > _SWEEP_AFTER_S)
        # Never done means that a first run died just before: there is no word index yet.
        if is_due or (maintained is None and not self._state.is_empty()):
            self._listener(Progress(Phase.OPTIMISING, 0, 0))
            self._place.chunks.maintain(has_readers=not is_first)
            with database.transaction():
                database.put(_COMMITS, "0")
                database.put(_MAINTAINED, str(time.time()))

    def _rebuild(self, wanted: str, *, is_asked_for: bool) -> None:
        begun = time.time_ns()
        found = self._scan()
        if not is_asked_for:
            self._refuse_empty(found, self._state.totals()[0])
        database = self._place.database
        successor = ChunkStore(self._place.chunks.uri, NEXT_TABLE)
        target = RebuildTarget(database, successor, self._link.link_id)
        is_resumed = database.get(_REBUILDING) == wanted and successor.exists()
        if not is_resumed:
            successor.drop()
            with database.transaction():
                target.state.clear()
                database.put(_REBUILDING, wanted)
            successor.create(self._place.embedder.dimensions)
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
        self._process(target, work)
        if self._tally.is_cancelled:
            return
        self._listener(Progress(Phase.OPTIMISING, 0, 0))
        successor.maintain(has_readers=False)
        settled = [
            entry._replace(mtime_ns=settled_mtime(entry.mtime_ns, begun)) for entry in found.files
        ]
        self._switch(settled, target, wanted)
        self._note_skips(found)

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
            self._queue.clear(link_id)
            self._queue.add(
                link_id,
                (
                    Change(failure.file, ChangeType.UPDATE)
                    for failure in self._tally.errors
                    if failure.is_passing
                ),
            )
            self._state.adopt(target.state)
            self._links.scanned(link_id, None)
            database.put(FINGERPRINT, wanted)
            database.put(_REBUILDING, None)
            database.put(_COMMITS, "0")
            database.put(_MAINTAINED, str(time.time()))
            database.add_to(INDEX_VERSION, 1)
            database.put(_PROMOTING, "1")
        finish_promotion(database, self._place.chunks)


def finish_promotion(database: Database, chunks: ChunkStore) -> None:
    """Swap in a finished rebuild whose books are switched already; harmless when there is none."""
    if database.get(_PROMOTING) is not None:
        chunks.promote(ChunkStore(chunks.uri, NEXT_TABLE))
        database.put(_PROMOTING, None)
