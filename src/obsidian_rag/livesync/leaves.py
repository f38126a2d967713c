"""Conflicting revisions of one document: unite them where that loses nothing.

Several devices may try at once, so the order does not matter: what is written is a child of the
winner, the second writer is refused and looks again, and an existing merge is recognised by its
content. Every version is copied into the trash before it is dropped.
"""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from obsidian_rag.errors import LivesyncUnreadable
from obsidian_rag.livesync.codec import Entry
from obsidian_rag.livesync.codec.path_ids import next_mtime
from obsidian_rag.livesync.decision import Conflicted
from obsidian_rag.livesync.merge import merge_json, merge_text, merges_as_json, merges_as_text

if TYPE_CHECKING:
    from obsidian_rag.livesync.disk import Case
    from obsidian_rag.livesync.reconcile import Reconciler

_log = logging.getLogger(__name__)
Revision = tuple[Entry, bytes]
# Servers rarely keep a common ancestor further back than this.
_MAX_ANCESTORS = 20


class Leaves:
    """Unites conflicting revisions, for a reconciler that may write."""

    def __init__(self, reconciler: "Reconciler") -> None:
        self._reconciler = reconciler

    def unite(self, case: "Case", state: Conflicted) -> bool:
        """Drop revisions equal to the winner, or merge one; return whether anything was done."""
        reader = self._reconciler.reader
        versions = {
            rev: found
            for rev in state.leaves
            if (found := reader.revision(case.doc_id, rev)) is not None
        }
        if state.winner not in versions:
            return False
        return self._drop_equal(case, state.winner, versions) or (
            self._reconciler.policy.may_merge and self._merge(case, state.winner, versions)
        )

    def _drop_equal(self, case: "Case", winner: str, versions: Mapping[str, Revision]) -> bool:
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
                self._keep_in_trash(versions[rev], "deleted on another device")
        if same:
            self._delete_revisions(case, same)
        return bool(same)

    def _merge(self, case: "Case", winner: str, versions: Mapping[str, Revision]) -> bool:
        entry, content = versions[winner]
        if entry.is_deleted:
            return False  # a deletion is never merged automatically
        line = self._reconciler.reader.history(case.doc_id, winner)
        for rev, rival in versions.items():
            if rev == winner or rival[0].is_deleted:
                continue
            base = self._common_ancestor(case.doc_id, line, rev)
            merged = _merge_revisions(base, versions[winner], rival) if base else None
            if merged is None or base is None:
                continue
            self._keep_in_trash(versions[winner], "merged")
            self._keep_in_trash(rival, "merged")
            is_there = self._is_merged(case.doc_id, line, base, rival, content)
            if not is_there and merged != content:
                # Must be later than both, or a device with one of them thinks it has this version.
                mtime_ms = next_mtime(max(entry.mtime_ms, rival[0].mtime_ms))
                if not self._write(case, entry, merged, mtime_ms):
                    return True  # another device was faster
                self._reconciler.stats.add(merged=1)
                _log.info("Merged: %s", case.path)
            self._delete_revisions(case, [rev])
            return True
        return False

    def _common_ancestor(self, doc_id: str, line: list[str], rival: str) -> Revision | None:
        """The nearest common ancestor that the server still has."""
        theirs = set(self._reconciler.reader.history(doc_id, rival))
        for rev in [rev for rev in line if rev in theirs][:_MAX_ANCESTORS]:
            found = self._reconciler.reader.revision(doc_id, rev)
            if found is not None:
                return None if found[0].is_deleted else found
        return None

    def _is_merged(
        self, doc_id: str, line: list[str], base: Revision, rival: Revision, content: bytes
    ) -> bool:
        """Whether the winner is already this merge, and only the rival was not dropped."""
        parent = self._reconciler.reader.revision(doc_id, line[1]) if len(line) > 1 else None
        return parent is not None and _merge_revisions(base, parent, rival) == content

    def _write(self, case: "Case", winner: Entry, merged: bytes, mtime_ms: int) -> bool:
        """Store a merge as a child of the winner; return whether the winner was still current."""
        reconciler = self._reconciler
        encoded = reconciler.member.codec.encode(
            winner.path,
            merged,
            ctime_ms=winner.ctime_ms,
            mtime_ms=mtime_ms,
            doc_id=case.doc_id,
        )
        row = reconciler.pusher.store(encoded, {"_rev": winner.rev})
        if row is None or row.is_refused:
            raise _refused_error(case)
        return row.rev is not None

    def _keep_in_trash(self, version: Revision, reason: str) -> None:
        entry, content = version
        self._reconciler.trash.keep(entry.path, content, entry.mtime_ms * 1_000_000, reason)

    def _delete_revisions(self, case: "Case", revs: list[str]) -> None:
        rows = self._reconciler.couch.bulk_docs(
            [{"_id": case.doc_id, "_rev": rev, "_deleted": True} for rev in revs]
        )
        # After a conflict, another device has dropped or continued the revision.
        if any(row.is_refused for row in rows):
            raise _refused_error(case)


def merged_bytes(
    path: str, base: bytes, ours: bytes, theirs: bytes, mtimes: tuple[int, int]
) -> bytes | None:
    """A lossless merge, or None."""
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


def _refused_error(case: "Case") -> LivesyncUnreadable:
    return LivesyncUnreadable(
        f"The server refuses to settle the conflict of {case.path!r}.", "Look at the server's log."
    )


def _merge_revisions(base: Revision, winner: Revision, rival: Revision) -> bytes | None:
    mtimes = (winner[0].mtime_ms, rival[0].mtime_ms)
    return merged_bytes(winner[0].path, base[1], winner[1], rival[1], mtimes)
