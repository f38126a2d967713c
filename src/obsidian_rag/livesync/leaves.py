"""Rival revisions of one document: make them one where that loses nothing.

Several devices may try at the same moment, so nothing depends on who is first: what is written is
a child of the winner, whoever comes second is refused and looks again, and a merge that is there
already is recognised by its content. Every version is copied into the trash before it is dropped.
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
    from obsidian_rag.livesync.case import Case
    from obsidian_rag.livesync.reconcile import Reconciler

_log = logging.getLogger(__name__)
Revision = tuple[Entry, bytes]
# A common ancestor further back than this is hardly kept by a server.
_MOST_ANCESTORS = 20


class Leaves:
    """Unites rivals, for one reconciler that may write."""

    def __init__(self, reconciler: "Reconciler") -> None:
        self._reconciler = reconciler

    def unite(self, case: "Case", state: Conflicted) -> bool:
        """Drop rivals that say the same as the winner, or merge one; whether something was done."""
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
                self._keep(versions[rev], "deleted on another device")
        if same:
            self._drop(case, same)
        return bool(same)

    def _merge(self, case: "Case", winner: str, versions: Mapping[str, Revision]) -> bool:
        entry, content = versions[winner]
        if entry.is_deleted:
            return False  # a deletion is never merged by itself
        line = self._reconciler.reader.history(case.doc_id, winner)
        for rev, rival in versions.items():
            if rev == winner or rival[0].is_deleted:
                continue
            base = self._base(case.doc_id, line, rev)
            merged = _merged(base, versions[winner], rival) if base else None
            if merged is None or base is None:
                continue
            self._keep(versions[winner], "merged")
            self._keep(rival, "merged")
            is_there = self._is_merged(case.doc_id, line, base, rival, content)
            if not is_there and merged != content:
                # Later than both: or a device with one of them takes its file for this one.
                mtime_ms = next_mtime(max(entry.mtime_ms, rival[0].mtime_ms))
                if not self._write(case, entry, merged, mtime_ms):
                    return True  # somebody was faster
                self._reconciler.stats.add(merged=1)
                _log.info("Merged: %s", case.path)
            self._drop(case, [rev])
            return True
        return False

    def _base(self, doc_id: str, line: list[str], rival: str) -> Revision | None:
        """The nearest common ancestor that the server still has."""
        theirs = set(self._reconciler.reader.history(doc_id, rival))
        for rev in [rev for rev in line if rev in theirs][:_MOST_ANCESTORS]:
            found = self._reconciler.reader.revision(doc_id, rev)
            if found is not None:
                return None if found[0].is_deleted else found
        return None

    def _is_merged(
        self, doc_id: str, line: list[str], base: Revision, rival: Revision, content: bytes
    ) -> bool:
        """Whether the winner is this merge already, and only the rival was left standing."""
        parent = self._reconciler.reader.revision(doc_id, line[1]) if len(line) > 1 else None
        return parent is not None and _merged(base, parent, rival) == content

    def _write(self, case: "Case", winner: Entry, merged: bytes, mtime_ms: int) -> bool:
        """Store a merge as a child of the winner; whether the winner was still there."""
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
            raise _refused(case)
        return row.rev is not None

    def _keep(self, version: Revision, reason: str) -> None:
        entry, content = version
        self._reconciler.trash.keep(entry.path, content, entry.mtime_ms * 1_000_000, reason)

    def _drop(self, case: "Case", revs: list[str]) -> None:
        rows = self._reconciler.couch.bulk_docs(
            [{"_id": case.doc_id, "_rev": rev, "_deleted": True} for rev in revs]
        )
        # In a conflict, somebody else has dropped or continued it.
        if any(row.is_refused for row in rows):
            raise _refused(case)


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


def _refused(case: "Case") -> LivesyncUnreadable:
    return LivesyncUnreadable(
        f"The server refuses to settle the conflict of {case.path!r}.", "Look at the server's log."
    )


def _merged(base: Revision, winner: Revision, rival: Revision) -> bytes | None:
    mtimes = (winner[0].mtime_ms, rival[0].mtime_ms)
    return merged_bytes(winner[0].path, base[1], winner[1], rival[1], mtimes)
