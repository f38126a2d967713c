"""A note that was changed in two places: merge what can be merged, keep both of what cannot."""

import hashlib
import json
import logging
import posixpath
import secrets
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from obsidian_rag.errors import LivesyncConflict, NoteChanged, NotFound
from obsidian_rag.livesync.decision import Conflicted, Live, Present
from obsidian_rag.livesync.entries import Entry
from obsidian_rag.livesync.merge import merge_json, merge_text, merges_as_json, merges_as_text
from obsidian_rag.store import Conflict, SyncedFile, now
from obsidian_rag.vault import content_hash, keep_copy, read_bytes, replace_file

if TYPE_CHECKING:
    from obsidian_rag.livesync.settling import Case, Settler

_log = logging.getLogger(__name__)


class Conflicts:
    """Settles what both sides changed, for one settler."""

    def __init__(self, settler: "Settler") -> None:
        self._settler = settler

    def merge_or_keep(self, case: "Case") -> bool:
        """Bring both versions together, or keep ours beside theirs; whether to look again."""
        settler, local, entry = self._settler, case.sight.local, case.sight.entry
        state, theirs = case.view.state, case.content
        assert isinstance(local, Present) and isinstance(state, Live)
        assert entry is not None and theirs is not None and case.view.entry is not None
        if self._is_merged_already(case, local, state):
            self._take_as_base(case, state, theirs)
            return True
        ours = settler.disk.bytes_of(case.sight)
        if ours is None:
            settler.disk.look()
            return True
        merged = self._merged(case, ours, theirs, case.view.entry)
        if merged is not None:
            settler.note_merge(case.doc_id, {"content": content_hash(merged), "rev": state.rev})
            self._keep_copy(case, ours)
            written = replace_file(settler.disk.root, entry.rel_path, local.content_hash, merged)
            settler.disk.put(case.doc_id, written)
            self._take_as_base(case, state, theirs)
            settler.stats.add(merged=1)
            _log.info("Merged: %s", case.path)
            return True
        settler.stats.add(conflicts=1)
        _log.warning("Conflict: %s was changed in two places; both are kept", case.path)
        if settler.manner.keeps_conflicts_as_files:
            return self._keep_as_file(case, ours, theirs)
        return self._keep_as_branch(case, ours)

    def report(self, case: "Case") -> bool:
        """A document with several living revisions: make them one if that loses nothing."""
        settler, state = self._settler, case.view.state
        if not isinstance(state, Conflicted):  # both changed, and we may not write
            settler.records.add_conflict(case.doc_id, case.path, (str(getattr(state, "rev", "")),))
            return False
        may_write = not settler.member.is_read_only and settler.manner.direction.value != "pull"
        if may_write and self._unite(case, state):
            return True
        settler.records.add_conflict(case.doc_id, case.path, state.leaves)
        return False

    def resolve(self, conflict: Conflict, keep: str) -> None:
        """Settle a conflict as the user says: keep one revision, and drop the others.

        Raises:
            LivesyncConflict: the document is in another state by now.
        """
        settler = self._settler
        if keep not in conflict.revs:
            raise LivesyncConflict(
                f"'{conflict.path}' has no version {keep}.", "Run `livesync resolve` to list them."
            )
        others = [rev for rev in conflict.revs if rev != keep]
        self._drop(conflict.doc_id, others)
        settler.records.settle_conflict(conflict.doc_id)

    def _merged(self, case: "Case", ours: bytes, theirs: bytes, entry: Entry) -> bytes | None:
        known = case.known
        if not self._settler.manner.may_merge or known is None or known.content_hash is None:
            return None
        base = self._settler.looker.revision(case.doc_id, known.rev)
        if base is None or content_hash(base[1]) != known.content_hash:
            return None
        assert case.sight.entry is not None
        mtimes = (case.sight.entry.mtime_ns // 1_000_000, entry.mtime_ms)
        return merged_bytes(case.path, base[1], ours, theirs, mtimes)

    def _is_merged_already(self, case: "Case", local: Present, state: Live) -> bool:
        """Whether a merge was written just before we died."""
        told = self._settler.records.get_fact(f"merge:{case.doc_id}")
        intent = json.loads(told) if told else {}
        return intent == {"content": local.content_hash, "rev": state.rev}

    def _take_as_base(self, case: "Case", state: Live, theirs: bytes) -> None:
        """From here on our file is an edit of theirs, to be pushed as a child of it."""
        settler = self._settler
        settler.records.put(
            SyncedFile(
                case.doc_id, state.path, state.rev, content_hash(theirs), len(theirs), mtime_ns=0
            )
        )
        settler.note_merge(case.doc_id, None)

    def _keep_copy(self, case: "Case", ours: bytes) -> None:
        """Our version before the merge, in the trash: a merge may be clean and still be wrong."""
        settler = self._settler
        kept = settler.manner.trash / f"{time.time_ns()}-{secrets.token_hex(4)}"
        settler.records.add_trash(case.path, str(kept), len(ours), now(), "merged")
        assert case.sight.entry is not None
        keep_copy(settler.disk.root, ours, case.sight.entry.mtime_ns, kept)

    def _keep_as_file(self, case: "Case", ours: bytes, theirs: bytes) -> bool:
        settler, local, entry = self._settler, case.sight.local, case.sight.entry
        assert isinstance(local, Present) and entry is not None and case.view.entry is not None
        kept_as = self._beside(entry.rel_path, ours, entry.mtime_ns)
        written = replace_file(
            settler.disk.root,
            entry.rel_path,
            local.content_hash,
            theirs,
            case.view.entry.mtime_ms * 1_000_000,
        )
        settler.disk.put(case.doc_id, written)
        state = case.view.state
        assert isinstance(state, Live)
        settler.records.put(
            SyncedFile(
                case.doc_id,
                state.path,
                state.rev,
                content_hash(theirs),
                written.size_bytes,
                written.mtime_ns,
            )
        )
        settler.records.add_conflict(case.doc_id, case.path, (state.rev,), kept_as)
        settler.owed.add(settler.member.codec.path_to_id(kept_as))
        settler.disk.look()
        return True

    def _beside(self, path: str, ours: bytes, mtime_ns: int) -> str:
        """Our version under a name made from its content: made twice, it is the same file."""
        stem, extension = posixpath.splitext(path)
        mark = hashlib.sha256(ours).hexdigest()[:8]
        kept_as = f"{stem} (conflict {mark}){extension}"
        try:
            replace_file(self._settler.disk.root, kept_as, None, ours, mtime_ns)
        except NoteChanged:
            try:
                present, _ = read_bytes(self._settler.disk.root, kept_as)
            except NotFound:
                raise NoteChanged(f"'{kept_as}' has just gone.", "Try again.") from None
            if present != ours:  # somebody edited the copy: that is theirs now
                kept_as = f"{stem} (conflict {mark} {secrets.token_hex(3)}){extension}"
                replace_file(self._settler.disk.root, kept_as, None, ours, mtime_ns)
        return kept_as

    def _keep_as_branch(self, case: "Case", ours: bytes) -> bool:
        """Store our version as a rival revision, as LiveSync's own clients do."""
        settler, local, entry = self._settler, case.sight.local, case.sight.entry
        assert isinstance(local, Present) and entry is not None
        encoded = settler.member.codec.encode(
            local.path,
            ours,
            ctime_ms=entry.mtime_ns // 1_000_000,
            mtime_ms=entry.mtime_ns // 1_000_000,
        )
        settler.couch.bulk_docs(encoded.chunks)
        ids = [hashlib.md5(ours + case.doc_id.encode(), usedforsecurity=False).hexdigest()]
        generation = 1
        if case.known is not None and case.known.content_hash is not None:
            number, _, parent = case.known.rev.partition("-")
            generation, ids = int(number) + 1, [*ids, parent]
        rev = f"{generation}-{ids[0]}"
        revisions = {"start": generation, "ids": ids}
        branch = encoded.entry | {"_rev": rev, "_revisions": revisions}
        settler.couch.bulk_docs([branch], new_edits=False)
        settler.records.put(
            SyncedFile(
                case.doc_id, local.path, rev, local.content_hash, entry.size_bytes, entry.mtime_ns
            )
        )
        return True

    def _unite(self, case: "Case", state: Conflicted) -> bool:
        """Equal leaves become one; whether something was done."""
        settler = self._settler
        contents = {}
        for rev in state.leaves:
            found = settler.looker.revision(case.doc_id, rev)
            if found is None or found[0].is_deleted:
                return False  # a deleted branch is never merged by itself
            contents[rev] = found
        winner = contents[state.winner][1]
        same = [rev for rev in state.leaves if rev != state.winner and contents[rev][1] == winner]
        return bool(same) and self._drop(case.doc_id, same)

    def _drop(self, doc_id: str, revs: Sequence[str]) -> bool:
        rows = self._settler.couch.bulk_docs(
            [{"_id": doc_id, "_rev": rev, "_deleted": True} for rev in revs]
        )
        return any(row.rev is not None for row in rows)


def merged_bytes(
    path: str, base: bytes, ours: bytes, theirs: bytes, mtimes: tuple[int, int]
) -> bytes | None:
    """A merge that loses nothing, or None."""
    try:
        old, left, right = (part.decode("utf-8") for part in (base, ours, theirs))
    except UnicodeDecodeError:
        return None
    if merges_as_text(path):
        merged = merge_text(old, left, right, *mtimes)
    elif merges_as_json(path):
        merged = merge_json(old, left, right)
    else:
        return None
    return None if merged is None else merged.encode("utf-8")
