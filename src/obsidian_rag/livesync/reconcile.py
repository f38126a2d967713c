"""Make documents and files agree: look at both sides, decide, act, and look again.

Every action is safe to lose and safe to repeat. Chunks are written before the entry that names
them, a record only after what it describes is durable, and a file is replaced only while it still
has the content that was decided on. What does not settle in a few rounds is owed and retried.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from obsidian_rag.errors import (
    LivesyncBrake,
    LivesyncPassphrase,
    LivesyncRefused,
    LivesyncUnreachable,
    LivesyncUnreadable,
    NoteChanged,
    ObsidianRagError,
)
from obsidian_rag.livesync.codec.path_ids import in_form_of, in_the_way_of, normalise
from obsidian_rag.livesync.conflicts import Conflicts
from obsidian_rag.livesync.decision import (
    Absent,
    Action,
    Conflicted,
    Live,
    Present,
    brake,
    decide,
)
from obsidian_rag.livesync.deletions import Deletions
from obsidian_rag.livesync.disk import Case, Direction, Disk, Policy
from obsidian_rag.livesync.left_out import IgnoredDocuments, LeftOut, summarised
from obsidian_rag.livesync.membership import Membership
from obsidian_rag.livesync.remote_view import RemoteReader, View, is_missing
from obsidian_rag.livesync.state import Stats
from obsidian_rag.livesync.transfer import Puller, Pusher
from obsidian_rag.livesync.trash import Trash
from obsidian_rag.store import LivesyncRecords, SyncedFile
from obsidian_rag.vault import FileEntry, content_hash, sweep

if TYPE_CHECKING:
    from obsidian_rag.livesync.couchdb import Couch

_log = logging.getLogger(__name__)
_DOCUMENTS_PER_PAGE = 200
# Maximum bytes of files in memory at a time; one larger file is held alone.
_MAX_BATCH_BYTES = 32 * 2**20
_MAX_ROUNDS = 6
_VAULT_WRITES = {Action.WRITE, Action.TRASH, Action.RENAME_LOCAL}
_NEEDS_CONTENT = {Action.FETCH, Action.WRITE, Action.MERGE_OR_CONFLICT}
_PUSHES = (Action.PUSH, Action.PUSH_REVIVED)
_CONFLICT_ACTIONS = {Action.MERGE_OR_CONFLICT, Action.REPORT_CONFLICT}
# These concern the whole database, not one document: they end the run.
_FATAL_ERRORS = (LivesyncUnreachable, LivesyncRefused, LivesyncPassphrase, LivesyncBrake)


class Reconciler:
    """Syncs documents, a page at a time."""

    def __init__(
        self,
        couch: "Couch",
        records: LivesyncRecords,
        member: Membership,
        disk: Disk,
        policy: Policy,
        stats: Stats,
        max_deleted_percent: float = 20.0,
    ) -> None:
        self.couch = couch
        self.records = records
        self.member = member
        self.disk = disk
        self.policy = policy
        self.stats = stats
        self.trash = Trash(policy.trash, disk.root, records)
        self.reader = RemoteReader(couch, member.codec, member.tweaks.max_bytes)
        self.owed: set[str] = set()
        self.ignored = IgnoredDocuments(records)
        self._max_deleted_percent = max_deleted_percent
        self._conflicts = Conflicts(self)
        self.pusher = Pusher(self)
        self.puller = Puller(self)
        self.deletions = Deletions(self, max_deleted_percent)
        # Documents whose path a pending deletion may free; None once they no longer wait.
        self._blocked: set[str] | None = None
        self._is_live_by_id: dict[str, bool] = {}
        self._quarantined_ids = {one.doc_id for one in records.quarantined()}

    @property
    def is_sending_only(self) -> bool:
        """Whether the vault must not be changed."""
        return self.policy.direction is Direction.PUSH

    @property
    def is_read_only(self) -> bool:
        """Whether the database must not be written to."""
        return self.member.is_read_only or self.policy.direction is Direction.PULL

    def look(self) -> list[str]:
        """Walk the vault; return the documents whose files are new, changed or gone.

        Raises:
            LivesyncBrake: so many files are gone that the user must decide.
        """
        walk = self.disk.look(self._live_documents)
        if not self.policy.is_dry and not self.is_sending_only:
            sweep(self.disk.root, walk.leftovers)
        known = {file.doc_id: file for file in self.records.files()}
        self._forget_filtered(known)
        live = [file for file in known.values() if file.content_hash is not None]
        missing = [file for file in live if self.disk.is_gone(file.doc_id, file.path)]
        is_there = walk.has_root and not walk.is_empty
        sent = 0 if self.is_read_only else len(missing)
        brake(len(live), sent, is_there, self._max_deleted_percent)
        changed = [
            doc_id
            for doc_id in self.disk.ids()
            if not self.disk.is_as_recorded(doc_id, known.get(doc_id), with_path=True)
        ]
        # A file that a folder replaced must be deleted elsewhere before the folder arrives.
        first = in_the_way_of(
            {file.doc_id: file.path for file in missing},
            [entry.rel_path for doc_id in changed if (entry := self.disk.entry(doc_id))],
        )
        lifted = self.ignored.lifted(self.disk.filters.reason)
        rest = (one.doc_id for one in missing if one.doc_id not in first)
        return [*first, *changed, *rest, *lifted]

    def look_at(self, paths: Iterable[str]) -> list[str]:
        """Look at files that were written; return the documents of those that are new or changed.

        Raises:
            LivesyncBrake: as for `look`, which this falls back to when a file is gone.
        """
        ids = self.disk.look_at(paths)
        if ids is None:
            return self.look()
        return [
            doc_id
            for doc_id in ids
            if not self.disk.is_as_recorded(doc_id, self.records.file(doc_id), with_path=True)
        ]

    def _live_documents(self, ids: Iterable[str]) -> set[str]:
        """Which of these documents the database has; each is looked up once."""
        asked = [doc_id for doc_id in ids if doc_id not in self._is_live_by_id]
        if asked:
            for doc_id, view in self.reader.look(asked, {}).items():
                self._note_document(doc_id, view)
        return {doc_id for doc_id in ids if self._is_live_by_id[doc_id]}

    def _note_document(self, doc_id: str, view: View) -> None:
        is_live = isinstance(view.state, Live | Conflicted) and view.trouble is None
        self._is_live_by_id[doc_id] = is_live

    def reconcile(
        self,
        ids: Iterable[str],
        listener: Callable[[int, int], None] = lambda _done, _total: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Sync these documents; those that could not be are in `owed`.

        Raises:
            LivesyncUnreachable, LivesyncRefused: the server went away; nothing is half done.
            LivesyncPassphrase: nothing can be decrypted.
            LivesyncBrake: too many files disappeared during the sync.
        """
        self._blocked = blocked = set[str]()
        try:
            self._reconcile_pages(list(dict.fromkeys(ids)), listener, stop)
        finally:
            self._blocked = None
        if stop():
            self.owed.update(blocked)
            self.deletions.keep()
            return
        # Deletions come last, when all of them are known; then the files that needed their paths.
        due = self.deletions.clear()
        self._reconcile_pages([*due, *sorted(blocked.difference(due))], lambda *_: None, stop)
        if due:
            self.deletions.finish(due)

    def _reconcile_pages(
        self, wanted: list[str], listener: Callable[[int, int], None], stop: Callable[[], bool]
    ) -> None:
        for start in range(0, len(wanted), _DOCUMENTS_PER_PAGE):
            if stop():
                self.owed.update(wanted[start:])
                return
            self._reconcile_page(wanted[start : start + _DOCUMENTS_PER_PAGE])
            listener(min(start + _DOCUMENTS_PER_PAGE, len(wanted)), len(wanted))

    def _reconcile_page(self, ids: Sequence[str]) -> None:
        self.owed.difference_update(ids)
        self.disk.filters.refresh()
        waiting = list(ids)
        for _ in range(_MAX_ROUNDS):
            if not waiting:
                return
            if self.disk.is_stale:
                self.look()
            waiting = self._run_round(waiting)
        self.owed.update(waiting)

    def _run_round(self, ids: Sequence[str]) -> list[str]:
        """Look at both sides once and act; return the documents to look at again."""
        known = {doc_id: record for doc_id in ids if (record := self.records.file(doc_id))}
        views = self.reader.look(ids, known)
        again: list[str] = []
        for some in self._batches(ids, views):
            cases = self._with_content(self._decide_cases(some, views, known))
            if self.policy.is_dry:
                self._count_planned(cases)
            ready = [case for case in cases if self.deletions.may_act(case)]
            if not self.policy.is_dry:
                again += self._act(ready)
        return again

    def _batches(self, ids: Iterable[str], views: Mapping[str, View]) -> Iterator[list[str]]:
        """The documents in order, in batches that fit in memory."""
        some: list[str] = []
        total = 0
        for doc_id in ids:
            entry, file = views[doc_id].entry, self.disk.entry(doc_id)
            size = max(entry.size if entry else 0, file.size_bytes if file else 0)
            if some and total + size > _MAX_BATCH_BYTES:
                yield some
                some, total = [], 0
            some.append(doc_id)
            total += size
        yield some

    def _decide_cases(
        self, ids: Iterable[str], views: Mapping[str, View], known: Mapping[str, SyncedFile]
    ) -> list[Case]:
        cases = []
        for doc_id in ids:
            view, record = views[doc_id], known.get(doc_id)
            # Filters read the folders above a file, and a symlink hides their contents.
            below = self.disk.below_link(view.entry)
            if below is None and self._note_if_filtered(doc_id, view, record):
                continue
            if view.entry is not None and not view.entry.path.isascii():
                self._note_document(doc_id, view)
            trouble = view.trouble or below
            if trouble is not None:
                self._quarantine_unreadable(doc_id, view, trouble)
                continue
            file = self.disk.see(doc_id, record, view.entry.path if view.entry else None)
            if file is None:
                self.owed.add(doc_id)
                continue
            cases.append(self._with_action(Case(doc_id, view, file, record)))
        return cases

    def _with_action(self, case: Case) -> Case:
        state, local = case.view.state, case.file.local
        if case.doc_id in self.disk.case_locked and isinstance(state, Live):
            state = replace(state, path=local.path if isinstance(local, Present) else state.path)
        action = decide(local, state, case.known, is_read_only=self.is_read_only)
        is_new = case.known is None and isinstance(local, Absent) and isinstance(state, Conflicted)
        if is_new and case.view.entry is not None and not case.view.entry.is_deleted:
            action = Action.WRITE  # no local content that the winner could overwrite
        if self.is_sending_only:
            if action is Action.MERGE_OR_CONFLICT:
                action = Action.REPORT_CONFLICT
            elif action in _VAULT_WRITES:
                action = Action.NOTHING
        return replace(case, action=action)

    def _with_content(self, cases: list[Case]) -> list[Case]:
        """The cases, with the database's content where the decision needs it."""
        entries = {
            case.doc_id: case.view.entry
            for case in cases
            if case.action in _NEEDS_CONTENT and case.view.entry is not None
        }
        found = self.reader.contents(entries.values()) if entries else {}
        self.stats.add(chunks_fetched=sum(len(entry.children) for entry in entries.values()))
        complete = []
        for case in cases:
            content = found.get(case.doc_id)
            if isinstance(content, LivesyncUnreadable):
                self._quarantine_unreadable(case.doc_id, case.view, content)
                continue
            if content is not None and isinstance(case.view.state, Live):
                state = replace(case.view.state, content_hash=content_hash(content))
                view = replace(case.view, state=state)
                case = self._with_action(replace(case, view=view, content=content))
            elif content is not None:
                case = replace(case, content=content)
            complete.append(case)
        return complete

    def _count_planned(self, cases: Iterable[Case]) -> None:
        for case in cases:
            if case.action not in (Action.NOTHING, Action.RECORD):
                self.stats.planned[f"{case.action.value} {case.path}"] += 1

    def _act(self, cases: Sequence[Case]) -> list[str]:
        """Do what was decided; return the documents to look at again."""
        by_action: dict[Action, list[Case]] = {}
        for case in cases:
            if case.action not in _CONFLICT_ACTIONS:
                self._conflicts.may_be_over(case)
            by_action.setdefault(case.action, []).append(case)
        removals = by_action.pop(Action.TRASH, [])
        again = [case.doc_id for case in removals if self._act_on(case)]
        again += self.puller.write(by_action.pop(Action.WRITE, []))
        pushes = [case for action in _PUSHES for case in by_action.pop(action, [])]
        again += self._push(pushes, by_action.pop(Action.SOFT_DELETE, []))
        for some in by_action.values():
            again += [case.doc_id for case in some if self._act_on(case)]
        return again

    def _push(self, files: list[Case], deletions: list[Case]) -> list[str]:
        """Send files, then deletions, except that deletions freeing a needed path go first."""
        first = in_the_way_of(
            {case.doc_id: case.path for case in deletions}, [case.path for case in files]
        )
        again = self.pusher.push([case for case in deletions if case.doc_id in first])
        rest = [case for case in deletions if case.doc_id not in first]
        return again + self.pusher.push([*files, *rest])

    def _act_on(self, case: Case) -> bool:
        """Do one of the rarer actions; return whether to look again."""
        try:
            is_again = self._perform(case)
        except NoteChanged:
            self.disk.doubt(case.doc_id)
            return True
        except _FATAL_ERRORS:
            raise
        except ObsidianRagError as error:
            self.fail(case, error)
            return False
        self.release(case.doc_id)
        return is_again

    def _perform(self, case: Case) -> bool:
        match case.action:
            case Action.NOTHING:
                self._refresh_record(case)
            case Action.RECORD:
                return self._record(case)
            case Action.FORGET:
                self.records.forget(case.doc_id)
            case Action.REBASE | Action.WARN_TOMBSTONE:
                return self._rebase(case)
            case Action.RENAME_LOCAL:
                return self.puller.respell(case)
            case Action.TRASH:
                self.puller.trash(case)
            case Action.MERGE_OR_CONFLICT:
                return self._conflicts.merge_or_keep(case)
            case Action.REPORT_CONFLICT:
                return self._conflicts.report(case)
            case _:
                return True
        return False

    # -- records

    def _record(self, case: Case) -> bool:
        """Record that both sides agree; return whether a new spelling must still be sent."""
        local, entry = case.file.local, case.file.entry
        if isinstance(local, Absent) or entry is None:
            self.records.put(self.deleted_at(case, case.rev))
            return False
        self.records.put(self.synced(case, local.content_hash, entry))
        is_spelled = case.doc_id in self.disk.case_locked or local.path == normalise(case.path)
        return not is_spelled and not self.is_read_only

    def _rebase(self, case: Case) -> bool:
        assert case.known is not None
        self.records.put(replace(case.known, rev=case.rev or case.known.rev))
        if case.action is Action.WARN_TOMBSTONE:
            _log.warning("%s was removed from the database, but not deleted; it stays", case.path)
        return case.action is Action.REBASE

    def synced(self, case: Case, content: str, entry: FileEntry) -> SyncedFile:
        """The record of a file that matches its document."""
        assert case.view.entry is not None
        is_case_locked = case.doc_id in self.disk.case_locked
        told = normalise(entry.rel_path if is_case_locked else case.view.entry.path)
        path = in_form_of(told, entry.rel_path)
        return SyncedFile(case.doc_id, path, case.rev, content, entry.size_bytes, entry.mtime_ns)

    def sent(self, case: Case, rev: str) -> SyncedFile:
        """The record of a file that was sent to the database."""
        local, entry = case.file.local, case.file.entry
        assert isinstance(local, Present) and entry is not None
        return SyncedFile(
            case.doc_id, entry.rel_path, rev, local.content_hash, entry.size_bytes, entry.mtime_ns
        )

    def deleted_at(self, case: Case, rev: str) -> SyncedFile:
        """The record of a file that is gone on both sides."""
        return SyncedFile(case.doc_id, case.path, rev, None, 0, 0)

    def _refresh_record(self, case: Case) -> None:
        """Record the new metadata of a file that was only touched, so that it is not read again."""
        known, entry, local = case.known, case.file.entry, case.file.local
        if known is None or entry is None or not isinstance(local, Present):
            return
        is_same = local.content_hash == known.content_hash
        if is_same and not self.disk.is_as_recorded(case.doc_id, known):
            self.records.put(replace(known, size=entry.size_bytes, mtime_ns=entry.mtime_ns))

    # -- filters

    def _note_if_filtered(self, doc_id: str, view: View, record: SyncedFile | None) -> bool:
        """Whether the filters exclude a document, so neither side is touched; updates `ignored`."""
        path = view.entry.path if view.entry is not None else record.path if record else None
        if path is None or self.disk.filters.reason(path) is None:
            self.ignored.drop(doc_id)
            return False
        if view.entry is not None and not view.entry.is_deleted:
            self.ignored.put(doc_id, view.entry.path)
        else:
            self.ignored.drop(doc_id)
        self.release(doc_id)
        return True

    def _forget_filtered(self, known: dict[str, SyncedFile]) -> None:
        """Forget the records of files that the filters exclude now.

        Otherwise a change meanwhile could be taken for a deletion; when the filter is lifted,
        both sides are compared again.
        """
        filtered = [one for one in known.values() if self.disk.filters.reason(one.path) is not None]
        for file in filtered:
            known.pop(file.doc_id)
            if file.content_hash is not None:
                self.ignored.put(file.doc_id, file.path)
        if filtered and not self.policy.is_dry:
            self.ignored.save()  # before we forget: the feed will not list them again
            for file in filtered:
                self.records.forget(file.doc_id)

    def not_synced(self) -> tuple[LeftOut, ...]:
        """What is not synced, and why."""
        there = {
            path: why for path in self.ignored.paths if (why := self.disk.filters.reason(path))
        }
        return summarised(
            self.disk.left_out,
            there | self.disk.filtered,
            self.records.quarantined(),
            self.disk.unwelcome,
        )

    # -- errors

    def _quarantine_unreadable(self, doc_id: str, view: View, trouble: LivesyncUnreadable) -> None:
        path = view.entry.path if view.entry is not None else None
        # A document of another kind matters only if a file needs its id.
        is_ours = isinstance(view.state, Live | Conflicted) or self.disk.entry(doc_id) is not None
        if is_ours:
            rev = str((view.document or {}).get("_rev", ""))
            self._quarantine(doc_id, rev, path, trouble)
        else:
            self.release(doc_id)
        if is_missing(trouble):
            self.owed.add(doc_id)

    def fail(self, case: Case, error: ObsidianRagError) -> None:
        """Report an error about one document, and retry it later."""
        rev = str((case.view.document or {}).get("_rev", ""))
        self._quarantine(case.doc_id, rev, case.path, error)
        _log.warning("%s waits: %s", case.path, error.message)
        self.owed.add(case.doc_id)

    def wait_for_place(self, case: Case, error: ObsidianRagError) -> None:
        """Postpone a file whose path is taken; a pending deletion may free it."""
        if self._blocked is None:
            self.fail(case, error)
        else:
            self._blocked.add(case.doc_id)

    def _quarantine(
        self, doc_id: str, rev: str, path: str | None, trouble: ObsidianRagError
    ) -> None:
        self._quarantined_ids.add(doc_id)
        if not self.policy.is_dry:
            self.records.quarantine(doc_id, rev, path, trouble.code, trouble.message)

    def release(self, doc_id: str) -> None:
        """Take a document out of quarantine, if it is there."""
        if doc_id in self._quarantined_ids:
            self._quarantined_ids.discard(doc_id)
            self.records.release(doc_id)
