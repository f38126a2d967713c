"""Carry out decisions: write, rename and trash files, and write documents and chunks.

A file is changed only while it has the content that was decided on, and an entry is written as a
child of the revision that was decided on.
"""

import json
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

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
from obsidian_rag.livesync.couchdb import BulkRow, Couch
from obsidian_rag.livesync.decision import Action, Conflicted, Present
from obsidian_rag.livesync.sync import Case, Outcome, Sync
from obsidian_rag.store import SyncedFile
from obsidian_rag.vault import FileEntry, find_obstacle, rename_file, replace_file

_log = logging.getLogger(__name__)
_WRITE_THREADS = 4
# CouchDB's error names for HTTP 413, and ours for a proxy that gives none.
_TOO_LARGE_ERRORS = ("too_large", "document_too_large")

Document = dict[str, object]


class PathTaken(LivesyncUnreadable):
    """A file stands where a folder is needed, or a folder where the file is."""

    def __init__(self, path: str, obstacle: str) -> None:
        kind = "a folder" if obstacle == path else "a file"
        super().__init__(
            f"'{path}' cannot be written, because '{obstacle}' is {kind} here.",
            f"Rename or remove '{obstacle}'.",
        )


# -- to the vault


def pull(sync: Sync, cases: Sequence[Case]) -> Outcome:
    """Write the documents' content to their files."""
    outcome = Outcome()
    if not cases:
        return outcome
    with ThreadPoolExecutor(_WRITE_THREADS) as pool:
        results = list(pool.map(partial(_write, sync), cases))
    for case, result in zip(cases, results, strict=True):
        if isinstance(result, FileEntry):
            record = _note_pulled(sync, case, result)
            outcome.synced.append((case, record))
            # A spelling changed here must still be sent, and a conflict reported.
            is_spelled = normalise(result.rel_path) == record.path
            if not is_spelled or isinstance(case.view.state, Conflicted):
                outcome.again.append(case.doc_id)
        elif isinstance(result, NoteChanged):
            sync.disk.doubt(case.doc_id)
            outcome.again.append(case.doc_id)
        else:
            outcome.failed.append((case, result))
    sync.records.put(*(record for _, record in outcome.synced))
    sync.state.count(pulled=len(outcome.synced))
    return outcome


def trash(sync: Sync, case: Case, reason: str) -> None:
    """Move a file to the trash, since it was deleted elsewhere."""
    local, entry = case.present
    sync.trash.remove(entry.rel_path, local.content_hash, entry.size_bytes, reason)
    sync.disk.drop(case.doc_id)
    sync.records.put(case.deleted_as(case.rev))
    sync.state.count(deleted_here=1)
    _log.info("Deleted here: %s (`livesync restore` brings it back)", case.path)


def respell(sync: Sync, case: Case) -> None:
    """Rename a file to the document's spelling."""
    local, entry = case.present
    assert case.view.entry is not None
    wanted = case.view.entry.path
    try:
        moved = rename_file(sync.disk.root, entry.rel_path, wanted, local.content_hash)
    except NoteChanged:
        if wanted not in sync.disk.left_out:
            raise
        raise LivesyncUnreadable(
            f"'{wanted}' and '{entry.rel_path}' differ only in case, and both are here.",
            "Rename or remove one of them.",
        ) from None
    except IndexerFailed:
        # The disk keeps only one spelling: go on with the content.
        sync.disk.case_locked.add(case.doc_id)
        return
    sync.disk.put(case.doc_id, moved)
    sync.state.count(renamed=1)


def _write(sync: Sync, case: Case) -> FileEntry | ObsidianRagError:
    assert case.content is not None and case.view.entry is not None
    local, entry = case.file.local, case.file.entry
    expected = local.content_hash if isinstance(local, Present) else None
    path = entry.rel_path if entry is not None else case.view.entry.path
    mtime_ns = case.view.entry.mtime_ms * 1_000_000
    root = sync.disk.root
    try:
        return replace_file(root, path, expected, case.content, mtime_ns)
    except ObsidianRagError as error:
        if expected is not None or isinstance(error, SecurityViolation):
            return error
        if (obstacle := find_obstacle(root, path)) is not None:
            return PathTaken(path, obstacle)
        twin = sync.disk.owner_of(path) if isinstance(error, NoteChanged) else None
        return error if twin in (None, case.doc_id) else _twin_error(path)


def _note_pulled(sync: Sync, case: Case, entry: FileEntry) -> SyncedFile:
    assert case.content_hash is not None
    sync.disk.put(case.doc_id, entry)
    _log.info("Pulled: %s", case.path)
    return sync.agreed(case, case.content_hash, entry)


def _twin_error(path: str) -> LivesyncUnreadable:
    return LivesyncUnreadable(
        f"The database has '{path}' twice, in two Unicode forms, and this disk has one file of it.",
        "Rename one of the two on another device.",
    )


# -- to the database


@dataclass(frozen=True, slots=True)
class _Draft:
    """An entry to write, and the chunks that must be stored first."""

    case: Case
    entry: Document
    chunks: tuple[Document, ...] = ()


def push(sync: Sync, cases: Iterable[Case]) -> Outcome:
    """Send files and deletions; chunks are stored before the entries that name them."""
    outcome = Outcome()
    drafts: list[_Draft] = []
    for case in cases:
        try:
            draft = _draft(sync, case)
        except ObsidianRagError as error:
            outcome.failed.append((case, error))
            continue
        if draft is None:
            outcome.again.append(case.doc_id)
        else:
            drafts.append(draft)
    refused = _send_chunks(sync.couch, (chunk for draft in drafts for chunk in draft.chunks))
    ready = []
    for draft in drafts:
        errors = {refused[one] for chunk in draft.chunks if (one := str(chunk["_id"])) in refused}
        if errors:
            outcome.failed.append((draft.case, _refusal(draft, min(errors))))
        else:
            ready.append(draft)
    _send_entries(sync, ready, outcome)
    return outcome


def store_version(
    sync: Sync, encoded: Encoded, fields: Mapping[str, object], *, new_edits: bool = True
) -> BulkRow | None:
    """Write one version with these fields, its chunks first; None if a chunk is refused."""
    if _send_chunks(sync.couch, encoded.chunks):
        return None
    document = {**encoded.entry, **fields}
    return sync.couch.bulk_docs([document], new_edits=new_edits)[0]


def _draft(sync: Sync, case: Case) -> _Draft | None:
    """What to write; None if the file has just changed."""
    if case.action is Action.SOFT_DELETE:
        assert case.view.document is not None and case.known is not None
        if not sync.disk.is_still_gone(case.known.path):
            return None
        return _Draft(case, sync.member.codec.deleted(case.view.document, mtime_ms=_now_ms()))
    data = sync.disk.bytes_of(case.doc_id, case.file)
    entry, before = case.file.entry, case.view.entry
    if data is None or entry is None:
        return None
    encoded = sync.member.codec.encode(
        _path_to_send(case, entry),
        data,
        ctime_ms=before.ctime_ms if before and before.ctime_ms else _mtime_ms(entry),
        mtime_ms=_mtime_to_send(case, entry),
        doc_id=case.doc_id,
    )
    parent = _parent_rev(case)
    written = encoded.entry | ({"_rev": parent} if parent else {})
    return _Draft(case, written, tuple(encoded.chunks))


def _send_chunks(couch: Couch, chunks: Iterable[Document]) -> dict[str, str]:
    """Write chunks, each once; return those the server refused, with its error name."""
    once = list({str(chunk["_id"]): chunk for chunk in chunks}.values())
    rows = couch.bulk_docs(once) if once else []
    # A chunk that exists already is the same: its id is derived from its content.
    return {row.id: row.error or "unknown" for row in rows if row.is_refused}


def _send_entries(sync: Sync, drafts: Sequence[_Draft], outcome: Outcome) -> None:
    if not drafts:
        return
    rows = sync.couch.bulk_docs([draft.entry for draft in drafts])
    for draft, row in zip(drafts, rows, strict=True):
        if row.is_refused:
            outcome.failed.append((draft.case, _refusal(draft, row.error or "unknown")))
        elif row.rev is None:
            outcome.again.append(draft.case.doc_id)
        else:
            outcome.synced.append((draft.case, _note_sent(draft, row.rev)))
    records = [record for _, record in outcome.synced]
    sync.records.put(*records)
    deleted = sum(record.content_hash is None for record in records)
    sync.state.count(pushed=len(records) - deleted, deleted_there=deleted)


def _note_sent(draft: _Draft, rev: str) -> SyncedFile:
    case = draft.case
    if case.action is Action.SOFT_DELETE:
        _log.info("Deleted there: %s", case.path)
        return case.deleted_as(rev)
    count = len(draft.chunks)
    _log.info("Pushed: %s (%d chunk%s)", case.path, count, "" if count == 1 else "s")
    return case.sent_as(rev)


def _path_to_send(case: Case, entry: FileEntry) -> str:
    """The file's path, in the document's Unicode form unless its case was changed here."""
    before = case.view.entry
    if before is not None and normalise(before.path) == normalise(entry.rel_path):
        return before.path
    return entry.rel_path


def _mtime_ms(entry: FileEntry) -> int:
    return max(entry.mtime_ns // 1_000_000, 0)


def _mtime_to_send(case: Case, entry: FileEntry) -> int:
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


def _parent_rev(case: Case) -> str | None:
    """The parent revision: the recorded one, or the deletion it undoes."""
    document = case.view.document
    if case.action is Action.PUSH_REVIVED:
        return None if document is None or document.get("_deleted") else case.rev
    return case.known.rev if case.known is not None and document is not None else None


def _refusal(draft: _Draft, error: str) -> ObsidianRagError:
    """The error for a file that the server refuses with this error name."""
    path = draft.case.path
    if error in _TOO_LARGE_ERRORS:
        largest = max(len(json.dumps(one)) for one in (draft.entry, *draft.chunks))
        return LivesyncTooLarge(
            f"The server refuses {path!r} as too large (HTTP 413): a part of"
            f" {largest / 1_000_000:.1f} MB is over couchdb/max_document_size,"
            " chttpd/max_http_request_size, or a proxy's limit such as client_max_body_size.",
            "Raise that limit on the server, then sync again.",
        )
    return LivesyncUnreadable(
        f"The server refuses {path!r} ({error}).", "Look at the server's log."
    )
