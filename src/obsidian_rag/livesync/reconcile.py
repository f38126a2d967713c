"""Make documents and files agree: look at both sides, decide, act, and look again.

Every action is safe to lose and safe to repeat. Chunks are written before the entry that names
them, a record only after what it describes is durable, and a file is replaced only while it still
has the content that was decided on. What does not settle in a few rounds is owed and retried.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from obsidian_rag.errors import (
    LivesyncBrake,
    LivesyncPassphrase,
    LivesyncRefused,
    LivesyncUnreachable,
    LivesyncUnreadable,
    NoteChanged,
    ObsidianRagError,
)
from obsidian_rag.livesync.codec.path_ids import in_the_way_of, normalise
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
from obsidian_rag.livesync.remote_view import View, is_missing
from obsidian_rag.livesync.status import SyncReport, report_on
from obsidian_rag.livesync.sync import Case, Outcome, Sync
from obsidian_rag.livesync.transfer import PathTaken, pull, push, respell, trash
from obsidian_rag.store import LivesyncRecords, SyncedFile
from obsidian_rag.vault import content_hash, sweep

_log = logging.getLogger(__name__)
_IGNORED = "ignored"
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


class IgnoredDocuments:
    """Documents that the filters keep out of the vault, by their paths.

    They are stored because the feed lists each change only once: when a filter is lifted, these
    documents must be synced.
    """

    def __init__(self, records: LivesyncRecords) -> None:
        self._records = records
        self._paths: dict[str, str] = json.loads(records.get_fact(_IGNORED) or "{}")
        self._is_changed = False

    def put(self, doc_id: str, path: str) -> None:
        """Add a document that the filters exclude."""
        self._is_changed |= self._paths.get(doc_id) != path
        self._paths[doc_id] = path

    def drop(self, doc_id: str) -> None:
        """Remove a document that the filters allow, or that is gone."""
        self._is_changed |= self._paths.pop(doc_id, None) is not None

    def lifted(self, reason: Callable[[str], str | None]) -> list[str]:
        """The documents that no filter excludes any more."""
        return [doc_id for doc_id, path in self._paths.items() if reason(path) is None]

    def reasons(self, reason: Callable[[str], str | None]) -> dict[str, str]:
        """The paths that are still excluded, with the reasons."""
        return {path: why for path in self._paths.values() if (why := reason(path))}

    def save(self) -> None:
        """Store the documents if they changed."""
        if self._is_changed:
            self._records.put_fact(_IGNORED, json.dumps(self._paths) if self._paths else None)
            self._is_changed = False


class Reconciler:
    """Syncs documents, a page at a time; `owed` are those to try again."""

    def __init__(self, sync: Sync) -> None:
        self.sync = sync
        self.owed: set[str] = set()
        # What a dry run would do.
        self.planned: set[str] = set()
        self.ignored = IgnoredDocuments(sync.records)
        self.deletions = Deletions(sync)
        self._conflicts = Conflicts(sync)
        # Documents whose path a pending deletion may free; None once they no longer wait.
        self._blocked: set[str] | None = None
        self._is_live_by_id: dict[str, bool] = {}
        self._quarantined_ids = {one.doc_id for one in sync.records.quarantined()}

    def scan(self) -> list[str]:
        """Walk the vault; return the documents whose files are new, changed or gone.

        Raises:
            LivesyncBrake: so many files are gone that the user must decide.
        """
        sync, disk = self.sync, self.sync.disk
        walk = disk.scan(self._live_documents)
        if not sync.policy.is_dry and not sync.is_sending_only:
            sweep(disk.root, walk.leftovers)
        known = {file.doc_id: file for file in sync.records.files()}
        self._forget_filtered(known)
        live = [file for file in known.values() if file.content_hash is not None]
        missing = [file for file in live if disk.is_gone(file.doc_id, file.path)]
        is_there = walk.has_root and not walk.is_empty
        sent = 0 if sync.is_read_only else len(missing)
        brake(len(live), sent, is_there, sync.policy.max_deleted_percent)
        changed = self._changed(disk.ids(), known)
        # A file that a folder replaced must be deleted elsewhere before the folder arrives.
        first = in_the_way_of(
            {file.doc_id: file.path for file in missing},
            [entry.rel_path for doc_id in changed if (entry := disk.entry(doc_id))],
        )
        lifted = self.ignored.lifted(disk.filters.reason)
        rest = (one.doc_id for one in missing if one.doc_id not in first)
        return [*first, *changed, *rest, *lifted]

    def scan_paths(self, paths: Iterable[str]) -> list[str]:
        """Update files that were written; return the documents of those that are new or changed."""
        ids = self.sync.disk.scan_paths(paths)
        return self.scan() if ids is None else self._changed(ids, self.sync.records.files_of(ids))

    def report(self) -> SyncReport:
        """What is synced now, and what is not."""
        disk = self.sync.disk
        return report_on(disk, self.sync.records, self.ignored.reasons(disk.filters.reason))

    def _changed(self, ids: Iterable[str], known: Mapping[str, SyncedFile]) -> list[str]:
        is_recorded = self.sync.disk.is_as_recorded
        return [one for one in ids if not is_recorded(one, known.get(one), with_path=True)]

    def _live_documents(self, ids: Iterable[str]) -> set[str]:
        """Which of these documents the database has; each is looked up once."""
        asked = [doc_id for doc_id in ids if doc_id not in self._is_live_by_id]
        if asked:
            for doc_id, view in self.sync.reader.views(asked, {}).items():
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
        self.sync.disk.filters.refresh()
        waiting = list(ids)
        for _ in range(_MAX_ROUNDS):
            if not waiting:
                return
            if self.sync.disk.is_stale:
                self.scan()
            waiting = self._run_round(waiting)
        self.owed.update(waiting)

    def _run_round(self, ids: Sequence[str]) -> list[str]:
        """Look at both sides once and act; return the documents to look at again."""
        known = self.sync.records.files_of(ids)
        views = self.sync.reader.views(ids, known)
        again: list[str] = []
        for some in self._batches(ids, views):
            looks = (self._look(doc_id, views[doc_id], known.get(doc_id)) for doc_id in some)
            cases = self._with_content([self._decided(case) for case in looks if case is not None])
            ready = [case for case in cases if self.deletions.may_act(case)]
            if self.sync.policy.is_dry:
                self._plan(cases)
            else:
                again += self._act(ready)
        return again

    def _batches(self, ids: Iterable[str], views: Mapping[str, View]) -> Iterator[list[str]]:
        """The documents in order, in batches that fit in memory."""
        some: list[str] = []
        total = 0
        for doc_id in ids:
            entry, file = views[doc_id].entry, self.sync.disk.entry(doc_id)
            size = max(entry.size if entry else 0, file.size_bytes if file else 0)
            if some and total + size > _MAX_BATCH_BYTES:
                yield some
                some, total = [], 0
            some.append(doc_id)
            total += size
        yield some

    # -- look and decide

    def _look(self, doc_id: str, view: View, record: SyncedFile | None) -> Case | None:
        """A document with its file and record; None if there is nothing to decide now."""
        disk = self.sync.disk
        # Filters read the folders above a file, and a symlink hides their contents.
        below = disk.below_link(view.entry)
        if below is None and self._note_if_filtered(doc_id, view, record):
            return None
        if view.entry is not None and not view.entry.path.isascii():
            self._note_document(doc_id, view)
        trouble = view.trouble or below
        if trouble is not None:
            self._quarantine_unreadable(doc_id, view, trouble)
            return None
        file = disk.read(doc_id, record, view.entry.path if view.entry else None)
        if file is None:
            self.owed.add(doc_id)
            return None
        return Case(doc_id, view, file, record)

    def _decided(self, case: Case) -> Case:
        state, local = case.view.state, case.file.local
        if self.sync.is_case_locked(case) and isinstance(state, Live):
            state = replace(state, path=local.path if isinstance(local, Present) else state.path)
        action = decide(local, state, case.known, is_read_only=self.sync.is_read_only)
        is_new = case.known is None and isinstance(local, Absent) and isinstance(state, Conflicted)
        if is_new and case.view.entry is not None and not case.view.entry.is_deleted:
            action = Action.WRITE  # no local content that the winner could overwrite
        if self.sync.is_sending_only:
            if action is Action.MERGE_OR_CONFLICT:
                action = Action.REPORT_CONFLICT
            elif action in _VAULT_WRITES:
                action = Action.NOTHING
        return replace(case, action=action)

    def _with_content(self, cases: list[Case]) -> list[Case]:
        """The cases, with the database's content where the action needs it."""
        entries = {
            case.doc_id: case.view.entry
            for case in cases
            if case.action in _NEEDS_CONTENT and case.view.entry is not None
        }
        if not entries:
            return cases
        found = self.sync.reader.contents(entries.values())
        self.sync.state.count(chunks_fetched=sum(len(one.children) for one in entries.values()))
        complete = []
        for case in cases:
            content = found.get(case.doc_id)
            if isinstance(content, LivesyncUnreadable):
                self._quarantine_unreadable(case.doc_id, case.view, content)
            else:
                complete.append(case if content is None else self._with_fetched(case, content))
        return complete

    def _with_fetched(self, case: Case, content: bytes) -> Case:
        case = replace(case, content=content, content_hash=content_hash(content))
        state = case.view.state
        if not isinstance(state, Live) or isinstance(case.file.local, Absent):
            return case  # the decision does not depend on the content
        state = replace(state, content_hash=case.content_hash)
        return self._decided(replace(case, view=replace(case.view, state=state)))

    def _plan(self, cases: Iterable[Case]) -> None:
        for case in cases:
            if case.action not in (Action.NOTHING, Action.RECORD):
                self.planned.add(f"{case.action.value} {case.path}")

    # -- act

    def _act(self, cases: Sequence[Case]) -> list[str]:
        """Do what was decided; return the documents to look at again."""
        by_action: dict[Action, list[Case]] = {}
        for case in cases:
            if case.action not in _CONFLICT_ACTIONS:
                self._conflicts.drop_if_resolved(case)
            by_action.setdefault(case.action, []).append(case)
        removals = by_action.pop(Action.TRASH, [])
        again = [doc_id for case in removals for doc_id in self._act_on(case)]
        again += self._pull(by_action.pop(Action.WRITE, []))
        pushes = [case for action in _PUSHES for case in by_action.pop(action, [])]
        again += self._push(pushes, by_action.pop(Action.SOFT_DELETE, []))
        return again + [
            doc_id for some in by_action.values() for case in some for doc_id in self._act_on(case)
        ]

    def _pull(self, cases: Sequence[Case]) -> list[str]:
        outcome = pull(self.sync, cases)
        for case, record in outcome.synced:
            is_new = case.known is None or case.known.content_hash is None
            if is_new and record.content_hash is not None:
                self.deletions.note_arrival(record.content_hash)
        return self._finish(outcome)

    def _push(self, files: list[Case], deletions: list[Case]) -> list[str]:
        """Send files, then deletions, except that deletions freeing a needed path go first."""
        first = in_the_way_of(
            {case.doc_id: case.path for case in deletions}, [case.path for case in files]
        )
        early = [case for case in deletions if case.doc_id in first]
        late = [case for case in deletions if case.doc_id not in first]
        again = self._finish(push(self.sync, early))
        return again + self._finish(push(self.sync, [*files, *late]))

    def _finish(self, outcome: Outcome) -> list[str]:
        for case, error in outcome.failed:
            # A pending deletion may free the path.
            if isinstance(error, PathTaken) and self._blocked is not None:
                self._blocked.add(case.doc_id)
            else:
                self._fail(case, error)
        for case, _ in outcome.synced:
            self._release(case.doc_id)
        return outcome.again

    def _act_on(self, case: Case) -> list[str]:
        """Do one of the rarer actions; return the documents to look at again."""
        try:
            again = self._perform(case)
        except NoteChanged:
            self.sync.disk.doubt(case.doc_id)
            return [case.doc_id]
        except _FATAL_ERRORS:
            raise
        except ObsidianRagError as error:
            self._fail(case, error)
            return []
        self._release(case.doc_id)
        return again

    def _perform(self, case: Case) -> list[str]:
        is_again = False
        match case.action:
            case Action.NOTHING:
                self._refresh_record(case)
            case Action.RECORD:
                is_again = self._record(case)
            case Action.FORGET:
                self.sync.records.forget(case.doc_id)
            case Action.REBASE | Action.WARN_TOMBSTONE:
                is_again = self._rebase(case)
            case Action.RENAME_LOCAL:
                respell(self.sync, case)
                is_again = True
            case Action.TRASH:
                trash(self.sync, case, self.deletions.reason(case))
            case Action.MERGE_OR_CONFLICT:
                return self._conflicts.merge_or_keep(case)
            case Action.REPORT_CONFLICT:
                is_again = self._conflicts.report(case)
            case _:
                is_again = True
        return [case.doc_id] if is_again else []

    # -- records

    def _record(self, case: Case) -> bool:
        """Record that both sides agree; return whether a new spelling must still be sent."""
        sync, local, entry = self.sync, case.file.local, case.file.entry
        if isinstance(local, Absent) or entry is None:
            sync.records.put(case.deleted_as(case.rev))
            return False
        sync.records.put(sync.agreed(case, local.content_hash, entry))
        is_spelled = sync.is_case_locked(case) or local.path == normalise(case.path)
        return not is_spelled and not sync.is_read_only

    def _rebase(self, case: Case) -> bool:
        assert case.known is not None
        self.sync.records.put(replace(case.known, rev=case.rev or case.known.rev))
        if case.action is Action.WARN_TOMBSTONE:
            _log.warning("%s was removed from the database, but not deleted; it stays", case.path)
        return case.action is Action.REBASE

    def _refresh_record(self, case: Case) -> None:
        """Record the new metadata of a file that was only touched, so that it is not read again."""
        known, entry, local = case.known, case.file.entry, case.file.local
        if known is None or entry is None or not isinstance(local, Present):
            return
        is_same = local.content_hash == known.content_hash
        if is_same and not self.sync.disk.is_as_recorded(case.doc_id, known):
            record = replace(known, size=entry.size_bytes, mtime_ns=entry.mtime_ns)
            self.sync.records.put(record)

    # -- filters

    def _note_if_filtered(self, doc_id: str, view: View, record: SyncedFile | None) -> bool:
        """Whether the filters exclude a document, so neither side is touched; updates `ignored`."""
        path = view.entry.path if view.entry is not None else record.path if record else None
        if path is None or self.sync.disk.filters.reason(path) is None:
            self.ignored.drop(doc_id)
            return False
        if view.entry is not None and not view.entry.is_deleted:
            self.ignored.put(doc_id, view.entry.path)
        else:
            self.ignored.drop(doc_id)
        self._release(doc_id)
        return True

    def _forget_filtered(self, known: dict[str, SyncedFile]) -> None:
        """Forget the records of files that the filters exclude now.

        Otherwise a change meanwhile could be taken for a deletion; when the filter is lifted,
        both sides are compared again.
        """
        reason = self.sync.disk.filters.reason
        filtered = [one for one in known.values() if reason(one.path) is not None]
        for file in filtered:
            known.pop(file.doc_id)
            if file.content_hash is not None:
                self.ignored.put(file.doc_id, file.path)
        if filtered and not self.sync.policy.is_dry:
            self.ignored.save()  # before we forget: the feed will not list them again
            for file in filtered:
                self.sync.records.forget(file.doc_id)

    # -- errors

    def _quarantine_unreadable(self, doc_id: str, view: View, trouble: LivesyncUnreadable) -> None:
        path = view.entry.path if view.entry is not None else None
        # A document of another kind matters only if a file needs its id.
        has_file = self.sync.disk.entry(doc_id) is not None
        if has_file or isinstance(view.state, Live | Conflicted):
            self._quarantine(doc_id, view, path, trouble)
        else:
            self._release(doc_id)
        if is_missing(trouble):
            self.owed.add(doc_id)

    def _fail(self, case: Case, error: ObsidianRagError) -> None:
        """Report an error about one document, and retry it later."""
        self._quarantine(case.doc_id, case.view, case.path, error)
        _log.warning("%s waits: %s", case.path, error.message)
        self.owed.add(case.doc_id)

    def _quarantine(
        self, doc_id: str, view: View, path: str | None, error: ObsidianRagError
    ) -> None:
        self._quarantined_ids.add(doc_id)
        if not self.sync.policy.is_dry:
            rev = str((view.document or {}).get("_rev", ""))
            self.sync.records.quarantine(doc_id, rev, path, error.code, error.message)

    def _release(self, doc_id: str) -> None:
        """Take a document out of quarantine, if it is there."""
        if doc_id in self._quarantined_ids:
            self._quarantined_ids.discard(doc_id)
            self.sync.records.release(doc_id)
