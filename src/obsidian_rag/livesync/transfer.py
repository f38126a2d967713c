"""Carry out decisions: write, rename and trash files, and write documents and chunks."""

import json
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from obsidian_rag.errors import (
    IndexerFailed,
    LivesyncTooLarge,
    LivesyncUnreadable,
    NoteChanged,
    ObsidianRagError,
    SecurityViolation,
)
from obsidian_rag.livesync.codec import Encoded
from obsidian_rag.livesync.codec.path_ids import next_mtime, normalise
from obsidian_rag.livesync.couchdb import BulkRow
from obsidian_rag.livesync.decision import Action, Conflicted, Present
from obsidian_rag.store import SyncedFile
from obsidian_rag.vault import (
    FileEntry,
    content_hash,
    find_obstacle,
    rename_file,
    replace_file,
)

if TYPE_CHECKING:
    from obsidian_rag.livesync.disk import Case
    from obsidian_rag.livesync.reconcile import Reconciler


_log = logging.getLogger(__name__)
_WRITE_THREADS = 4


class _Blocked(LivesyncUnreadable):
    """A file stands where a folder is needed, or a folder where the file is."""

    def __init__(self, path: str, obstacle: str) -> None:
        kind = "a folder" if obstacle == path else "a file"
        super().__init__(
            f"'{path}' cannot be written, because '{obstacle}' is {kind} here.",
            f"Rename or remove '{obstacle}'.",
        )


class Puller:
    """Changes files for one reconciler, unless their content changed since the decision."""

    def __init__(self, reconciler: "Reconciler") -> None:
        self._reconciler = reconciler

    def write(self, cases: "Sequence[Case]") -> list[str]:
        """Write files; return the documents to look at again."""
        if not cases:
            return []
        with ThreadPoolExecutor(_WRITE_THREADS) as pool:
            outcomes = list(pool.map(self._write, cases))
        written: list[SyncedFile] = []
        again: list[str] = []
        for case, outcome in zip(cases, outcomes, strict=True):
            if isinstance(outcome, FileEntry):
                written.append(self._record_written(case, outcome))
                # A spelling changed here must still be sent, and a conflict reported.
                is_spelled = normalise(outcome.rel_path) == written[-1].path
                if not is_spelled or isinstance(case.view.state, Conflicted):
                    again.append(case.doc_id)
            elif isinstance(outcome, _Blocked):
                self._reconciler.wait_for_place(case, outcome)
            elif isinstance(outcome, NoteChanged):
                self._reconciler.disk.doubt(case.doc_id)
                again.append(case.doc_id)
            else:
                self._reconciler.fail(case, outcome)
        self._reconciler.records.put(*written)
        for file in written:
            self._reconciler.release(file.doc_id)
        self._reconciler.stats.add(pulled=len(written))
        return again

    def trash(self, case: "Case") -> None:
        """Move a file to the trash, since it was deleted elsewhere."""
        reconciler, local, entry = self._reconciler, case.file.local, case.file.entry
        assert isinstance(local, Present) and entry is not None
        reason = reconciler.deletions.reason(case)
        reconciler.trash.remove(entry.rel_path, local.content_hash, entry.size_bytes, reason)
        reconciler.disk.drop(case.doc_id)
        reconciler.records.put(reconciler.deleted_at(case, case.rev))
        reconciler.stats.add(deleted_here=1)
        _log.info("Deleted here: %s (`livesync restore` brings it back)", case.path)

    def respell(self, case: "Case") -> bool:
        """Rename a file to the document's spelling; return whether to look again."""
        reconciler, local, entry = self._reconciler, case.file.local, case.file.entry
        assert isinstance(local, Present) and entry is not None and case.view.entry is not None
        wanted = case.view.entry.path
        try:
            moved = rename_file(reconciler.disk.root, entry.rel_path, wanted, local.content_hash)
        except NoteChanged:
            if wanted not in reconciler.disk.left_out:
                raise
            raise LivesyncUnreadable(
                f"'{wanted}' and '{entry.rel_path}' differ only in case, and both are here.",
                "Rename or remove one of them.",
            ) from None
        except IndexerFailed:
            # The disk keeps only one spelling: go on with the content.
            reconciler.disk.case_locked.add(case.doc_id)
            return True
        reconciler.disk.put(case.doc_id, moved)
        reconciler.stats.add(renamed=1)
        return True

    def _write(self, case: "Case") -> FileEntry | ObsidianRagError:
        assert case.content is not None and case.view.entry is not None
        local, entry = case.file.local, case.file.entry
        expected = local.content_hash if isinstance(local, Present) else None
        path = entry.rel_path if entry is not None else case.view.entry.path
        mtime_ns = case.view.entry.mtime_ms * 1_000_000
        root = self._reconciler.disk.root
        try:
            return replace_file(root, path, expected, case.content, mtime_ns)
        except ObsidianRagError as error:
            if expected is not None or isinstance(error, SecurityViolation):
                return error
            if (obstacle := find_obstacle(root, path)) is not None:
                return _Blocked(path, obstacle)
            twin = self._reconciler.disk.owner_of(path) if isinstance(error, NoteChanged) else None
            return error if twin in (None, case.doc_id) else _twin_error(path)

    def _record_written(self, case: "Case", entry: FileEntry) -> SyncedFile:
        assert case.content is not None
        reconciler, content = self._reconciler, content_hash(case.content)
        reconciler.disk.put(case.doc_id, entry)
        if case.known is None or case.known.content_hash is None:
            reconciler.deletions.arrived(content)
        _log.info("Pulled: %s", case.path)
        return reconciler.synced(case, content, entry)


def _twin_error(path: str) -> LivesyncUnreadable:
    return LivesyncUnreadable(
        f"The database has '{path}' twice, in two Unicode forms, and this disk has one file of it.",
        "Rename one of the two on another device.",
    )


Document = dict[str, object]
# CouchDB's error names for HTTP 413, and ours for a proxy that gives none.
_TOO_LARGE_ERRORS = ("too_large", "document_too_large")


@dataclass(frozen=True, slots=True)
class _Draft:
    """An entry to write, and the chunks that must be stored first."""

    case: "Case"
    entry: Document
    chunks: tuple[Document, ...] = ()


class Pusher:
    """Writes to the database; each entry is a child of the revision that was decided on."""

    def __init__(self, reconciler: "Reconciler") -> None:
        self._reconciler = reconciler

    def push(self, cases: "Iterable[Case]") -> list[str]:
        """Send files and deletions; return the documents to look at again."""
        drafts: list[_Draft] = []
        again: list[str] = []
        for case in cases:
            try:
                draft = self._draft(case)
            except ObsidianRagError as error:
                self._reconciler.fail(case, error)
                continue
            if draft is None:
                again.append(case.doc_id)
            else:
                drafts.append(draft)
        return again + self._send(self._send_chunks_first(drafts))

    def send_chunks(self, chunks: Iterable[Document]) -> dict[str, str]:
        """Write chunks, each once; return those the server refused, with its error name."""
        once = list({str(chunk["_id"]): chunk for chunk in chunks}.values())
        rows = self._reconciler.couch.bulk_docs(once) if once else []
        # A chunk that exists already is the same: its id is derived from its content.
        return {row.id: row.error or "unknown" for row in rows if row.is_refused}

    def store(
        self, encoded: Encoded, fields: Mapping[str, object], *, new_edits: bool = True
    ) -> BulkRow | None:
        """Write one version with these fields, its chunks first; None if a chunk is refused."""
        if self.send_chunks(encoded.chunks):
            return None
        document = {**encoded.entry, **fields}
        return self._reconciler.couch.bulk_docs([document], new_edits=new_edits)[0]

    def _draft(self, case: "Case") -> _Draft | None:
        """What to write; None if the file has just changed."""
        reconciler = self._reconciler
        if case.action is Action.SOFT_DELETE:
            assert case.view.document is not None and case.known is not None
            if not reconciler.disk.is_still_gone(case.known.path):
                return None
            deleted = reconciler.member.codec.deleted(case.view.document, mtime_ms=_now_ms())
            return _Draft(case, deleted)
        data = reconciler.disk.bytes_of(case.doc_id, case.file)
        entry, before = case.file.entry, case.view.entry
        if data is None or entry is None:
            return None
        mtime_ms = _mtime_to_send(case, entry)
        encoded = reconciler.member.codec.encode(
            _path_to_send(case, entry),
            data,
            ctime_ms=before.ctime_ms if before and before.ctime_ms else _mtime_ms(entry),
            mtime_ms=mtime_ms,
            doc_id=case.doc_id,
        )
        parent = _parent_rev(case)
        written = encoded.entry | ({"_rev": parent} if parent else {})
        return _Draft(case, written, tuple(encoded.chunks))

    def _send_chunks_first(self, drafts: Sequence[_Draft]) -> list[_Draft]:
        """Write the drafts' chunks; return the drafts whose chunks are all stored."""
        refused = self.send_chunks(chunk for draft in drafts for chunk in draft.chunks)
        ready = []
        for draft in drafts:
            words = {
                refused[name] for chunk in draft.chunks if (name := str(chunk["_id"])) in refused
            }
            if words:
                self._reconciler.fail(draft.case, _refusal(draft, min(words)))
            else:
                ready.append(draft)
        return ready

    def _send(self, drafts: Sequence[_Draft]) -> list[str]:
        reconciler = self._reconciler
        if not drafts:
            return []
        rows = reconciler.couch.bulk_docs([draft.entry for draft in drafts])
        synced: list[SyncedFile] = []
        again: list[str] = []
        deleted = 0
        for draft, row in zip(drafts, rows, strict=True):
            if row.is_refused:
                reconciler.fail(draft.case, _refusal(draft, row.error or "unknown"))
            elif row.rev is None:
                again.append(draft.case.doc_id)
            else:
                synced.append(self._record_sent(draft, row.rev))
                deleted += synced[-1].content_hash is None
        reconciler.records.put(*synced)
        for file in synced:
            reconciler.release(file.doc_id)
        reconciler.stats.add(pushed=len(synced) - deleted, deleted_there=deleted)
        return again

    def _record_sent(self, draft: _Draft, rev: str) -> SyncedFile:
        case = draft.case
        if case.action is Action.SOFT_DELETE:
            _log.info("Deleted there: %s", case.path)
            return self._reconciler.deleted_at(case, rev)
        count = len(draft.chunks)
        _log.info("Pushed: %s (%d chunk%s)", case.path, count, "" if count == 1 else "s")
        return self._reconciler.sent(case, rev)


def _path_to_send(case: "Case", entry: FileEntry) -> str:
    """The file's path, in the document's Unicode form unless its case was changed here."""
    before = case.view.entry
    if before is not None and normalise(before.path) == normalise(entry.rel_path):
        return before.path
    return entry.rel_path


def _mtime_ms(entry: FileEntry) -> int:
    return max(entry.mtime_ns // 1_000_000, 0)


def _mtime_to_send(case: "Case", entry: FileEntry) -> int:
    """The file's mtime, raised where the startup scan of LiveSync's clients would undo the change.

    That scan compares mtimes, in steps of two seconds, and remembers each file's last one. A
    client keeps or resends a file that is not older than the entry, so an edit must be later than
    the entry it follows. A file that a client no longer has, but had with that mtime, counts as
    deleted there; so a revived file gets the current time.
    """
    mtime_ms = _mtime_ms(entry)
    before, known, local = case.view.entry, case.known, case.file.local
    if case.action is Action.PUSH_REVIVED:
        mtime_ms = max(mtime_ms, _now_ms())
    is_renamed_only = (
        known is not None
        and isinstance(local, Present)
        and known.content_hash == local.content_hash
    )
    if before is not None and not is_renamed_only:
        mtime_ms = max(mtime_ms, next_mtime(before.mtime_ms))
    return mtime_ms


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _parent_rev(case: "Case") -> str | None:
    """The parent revision: the recorded one, or the deletion it undoes."""
    document = case.view.document
    if case.action is Action.PUSH_REVIVED:
        return None if document is None or document.get("_deleted") else case.rev
    return case.known.rev if case.known is not None and document is not None else None


def _refusal(draft: _Draft, word: str) -> ObsidianRagError:
    """The error for a refused file; `word` is the server's error name."""
    path = draft.case.path
    if word in _TOO_LARGE_ERRORS:
        largest = max(len(json.dumps(one)) for one in (draft.entry, *draft.chunks))
        return LivesyncTooLarge(
            f"The server refuses {path!r} as too large (HTTP 413): a part of"
            f" {largest / 1_000_000:.1f} MB is over couchdb/max_document_size,"
            " chttpd/max_http_request_size, or a proxy's limit such as client_max_body_size.",
            "Raise that limit on the server, then sync again.",
        )
    return LivesyncUnreadable(f"The server refuses {path!r} ({word}).", "Look at the server's log.")
