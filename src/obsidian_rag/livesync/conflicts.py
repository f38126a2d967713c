"""A note that was changed in two places: merge it if that loses nothing, else keep both versions.

Two cases. Our file and the document both changed: `Conflicts.merge_or_keep`. Or devices left
several live revisions of the document: `_unite` drops equal ones and merges the others. Several
devices may try that at once, so the order does not matter: a merge is written as a child of the
winner, the second writer is refused and looks again, and an existing merge is recognised by its
content. Every version is copied into the trash before it is dropped.
"""

import hashlib
import json
import logging
import secrets
from collections.abc import Mapping, Sequence

from obsidian_rag.errors import LivesyncUnreadable, NoteChanged, NotFound
from obsidian_rag.livesync.codec import Entry
from obsidian_rag.livesync.codec.path_ids import in_form_of, next_mtime, normalise
from obsidian_rag.livesync.decision import Conflicted, Live, Present
from obsidian_rag.livesync.merge import merge_bytes
from obsidian_rag.livesync.sync import Case, Sync
from obsidian_rag.livesync.transfer import respell, store_version
from obsidian_rag.store import Conflict, SyncedFile, now
from obsidian_rag.vault import content_hash, name_beside, read_bytes, replace_file

_log = logging.getLogger(__name__)
# Servers rarely keep a common ancestor further back than this.
_MAX_ANCESTORS = 20

Revision = tuple[Entry, bytes]


class Conflicts:
    """Handles documents that were changed in two places, and lists those that wait for the user."""

    def __init__(self, sync: Sync) -> None:
        self._sync = sync
        self._waiting = {one.doc_id: one for one in sync.records.conflicts()}

    def merge_or_keep(self, case: Case) -> list[str]:
        """Merge our file with the document, or keep both; return the documents to look at again."""
        sync, state, theirs = self._sync, case.view.state, case.content
        local, entry = case.present
        assert isinstance(state, Live) and theirs is not None and case.view.entry is not None
        again = [case.doc_id]
        if _is_respelled_elsewhere(sync, case, local, state):
            respell(sync, case)
            return again
        if _is_merged_already(sync, case, local, state):
            _record_as_base(sync, case, state, theirs)
            return again
        ours = sync.disk.bytes_of(case.doc_id, case.file)
        if ours is None:
            return again
        merged = _merge(sync, case, ours, theirs, case.view.entry)
        if merged is not None:
            _note_merge(sync, case, {"content": content_hash(merged), "rev": state.rev})
            # A clean merge may still be wrong: keep our version.
            sync.trash.keep(case.path, ours, entry.mtime_ns, "merged")
            written = replace_file(sync.disk.root, entry.rel_path, local.content_hash, merged)
            sync.disk.put(case.doc_id, written)
            _record_as_base(sync, case, state, theirs)
            sync.state.count(merged=1)
            _log.info("Merged: %s", case.path)
            return again
        sync.state.last_change_at = now()
        _log.warning("Conflict: %s was changed in two places; both are kept", case.path)
        if sync.policy.keeps_conflicts_as_files:
            return [*again, self._keep_as_file(case, ours, theirs)]
        _keep_as_branch(sync, case, ours)
        return again

    def report(self, case: Case) -> bool:
        """Unite a document's live revisions if that loses nothing, else report the conflict.

        Returns whether to look at the document again.
        """
        state = case.view.state
        if not isinstance(state, Conflicted):  # both sides changed, and we may not write
            self._add(case, (case.rev,))
            return False
        if not self._sync.is_read_only and _unite(self._sync, case, state):
            return True
        self._add(case, state.leaves)
        return False

    def drop_if_resolved(self, case: Case) -> None:
        """Drop a waiting conflict that was resolved elsewhere."""
        waiting = self._waiting.get(case.doc_id)
        if waiting is None or isinstance(case.view.state, Conflicted):
            return
        if waiting.kept_as is not None:
            # It lasts until the user removes our version beside the note.
            kept_id = self._sync.member.codec.path_to_id(waiting.kept_as)
            if not self._sync.disk.is_gone(kept_id, waiting.kept_as):
                return
        self._sync.records.settle_conflict(case.doc_id)
        del self._waiting[case.doc_id]

    def _add(self, case: Case, revs: tuple[str, ...], kept_as: str | None = None) -> None:
        self._sync.records.add_conflict(case.doc_id, case.path, revs, kept_as)
        before = self._waiting.get(case.doc_id)
        kept_as = kept_as or (before.kept_as if before else None)
        self._waiting[case.doc_id] = Conflict(case.doc_id, case.path, revs, kept_as, "")

    def _keep_as_file(self, case: Case, ours: bytes, theirs: bytes) -> str:
        """Keep our version beside the note, and theirs in it; return the new file's document."""
        sync = self._sync
        local, entry = case.present
        assert case.view.entry is not None and case.content_hash is not None
        kept_as = _write_beside(sync, entry.rel_path, ours, entry.mtime_ns)
        # Record the conflict first: from here on the two files belong together.
        self._add(case, (case.rev,), kept_as)
        mtime_ns = case.view.entry.mtime_ms * 1_000_000
        written = replace_file(sync.disk.root, entry.rel_path, local.content_hash, theirs, mtime_ns)
        sync.disk.put(case.doc_id, written)
        sync.records.put(sync.agreed(case, case.content_hash, written))
        sync.disk.is_stale = True
        return sync.member.codec.path_to_id(kept_as)


# -- our file and the document


def _merge(sync: Sync, case: Case, ours: bytes, theirs: bytes, entry: Entry) -> bytes | None:
    known = case.known
    if not sync.policy.may_merge or known is None or known.content_hash is None:
        return None
    base = sync.reader.revision(case.doc_id, known.rev)
    if base is None or content_hash(base[1]) != known.content_hash:
        return None
    _, file = case.present
    return merge_bytes(
        case.path, base[1], ours, theirs, (file.mtime_ns // 1_000_000, entry.mtime_ms)
    )


def _is_respelled_elsewhere(sync: Sync, case: Case, local: Present, state: Live) -> bool:
    """Whether the case of the path was changed elsewhere, and not here."""
    is_ours = case.known is not None and normalise(case.known.path) == state.path
    return local.path != state.path and not is_ours and not sync.is_case_locked(case)


def _is_merged_already(sync: Sync, case: Case, local: Present, state: Live) -> bool:
    """Whether a merge was written just before a crash."""
    stored = sync.records.get_fact(f"merge:{case.doc_id}")
    intent = json.loads(stored) if stored else {}
    return intent == {"content": local.content_hash, "rev": state.rev}


def _record_as_base(sync: Sync, case: Case, state: Live, theirs: bytes) -> None:
    """Record their version as the base, so that our file is pushed as its child."""
    assert case.content_hash is not None
    path = in_form_of(state.path, case.present[1].rel_path)
    sync.records.put(
        SyncedFile(case.doc_id, path, state.rev, case.content_hash, len(theirs), mtime_ns=0)
    )
    _note_merge(sync, case, None)


def _note_merge(sync: Sync, case: Case, intent: dict[str, str] | None) -> None:
    """Store a merge before it is written, so that a crash does not merge twice."""
    stored = json.dumps(intent) if intent else None
    sync.records.put_fact(f"merge:{case.doc_id}", stored)


def _write_beside(sync: Sync, path: str, ours: bytes, mtime_ns: int) -> str:
    """Write our version under a name derived from its content, so that a repeat is harmless."""
    label = f"conflict {hashlib.sha256(ours).hexdigest()[:8]}"
    kept_as = name_beside(path, label)
    # The case of its name may have been changed since.
    before = sync.disk.entry(sync.member.codec.path_to_id(kept_as))
    kept_as = kept_as if before is None else before.rel_path
    try:
        replace_file(sync.disk.root, kept_as, None, ours, mtime_ns)
    except NoteChanged:
        try:
            present, _ = read_bytes(sync.disk.root, kept_as)
        except NotFound:
            raise NoteChanged(f"'{kept_as}' has just gone.", "Try again.") from None
        if present != ours:  # the copy was edited: leave it alone
            kept_as = name_beside(path, f"{label} {secrets.token_hex(3)}")
            replace_file(sync.disk.root, kept_as, None, ours, mtime_ns)
    return kept_as


def _keep_as_branch(sync: Sync, case: Case, ours: bytes) -> None:
    """Store our version as a conflicting revision, as LiveSync's own clients do."""
    local, entry = case.present
    time_ms = max(entry.mtime_ns // 1_000_000, 0)
    encoded = sync.member.codec.encode(
        local.path, ours, ctime_ms=time_ms, mtime_ms=time_ms, doc_id=case.doc_id
    )
    ids = [hashlib.md5(ours + case.doc_id.encode(), usedforsecurity=False).hexdigest()]
    generation = 1
    if case.known is not None and case.known.content_hash is not None:
        number, _, parent = case.known.rev.partition("-")
        generation, ids = int(number) + 1, [*ids, parent]
    rev = f"{generation}-{ids[0]}"
    branch = {"_rev": rev, "_revisions": {"start": generation, "ids": ids}}
    row = store_version(sync, encoded, branch, new_edits=False)
    if row is None or row.rev is None:
        raise LivesyncUnreadable(
            f"The server refuses our version of {case.path!r}.", "Look at the server's log."
        )
    sync.records.put(case.sent_as(rev))


# -- several live revisions of a document


def _unite(sync: Sync, case: Case, state: Conflicted) -> bool:
    """Drop revisions equal to the winner, or merge one; return whether anything was done."""
    versions = {
        rev: found
        for rev in state.leaves
        if (found := sync.reader.revision(case.doc_id, rev)) is not None
    }
    if state.winner not in versions:
        return False
    return _drop_equal(sync, case, state.winner, versions) or (
        sync.policy.may_merge and _merge_leaves(sync, case, state.winner, versions)
    )


def _drop_equal(sync: Sync, case: Case, winner: str, versions: Mapping[str, Revision]) -> bool:
    entry, content = versions[winner]
    same = [
        rev
        for rev, (rival, theirs) in versions.items()
        if rev != winner
        and rival.is_deleted == entry.is_deleted
        and (theirs == content or entry.is_deleted)
    ]
    for rev in same:
        if versions[rev][1] != content:  # both are deleted, and were not the same
            _keep_in_trash(sync, versions[rev], "deleted on another device")
    if same:
        _delete_revisions(sync, case, same)
    return bool(same)


def _merge_leaves(sync: Sync, case: Case, winner: str, versions: Mapping[str, Revision]) -> bool:
    entry, content = versions[winner]
    if entry.is_deleted:
        return False  # a deletion is never merged automatically
    line = sync.reader.history(case.doc_id, winner)
    for rev, rival in versions.items():
        if rev == winner or rival[0].is_deleted:
            continue
        base = _common_ancestor(sync, case.doc_id, line, rev)
        merged = _merge_revisions(base, versions[winner], rival) if base else None
        if merged is None or base is None:
            continue
        _keep_in_trash(sync, versions[winner], "merged")
        _keep_in_trash(sync, rival, "merged")
        is_there = _is_merge(sync, case.doc_id, line, base, rival, content)
        if not is_there and merged != content:
            # Must be later than both, or a device with one of them thinks it has this version.
            mtime_ms = next_mtime(max(entry.mtime_ms, rival[0].mtime_ms))
            if not _store_merge(sync, case, entry, merged, mtime_ms):
                return True  # another device was faster
            sync.state.count(merged=1)
            _log.info("Merged: %s", case.path)
        _delete_revisions(sync, case, [rev])
        return True
    return False


def _common_ancestor(sync: Sync, doc_id: str, line: list[str], rival: str) -> Revision | None:
    """The nearest common ancestor that the server still has."""
    theirs = set(sync.reader.history(doc_id, rival))
    for rev in [rev for rev in line if rev in theirs][:_MAX_ANCESTORS]:
        found = sync.reader.revision(doc_id, rev)
        if found is not None:
            return None if found[0].is_deleted else found
    return None


def _is_merge(
    sync: Sync, doc_id: str, line: list[str], base: Revision, rival: Revision, content: bytes
) -> bool:
    """Whether the winner is already this merge, and only the rival was not dropped."""
    parent = sync.reader.revision(doc_id, line[1]) if len(line) > 1 else None
    return parent is not None and _merge_revisions(base, parent, rival) == content


def _merge_revisions(base: Revision, winner: Revision, rival: Revision) -> bytes | None:
    mtimes = (winner[0].mtime_ms, rival[0].mtime_ms)
    return merge_bytes(winner[0].path, base[1], winner[1], rival[1], mtimes)


def _store_merge(sync: Sync, case: Case, winner: Entry, merged: bytes, mtime_ms: int) -> bool:
    """Store a merge as a child of the winner; return whether the winner was still current."""
    encoded = sync.member.codec.encode(
        winner.path, merged, ctime_ms=winner.ctime_ms, mtime_ms=mtime_ms, doc_id=case.doc_id
    )
    row = store_version(sync, encoded, {"_rev": winner.rev})
    if row is None or row.is_refused:
        raise _refused_error(case)
    return row.rev is not None


def _keep_in_trash(sync: Sync, version: Revision, reason: str) -> None:
    entry, content = version
    sync.trash.keep(entry.path, content, entry.mtime_ms * 1_000_000, reason)


def _delete_revisions(sync: Sync, case: Case, revs: Sequence[str]) -> None:
    rows = sync.couch.bulk_docs(
        [{"_id": case.doc_id, "_rev": rev, "_deleted": True} for rev in revs]
    )
    # After a conflict, another device has dropped or continued the revision.
    if any(row.is_refused for row in rows):
        raise _refused_error(case)


def _refused_error(case: Case) -> LivesyncUnreadable:
    return LivesyncUnreadable(
        f"The server refuses to resolve the conflict of {case.path!r}.", "Look at the server's log."
    )
