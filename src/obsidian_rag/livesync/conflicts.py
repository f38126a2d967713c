"""A note that was changed in two places: merge it if possible, else keep both versions."""

import hashlib
import json
import logging
import secrets
from typing import TYPE_CHECKING

from obsidian_rag.errors import LivesyncUnreadable, NoteChanged, NotFound
from obsidian_rag.livesync.codec import Entry
from obsidian_rag.livesync.codec.path_ids import in_form_of, normalise
from obsidian_rag.livesync.decision import Conflicted, Live, Present
from obsidian_rag.livesync.leaves import Leaves, merged_bytes
from obsidian_rag.store import Conflict, SyncedFile
from obsidian_rag.vault import content_hash, name_beside, read_bytes, replace_file

if TYPE_CHECKING:
    from obsidian_rag.livesync.disk import Case
    from obsidian_rag.livesync.reconcile import Reconciler

_log = logging.getLogger(__name__)


class Conflicts:
    """Handles documents that both sides changed, for one reconciler."""

    def __init__(self, reconciler: "Reconciler") -> None:
        self._reconciler = reconciler
        self._leaves = Leaves(reconciler)
        self._waiting = {one.doc_id: one for one in reconciler.records.conflicts()}

    def merge_or_keep(self, case: "Case") -> bool:
        """Merge both versions, or keep ours beside theirs; return whether to look again."""
        reconciler, local, entry = self._reconciler, case.file.local, case.file.entry
        state, theirs = case.view.state, case.content
        assert isinstance(local, Present) and isinstance(state, Live)
        assert entry is not None and theirs is not None and case.view.entry is not None
        if self._is_respelled_elsewhere(case, local, state):
            return reconciler.puller.respell(case)
        if self._is_merged_already(case, local, state):
            self._record_as_base(case, state, theirs)
            return True
        ours = reconciler.disk.bytes_of(case.doc_id, case.file)
        if ours is None:
            return True
        merged = self._merge(case, ours, theirs, case.view.entry)
        if merged is not None:
            self._note_merge(case, {"content": content_hash(merged), "rev": state.rev})
            # A clean merge may still be wrong: keep our version.
            reconciler.trash.keep(case.path, ours, entry.mtime_ns, "merged")
            written = replace_file(reconciler.disk.root, entry.rel_path, local.content_hash, merged)
            reconciler.disk.put(case.doc_id, written)
            self._record_as_base(case, state, theirs)
            reconciler.stats.add(merged=1)
            _log.info("Merged: %s", case.path)
            return True
        reconciler.stats.add(conflicts=1)
        _log.warning("Conflict: %s was changed in two places; both are kept", case.path)
        if reconciler.policy.keeps_conflicts_as_files:
            return self._keep_as_file(case, ours, theirs)
        return self._keep_as_branch(case, ours)

    def report(self, case: "Case") -> bool:
        """Unite a document's live revisions if that loses nothing, else report the conflict."""
        reconciler, state = self._reconciler, case.view.state
        if not isinstance(state, Conflicted):  # both sides changed, and we may not write
            self._add(case, (case.rev,))
            return False
        if not reconciler.is_read_only and self._leaves.unite(case, state):
            return True
        self._add(case, state.leaves)
        return False

    def may_be_over(self, case: "Case") -> None:
        """Drop a waiting conflict if it was resolved elsewhere."""
        waiting = self._waiting.get(case.doc_id)
        if waiting is None or isinstance(case.view.state, Conflicted):
            return
        reconciler = self._reconciler
        if waiting.kept_as is not None:
            # It lasts until the user removes our version beside the note.
            kept_id = reconciler.member.codec.path_to_id(waiting.kept_as)
            if not reconciler.disk.is_gone(kept_id, waiting.kept_as):
                return
        reconciler.records.settle_conflict(case.doc_id)
        del self._waiting[case.doc_id]

    def _add(self, case: "Case", revs: tuple[str, ...], kept_as: str | None = None) -> None:
        self._reconciler.records.add_conflict(case.doc_id, case.path, revs, kept_as)
        before = self._waiting.get(case.doc_id)
        kept_as = kept_as or (before.kept_as if before else None)
        self._waiting[case.doc_id] = Conflict(case.doc_id, case.path, revs, kept_as, "")

    def _merge(self, case: "Case", ours: bytes, theirs: bytes, entry: Entry) -> bytes | None:
        known = case.known
        if not self._reconciler.policy.may_merge or known is None or known.content_hash is None:
            return None
        base = self._reconciler.reader.revision(case.doc_id, known.rev)
        if base is None or content_hash(base[1]) != known.content_hash:
            return None
        assert case.file.entry is not None
        mtimes = (case.file.entry.mtime_ns // 1_000_000, entry.mtime_ms)
        return merged_bytes(case.path, base[1], ours, theirs, mtimes)

    def _is_respelled_elsewhere(self, case: "Case", local: Present, state: Live) -> bool:
        """Whether the case of the path was changed elsewhere, and not here."""
        is_ours = case.known is not None and normalise(case.known.path) == state.path
        is_case_locked = case.doc_id in self._reconciler.disk.case_locked
        return local.path != state.path and not is_ours and not is_case_locked

    def _is_merged_already(self, case: "Case", local: Present, state: Live) -> bool:
        """Whether a merge was written just before a crash."""
        stored = self._reconciler.records.get_fact(f"merge:{case.doc_id}")
        intent = json.loads(stored) if stored else {}
        return intent == {"content": local.content_hash, "rev": state.rev}

    def _record_as_base(self, case: "Case", state: Live, theirs: bytes) -> None:
        """Record their version as the base, so that our file is pushed as its child."""
        assert case.file.entry is not None
        path = in_form_of(state.path, case.file.entry.rel_path)
        self._reconciler.records.put(
            SyncedFile(case.doc_id, path, state.rev, content_hash(theirs), len(theirs), mtime_ns=0)
        )
        self._note_merge(case, None)

    def _note_merge(self, case: "Case", intent: dict[str, str] | None) -> None:
        """Store a merge before it is written, so that a crash does not merge twice."""
        stored = json.dumps(intent) if intent else None
        self._reconciler.records.put_fact(f"merge:{case.doc_id}", stored)

    def _keep_as_file(self, case: "Case", ours: bytes, theirs: bytes) -> bool:
        reconciler, local, entry = self._reconciler, case.file.local, case.file.entry
        assert isinstance(local, Present) and entry is not None and case.view.entry is not None
        kept_as = self._write_beside(entry.rel_path, ours, entry.mtime_ns)
        # Record the conflict first: from here on the two files belong together.
        self._add(case, (case.rev,), kept_as)
        mtime_ns = case.view.entry.mtime_ms * 1_000_000
        written = replace_file(
            reconciler.disk.root, entry.rel_path, local.content_hash, theirs, mtime_ns
        )
        reconciler.disk.put(case.doc_id, written)
        reconciler.records.put(reconciler.synced(case, content_hash(theirs), written))
        reconciler.owed.add(reconciler.member.codec.path_to_id(kept_as))
        reconciler.disk.is_stale = True
        return True

    def _write_beside(self, path: str, ours: bytes, mtime_ns: int) -> str:
        """Write our version under a name derived from its content, so that a repeat is harmless."""
        label = f"conflict {hashlib.sha256(ours).hexdigest()[:8]}"
        kept_as = name_beside(path, label)
        disk = self._reconciler.disk
        # The case of its name may have been changed since.
        before = disk.entry(self._reconciler.member.codec.path_to_id(kept_as))
        kept_as = kept_as if before is None else before.rel_path
        try:
            replace_file(disk.root, kept_as, None, ours, mtime_ns)
        except NoteChanged:
            try:
                present, _ = read_bytes(disk.root, kept_as)
            except NotFound:
                raise NoteChanged(f"'{kept_as}' has just gone.", "Try again.") from None
            if present != ours:  # the copy was edited: leave it alone
                kept_as = name_beside(path, f"{label} {secrets.token_hex(3)}")
                replace_file(disk.root, kept_as, None, ours, mtime_ns)
        return kept_as

    def _keep_as_branch(self, case: "Case", ours: bytes) -> bool:
        """Store our version as a conflicting revision, as LiveSync's own clients do."""
        reconciler, local, entry = self._reconciler, case.file.local, case.file.entry
        assert isinstance(local, Present) and entry is not None
        time_ms = max(entry.mtime_ns // 1_000_000, 0)
        encoded = reconciler.member.codec.encode(
            local.path, ours, ctime_ms=time_ms, mtime_ms=time_ms, doc_id=case.doc_id
        )
        ids = [hashlib.md5(ours + case.doc_id.encode(), usedforsecurity=False).hexdigest()]
        generation = 1
        if case.known is not None and case.known.content_hash is not None:
            number, _, parent = case.known.rev.partition("-")
            generation, ids = int(number) + 1, [*ids, parent]
        rev = f"{generation}-{ids[0]}"
        branch = {"_rev": rev, "_revisions": {"start": generation, "ids": ids}}
        row = reconciler.pusher.store(encoded, branch, new_edits=False)
        if row is None or row.rev is None:
            raise LivesyncUnreadable(
                f"The server refuses our version of {case.path!r}.", "Look at the server's log."
            )
        reconciler.records.put(reconciler.sent(case, rev))
        return True
