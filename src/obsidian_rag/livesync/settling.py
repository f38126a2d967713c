"""Make documents and files agree: look at both sides, decide, act, and look again.

Every act is safe to lose and safe to repeat. Chunks are written before the entry that names them,
a record only after what it speaks of is durable, and a file is replaced only while it still has
the content that was decided on. What does not settle in a few rounds is owed and tried again.
"""

import json
import logging
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from obsidian_rag.errors import (
    IndexerFailed,
    LivesyncUnreadable,
    NoteChanged,
    ObsidianRagError,
)
from obsidian_rag.livesync.conflicts import Conflicts
from obsidian_rag.livesync.decision import Absent, Action, Conflicted, Live, Present, decide
from obsidian_rag.livesync.disk import Disk, Sight
from obsidian_rag.livesync.joining import Membership
from obsidian_rag.livesync.looking import Looker, View, is_missing
from obsidian_rag.livesync.path_ids import normalise
from obsidian_rag.livesync.stats import Stats
from obsidian_rag.store import LivesyncRecords, SyncedFile, now
from obsidian_rag.vault import (
    FileEntry,
    content_hash,
    remove_file,
    rename_file,
    replace_file,
)

if TYPE_CHECKING:
    from obsidian_rag.livesync.couch import Couch

_log = logging.getLogger(__name__)
_PAGE = 200
_ROUNDS = 6
_WRITERS = 4
_TAKES = {Action.WRITE, Action.TRASH, Action.RENAME_LOCAL, Action.MERGE_OR_CONFLICT}
_NEEDS_CONTENT = {Action.FETCH, Action.WRITE, Action.MERGE_OR_CONFLICT}


class Direction(StrEnum):
    """Which way changes go."""

    BOTH = "both"
    PULL = "pull"
    PUSH = "push"


@dataclass(frozen=True, slots=True)
class Manner:
    """How a node settles things."""

    direction: Direction = Direction.BOTH
    is_dry: bool = False
    may_merge: bool = True
    keeps_conflicts_as_files: bool = True
    trash: Path = Path()


@dataclass(frozen=True, slots=True)
class Case:
    """One document with everything that is known about it in this round."""

    doc_id: str
    view: View
    sight: Sight
    known: SyncedFile | None
    content: bytes | None = None
    action: Action = Action.NOTHING

    @property
    def path(self) -> str:
        """The path to show: the document's, else the file's, else the one we remember."""
        if self.view.entry is not None:
            return self.view.entry.path
        if isinstance(self.sight.local, Present):
            return self.sight.local.path
        return self.known.path if self.known is not None else self.doc_id


class Settler:
    """Works through documents, a page at a time."""

    def __init__(
        self,
        couch: "Couch",
        records: LivesyncRecords,
        member: Membership,
        disk: Disk,
        manner: Manner,
        stats: Stats,
    ) -> None:
        self.couch = couch
        self.records = records
        self.member = member
        self.disk = disk
        self.manner = manner
        self.stats = stats
        self.looker = Looker(couch, member.codec)
        self._conflicts = Conflicts(self)
        self.owed: set[str] = set()
        self._chunks_of: dict[str, int] = {}

    def settle(
        self,
        ids: Iterable[str],
        listener: Callable[[int, int], None] = lambda _done, _total: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Settle these documents; those that could not be are in `owed`.

        Raises:
            LivesyncUnreachable, LivesyncRefused: the server went away; nothing is half done.
            LivesyncPassphrase: nothing can be decrypted.
        """
        wanted = list(dict.fromkeys(ids))
        for start in range(0, len(wanted), _PAGE):
            if stop():
                self.owed.update(wanted[start:])
                return
            self._settle_page(wanted[start : start + _PAGE])
            listener(min(start + _PAGE, len(wanted)), len(wanted))

    def _settle_page(self, ids: Sequence[str]) -> None:
        self.owed.difference_update(ids)
        waiting = list(ids)
        for _ in range(_ROUNDS):
            if not waiting:
                return
            cases = self._decided(waiting)
            if self.manner.is_dry:
                self._plan(cases)
                return
            waiting = self._act(cases)
        self.owed.update(waiting)

    def _decided(self, ids: Sequence[str]) -> list[Case]:
        """Look at both sides and decide, with the content where the decision needs it."""
        known = {doc_id: record for doc_id in ids if (record := self.records.file(doc_id))}
        views = self.looker.look(ids, known)
        cases = []
        for doc_id in ids:
            view, record = views[doc_id], known.get(doc_id)
            if view.trouble is not None:
                self._set_aside(doc_id, view, view.trouble)
                continue
            sight = self.disk.see(doc_id, record, view.entry.path if view.entry else None)
            if sight is None:
                self.owed.add(doc_id)
                continue
            cases.append(self._with_action(Case(doc_id, view, sight, record)))
        return self._with_content(cases)

    def _with_action(self, case: Case) -> Case:
        is_read_only = self.member.is_read_only or self.manner.direction is Direction.PULL
        action = decide(case.sight.local, case.view.state, case.known, is_read_only=is_read_only)
        is_unknown = case.known is None and isinstance(case.sight.local, Absent)
        if action is Action.REPORT_CONFLICT and is_unknown:
            action = Action.WRITE  # there is nothing of ours that the winner could overwrite
        if action in _TAKES and self.manner.direction is Direction.PUSH:
            action = Action.NOTHING
        return replace(case, action=action)

    def _with_content(self, cases: list[Case]) -> list[Case]:
        needed = [case for case in cases if case.action in _NEEDS_CONTENT and case.view.entry]
        if not needed:
            return cases
        entries = [case.view.entry for case in needed if case.view.entry is not None]
        found = self.looker.contents(entries)
        self.stats.add(chunks_fetched=sum(len(entry.children) for entry in entries))
        complete = []
        for case in cases:
            content = found.get(case.doc_id) if case in needed else None
            if isinstance(content, LivesyncUnreadable):
                self._set_aside(case.doc_id, case.view, content)
                continue
            if content is not None and isinstance(case.view.state, Live):
                state = replace(case.view.state, content_hash=content_hash(content))
                view = replace(case.view, state=state)
                case = self._with_action(replace(case, view=view, content=content))
            elif content is not None:
                case = replace(case, content=content)
            complete.append(case)
        return complete

    def _plan(self, cases: Iterable[Case]) -> None:
        for case in cases:
            if case.action not in (Action.NOTHING, Action.RECORD):
                self.stats.planned[f"{case.action.value} {case.path}"] += 1

    def _act(self, cases: Sequence[Case]) -> list[str]:
        """Do what was decided; the documents that must be looked at again."""
        again: list[str] = []
        by_action: dict[Action, list[Case]] = {}
        for case in cases:
            by_action.setdefault(case.action, []).append(case)
        for case in by_action.pop(Action.NOTHING, []):
            self._seen(case)
        again += self._write(by_action.pop(Action.WRITE, []))
        pushes = [
            *by_action.pop(Action.PUSH, []),
            *by_action.pop(Action.PUSH_REVIVED, []),
            *by_action.pop(Action.SOFT_DELETE, []),
        ]
        again += self._push(pushes)
        for action, some in by_action.items():
            for case in some:
                if self._one(action, case):
                    again.append(case.doc_id)
        return again

    def _one(self, action: Action, case: Case) -> bool:
        """Do one of the rarer things; whether to look again."""
        try:
            match action:
                case Action.RECORD:
                    self._record(case)
                case Action.FORGET:
                    self.records.forget(case.doc_id)
                case Action.REBASE | Action.WARN_TOMBSTONE:
                    return self._rebase(case)
                case Action.RENAME_LOCAL:
                    return self._rename(case)
                case Action.TRASH:
                    self._trash(case)
                case Action.MERGE_OR_CONFLICT:
                    return self._conflicts.merge_or_keep(case)
                case Action.REPORT_CONFLICT:
                    return self._conflicts.report(case)
                case _:
                    return True
        except NoteChanged:
            self.disk.look()
            return True
        except ObsidianRagError as error:
            self._fail(case, error)
        return False

    # -- towards the vault

    def _write(self, cases: Sequence[Case]) -> list[str]:
        if not cases:
            return []
        with ThreadPoolExecutor(_WRITERS) as pool:
            outcomes = list(pool.map(self._write_one, cases))
        written, again = [], []
        for case, outcome in zip(cases, outcomes, strict=True):
            if isinstance(outcome, FileEntry):
                self.disk.put(case.doc_id, outcome)
                assert case.content is not None
                written.append(self._synced(case, content_hash(case.content), outcome))
                self.records.release(case.doc_id)
                _log.info("Pulled: %s", case.path)
            elif isinstance(outcome, NoteChanged):
                again.append(case.doc_id)
            else:
                self._fail(case, outcome)
        if again:
            self.disk.look()
        self.records.put(*written)
        self.stats.add(pulled=len(written))
        return again

    def _write_one(self, case: Case) -> FileEntry | ObsidianRagError:
        assert case.content is not None and case.view.entry is not None
        local, entry = case.sight.local, case.sight.entry
        expected = local.content_hash if isinstance(local, Present) else None
        path = entry.rel_path if entry is not None else case.view.entry.path
        try:
            return replace_file(
                self.disk.root, path, expected, case.content, case.view.entry.mtime_ms * 1_000_000
            )
        except ObsidianRagError as error:
            return error

    def _trash(self, case: Case) -> None:
        local, entry = case.sight.local, case.sight.entry
        assert isinstance(local, Present) and entry is not None
        self.keep(entry, local.content_hash, "deleted on another device")
        self.disk.drop(case.doc_id)
        self._record_deleted(case)
        self.stats.add(deleted_here=1)
        _log.info("Deleted here: %s (`livesync restore` brings it back)", case.path)

    def keep(self, entry: FileEntry, expected: str, reason: str) -> None:
        """Move a file into the trash, from where it can be restored."""
        kept = self.manner.trash / f"{time.time_ns()}-{secrets.token_hex(4)}"
        # The row first: a file in the trash that nobody lists is as good as lost.
        self.records.add_trash(entry.rel_path, str(kept), entry.size_bytes, now(), reason)
        remove_file(self.disk.root, entry.rel_path, expected, kept)

    def _rename(self, case: Case) -> bool:
        local, entry = case.sight.local, case.sight.entry
        assert isinstance(local, Present) and entry is not None and case.view.entry is not None
        try:
            moved = rename_file(
                self.disk.root, entry.rel_path, case.view.entry.path, local.content_hash
            )
        except IndexerFailed:
            # The disk knows one spelling only: it has the file, which is what matters.
            self._record(case, path=local.path)
            return False
        self.disk.put(case.doc_id, moved)
        self.stats.add(renamed=1)
        return True

    # -- towards the database

    def _push(self, cases: Sequence[Case]) -> list[str]:
        entries, ready, again = [], [], []
        chunks: dict[str, dict[str, object]] = {}
        for case in cases:
            try:
                document = self._outgoing(case, chunks)
            except ObsidianRagError as error:
                self._fail(case, error)
                continue
            if document is None:
                again.append(case.doc_id)
            else:
                entries.append(document)
                ready.append(case)
        if not entries:
            return again
        refused = self._send_chunks(list(chunks.values()))
        if refused:
            raise refused
        deleted = 0
        synced = []
        for case, document, row in zip(ready, entries, self.couch.bulk_docs(entries), strict=True):
            if row.error == "conflict":
                again.append(case.doc_id)
            elif row.rev is None:
                self._fail(case, _refused(case, row.error))
            elif document.get("deleted") is True:
                synced.append(self._deleted_at(case, row.rev))
                deleted += 1
                _log.info("Deleted there: %s", case.path)
            else:
                synced.append(self._pushed_at(case, row.rev))
                count = self._chunks_of.pop(case.doc_id, 0)
                plural = "" if count == 1 else "s"
                _log.info("Pushed: %s (%d chunk%s)", case.path, count, plural)
        self.records.put(*synced)
        self.stats.add(pushed=len(synced) - deleted, deleted_there=deleted)
        return again

    def _outgoing(
        self, case: Case, chunks: dict[str, dict[str, object]]
    ) -> dict[str, object] | None:
        """The entry to write, its chunks added to those to be written first."""
        if case.action is Action.SOFT_DELETE:
            assert case.view.document is not None
            return self.member.codec.deleted(case.view.document, mtime_ms=time.time_ns() // 10**6)
        data = self.disk.bytes_of(case.sight)
        entry = case.sight.entry
        if data is None or entry is None:
            self.disk.look()
            return None
        before = case.view.entry
        mtime_ms = entry.mtime_ns // 1_000_000
        encoded = self.member.codec.encode(
            normalise(entry.rel_path),
            data,
            ctime_ms=before.ctime_ms if before and before.ctime_ms else mtime_ms,
            mtime_ms=mtime_ms,
        )
        for chunk in encoded.chunks:
            chunks[str(chunk["_id"])] = chunk
        self._chunks_of[case.doc_id] = len(encoded.chunks)
        parent = self._parent(case)
        return encoded.entry | ({"_rev": parent} if parent else {})

    def _parent(self, case: Case) -> str | None:
        """The revision that the new one follows: ours, or the deletion it undoes."""
        if case.action is Action.PUSH_REVIVED:
            rev = getattr(case.view.state, "rev", None)
            return None if case.view.document and case.view.document.get("_deleted") else rev
        has_document = case.view.document is not None
        return case.known.rev if case.known is not None and has_document else None

    def _send_chunks(self, chunks: Sequence[dict[str, object]]) -> ObsidianRagError | None:
        for row in self.couch.bulk_docs(chunks):
            # A chunk that is there already is the same: its id is made from its content.
            if row.rev is None and row.error != "conflict":
                return LivesyncUnreadable(
                    f"The server refuses a chunk ({row.error}).",
                    "Raise couchdb/max_document_size on the server.",
                )
        return None

    # -- what we remember

    def _record(self, case: Case, path: str | None = None) -> None:
        local, entry = case.sight.local, case.sight.entry
        if isinstance(local, Absent) or entry is None:
            self._record_deleted(case)
            return
        synced = self._synced(case, local.content_hash, entry)
        self.records.put(synced if path is None else replace(synced, path=path))
        self.records.release(case.doc_id)
        self.records.settle_conflict(case.doc_id)

    def _rebase(self, case: Case) -> bool:
        assert case.known is not None
        rev = str(getattr(case.view.state, "rev", case.known.rev))
        self.records.put(replace(case.known, rev=rev))
        if case.action is Action.WARN_TOMBSTONE:
            _log.warning("%s was removed from the database, but not deleted; it stays", case.path)
        return case.action is Action.REBASE

    def _record_deleted(self, case: Case) -> None:
        rev = str(getattr(case.view.state, "rev", ""))
        self.records.put(SyncedFile(case.doc_id, case.path, rev, None, 0, 0))
        self.records.settle_conflict(case.doc_id)

    def _synced(self, case: Case, content: str, entry: FileEntry) -> SyncedFile:
        assert case.view.entry is not None
        state = case.view.state
        rev = state.winner if isinstance(state, Conflicted) else str(getattr(state, "rev", ""))
        path = case.view.entry.path
        return SyncedFile(case.doc_id, path, rev, content, entry.size_bytes, entry.mtime_ns)

    def _pushed_at(self, case: Case, rev: str) -> SyncedFile:
        local, entry = case.sight.local, case.sight.entry
        assert isinstance(local, Present) and entry is not None
        return SyncedFile(
            case.doc_id, local.path, rev, local.content_hash, entry.size_bytes, entry.mtime_ns
        )

    def _deleted_at(self, case: Case, rev: str) -> SyncedFile:
        return SyncedFile(case.doc_id, case.path, rev, None, 0, 0)

    def _seen(self, case: Case) -> None:
        """Nothing to do; a file that was only touched need not be read again next time."""
        known, entry, local = case.known, case.sight.entry, case.sight.local
        if known is None or entry is None or not isinstance(local, Present):
            return
        is_same = local.content_hash == known.content_hash
        if is_same and not self.disk.is_as_recorded(case.doc_id, known):
            self.records.put(replace(known, size=entry.size_bytes, mtime_ns=entry.mtime_ns))

    # -- what goes wrong

    def _set_aside(self, doc_id: str, view: View, trouble: LivesyncUnreadable) -> None:
        rev = str((view.document or {}).get("_rev", ""))
        path = view.entry.path if view.entry is not None else None
        if isinstance(view.state, Live) or view.entry is not None:
            self.records.quarantine(doc_id, rev, path, trouble.code, trouble.message)
        if is_missing(trouble):
            self.owed.add(doc_id)

    def _fail(self, case: Case, error: ObsidianRagError) -> None:
        rev = str((case.view.document or {}).get("_rev", ""))
        self.records.quarantine(case.doc_id, rev, case.path, error.code, error.message)
        _log.warning("%s waits: %s", case.path, error.message)
        self.owed.add(case.doc_id)

    def note_merge(self, doc_id: str, intent: dict[str, str] | None) -> None:
        """Remember a merge that is being written, so that a crash does not merge twice."""
        self.records.put_fact(f"merge:{doc_id}", json.dumps(intent) if intent else None)


def _refused(case: Case, why: str | None) -> LivesyncUnreadable:
    return LivesyncUnreadable(
        f"The server refuses {case.path!r} ({why}).", "Look at the server's log."
    )
