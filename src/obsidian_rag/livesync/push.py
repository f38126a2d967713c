"""What the vault says goes into the database: chunks first, then the entries that name them."""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from obsidian_rag.errors import LivesyncUnreadable, ObsidianRagError
from obsidian_rag.livesync.codec import Encoded
from obsidian_rag.livesync.codec.path_ids import next_mtime, normalise
from obsidian_rag.livesync.couchdb import BulkRow
from obsidian_rag.livesync.decision import Action, Present
from obsidian_rag.store import SyncedFile
from obsidian_rag.vault import FileEntry

if TYPE_CHECKING:
    from obsidian_rag.livesync.case import Case
    from obsidian_rag.livesync.reconcile import Reconciler

_log = logging.getLogger(__name__)
Document = dict[str, object]


@dataclass(frozen=True, slots=True)
class _Draft:
    """An entry to be written, and the chunks that must be there before."""

    case: "Case"
    entry: Document
    chunks: tuple[Document, ...] = ()


class Pusher:
    """Writes to the database; each entry is a child of what it was decided on."""

    def __init__(self, reconciler: "Reconciler") -> None:
        self._reconciler = reconciler

    def push(self, cases: "Iterable[Case]") -> list[str]:
        """Send files and deletions; the documents that must be looked at again."""
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
        return again + self._send(self._with_chunks(drafts))

    def send_chunks(self, chunks: Iterable[Document]) -> dict[str, str]:
        """Write chunks, each once; what the server refuses, and its word for why."""
        once = list({str(chunk["_id"]): chunk for chunk in chunks}.values())
        rows = self._reconciler.couch.bulk_docs(once) if once else []
        # A chunk that is there already is the same: its id is made from its content.
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
        """What to write; None if the file is not what it was a moment ago."""
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
        parent = _parent(case)
        written = encoded.entry | ({"_rev": parent} if parent else {})
        return _Draft(case, written, tuple(encoded.chunks))

    def _with_chunks(self, drafts: Sequence[_Draft]) -> list[_Draft]:
        """The drafts whose chunks are all there now."""
        refused = self.send_chunks(chunk for draft in drafts for chunk in draft.chunks)
        ready = []
        for draft in drafts:
            words = {
                refused[name] for chunk in draft.chunks if (name := str(chunk["_id"])) in refused
            }
            if words:
                self._reconciler.fail(draft.case, _refused_chunk(draft.case, min(words)))
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
                reconciler.fail(draft.case, _refused(draft.case, row))
            elif row.rev is None:
                again.append(draft.case.doc_id)
            else:
                synced.append(self._sent(draft, row.rev))
                deleted += synced[-1].content_hash is None
        reconciler.records.put(*synced)
        for file in synced:
            reconciler.release(file.doc_id)
        reconciler.stats.add(pushed=len(synced) - deleted, deleted_there=deleted)
        return again

    def _sent(self, draft: _Draft, rev: str) -> SyncedFile:
        case = draft.case
        if case.action is Action.SOFT_DELETE:
            _log.info("Deleted there: %s", case.path)
            return self._reconciler.deleted_at(case, rev)
        count = len(draft.chunks)
        _log.info("Pushed: %s (%d chunk%s)", case.path, count, "" if count == 1 else "s")
        return self._reconciler.sent(case, rev)


def _path_to_send(case: "Case", entry: FileEntry) -> str:
    """The file's path; in the document's own form, unless it was spelled in another case here."""
    before = case.view.entry
    if before is not None and normalise(before.path) == normalise(entry.rel_path):
        return before.path
    return entry.rel_path


def _mtime_ms(entry: FileEntry) -> int:
    return max(entry.mtime_ns // 1_000_000, 0)


def _mtime_to_send(case: "Case", entry: FileEntry) -> int:
    """The file's time, unless the scan of LiveSync's own clients would undo the change for it.

    When they start they compare times, in steps of two seconds, and know the last time that
    each file had. A file of theirs that is not older than the entry is kept or sent again, so an
    edit must be later than the entry it follows. And a file that they have no more, but had with
    that time, was deleted there; so one that comes back is as new as its return.
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


def _parent(case: "Case") -> str | None:
    """The revision that the new one follows: ours, or the deletion it undoes."""
    document = case.view.document
    if case.action is Action.PUSH_REVIVED:
        return None if document is None or document.get("_deleted") else case.rev
    return case.known.rev if case.known is not None and document is not None else None


def _refused(case: "Case", row: BulkRow) -> LivesyncUnreadable:
    return LivesyncUnreadable(
        f"The server refuses {case.path!r} ({row.error}).", "Look at the server's log."
    )


def _refused_chunk(case: "Case", word: str) -> LivesyncUnreadable:
    return LivesyncUnreadable(
        f"The server refuses a part of {case.path!r} ({word}).",
        "Raise couchdb/max_document_size on the server.",
    )
