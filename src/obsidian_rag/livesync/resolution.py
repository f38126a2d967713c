"""Resolve a conflict by the user's choice: one version stays, the others go to trash or beside it.

A node may be running at the same time: it treats what changes here, in the vault or the database,
like any other change. A version is dropped only when a copy of it is safe.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from obsidian_rag.errors import (
    InvalidArgument,
    LivesyncConflict,
    LivesyncUnreadable,
    NotFound,
    ReadOnly,
)
from obsidian_rag.livesync.codec import Codec, Entry
from obsidian_rag.livesync.couchdb import Couch
from obsidian_rag.livesync.disk import Trash
from obsidian_rag.livesync.remote_view import RemoteReader
from obsidian_rag.store import Conflict
from obsidian_rag.vault import (
    content_hash,
    create_beside,
    read_bytes,
    replace_file,
)

_LIST = "`obsidian-rag livesync resolve` lists the versions."
_LABEL_DIGITS = 8
_SETTLED = "conflict settled"


class Keep(StrEnum):
    """Which version stays, if no revision is named."""

    OURS = "ours"
    THEIRS = "theirs"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Resolved:
    """The outcome of a conflict; `kept_as` are the files beside the note."""

    path: str
    kept: str
    kept_as: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Version:
    """One side of a conflict; no content means that the note is deleted there."""

    is_ours: bool
    content: bytes | None
    mtime_ms: int | None = None
    rev: str | None = None


@dataclass(frozen=True, slots=True)
class Resolver:
    """Resolves conflicts between one database and one vault."""

    trash: Trash
    couch: Couch
    codec: Codec
    is_read_only: bool = False

    def resolve(self, conflict: Conflict, keep: str) -> Resolved:
        """Resolve one conflict; `keep` is a value of `Keep` or a revision.

        Raises:
            LivesyncConflict: it has changed meanwhile.
            InvalidArgument: there is no such version.
            LivesyncUnreadable: a version cannot be read, so it cannot be backed up.
        """
        leaves = self._leaves(conflict.doc_id)
        if len(leaves) > 1:
            done = self._resolve_branches(conflict, leaves, keep)
        elif conflict.kept_as is not None:
            done = self._resolve_files(conflict, conflict.kept_as, keep)
        elif leaves:
            done = self._resolve_unsent(conflict, leaves[0], keep)
        else:
            done = Resolved(conflict.path, keep)
        self.trash.records.settle_conflict(conflict.doc_id)
        return done

    def versions(self, conflict: Conflict) -> tuple[Version, ...]:
        """Every side of a conflict, ours first; nothing is changed."""
        leaves = self._leaves(conflict.doc_id)
        if len(leaves) > 1:
            found = {rev: self._version(conflict, rev) for rev in leaves}
            ours = self._ours(conflict, found)
            sides = (_to_version(rev, *one, is_ours=rev == ours) for rev, one in found.items())
            return tuple(sorted(sides, key=lambda version: not version.is_ours))
        if conflict.kept_as is not None:
            return (
                self._read_version(conflict.kept_as, is_ours=True),
                self._read_version(conflict.path, is_ours=False),
            )
        theirs = (_to_version(rev, *self._version(conflict, rev), is_ours=False) for rev in leaves)
        return (self._read_version(conflict.path, is_ours=True), *theirs)

    def merge(self, conflict: Conflict, content: bytes) -> Resolved:
        """Resolve one conflict with the user's own text; every version goes to the trash."""
        if self.is_read_only:
            raise _read_only_error()
        leaves = self._leaves(conflict.doc_id)
        if len(leaves) > 1:
            found = {rev: self._version(conflict, rev) for rev in leaves}
            self.resolve(conflict, self._ours(conflict, found) or leaves[0])
        else:
            self.resolve(conflict, Keep.THEIRS)
        self._replace(conflict.path, content)
        return Resolved(conflict.path, "merged")

    def _read_version(self, path: str, *, is_ours: bool) -> Version:
        try:
            content, entry = read_bytes(self.trash.root, path)
        except NotFound:
            return Version(is_ours, None)
        return Version(is_ours, content, entry.mtime_ns // 10**6)

    def _leaves(self, doc_id: str) -> tuple[str, ...]:
        document = self.couch.get(doc_id)
        if document is None:
            return ()
        rivals = document.get("_conflicts")
        others = rivals if isinstance(rivals, list) else []
        return (str(document["_rev"]), *(str(rev) for rev in others))

    # -- several live revisions

    def _resolve_branches(self, conflict: Conflict, leaves: Sequence[str], keep: str) -> Resolved:
        if self.is_read_only:
            raise _read_only_error()
        versions = {rev: self._version(conflict, rev) for rev in leaves}
        ours = self._ours(conflict, versions)
        kept = _choose_revision(conflict, leaves, ours, keep)
        beside = []
        for rev, (entry, content) in versions.items():
            if rev == kept or entry.is_deleted:
                continue
            if keep == Keep.BOTH:
                label = f"conflict {rev.partition('-')[2][:_LABEL_DIGITS]}"
                made = create_beside(
                    self.trash.root, entry.path, label, content, entry.mtime_ms * 10**6
                )
                beside.append(made.rel_path)
            else:
                self.trash.keep(entry.path, content, entry.mtime_ms * 10**6, _SETTLED)
        self._delete_revisions(conflict, [rev for rev in leaves if rev != kept])
        return Resolved(conflict.path, kept, tuple(beside))

    def _version(self, conflict: Conflict, rev: str) -> tuple[Entry, bytes]:
        reader = RemoteReader(self.couch, self.codec)
        found = reader.revision(conflict.doc_id, rev)
        if found is None:
            raise LivesyncUnreadable(
                f"The version {rev} of '{conflict.path}' cannot be read, so it is not dropped.",
                "Let the device that wrote it sync again, or resolve the conflict there.",
            )
        return found

    def _ours(self, conflict: Conflict, versions: dict[str, tuple[Entry, bytes]]) -> str | None:
        """The revision that matches this vault's file, or did when last synced."""
        known = self.trash.records.file(conflict.doc_id)
        if known is not None and known.rev in versions:
            return known.rev
        here = self._content(conflict.path)
        return next((rev for rev, (_, content) in versions.items() if content == here), None)

    def _delete_revisions(self, conflict: Conflict, revs: Sequence[str]) -> None:
        rows = self.couch.bulk_docs(
            [{"_id": conflict.doc_id, "_rev": rev, "_deleted": True} for rev in revs]
        )
        if any(row.rev is None for row in rows):
            raise LivesyncConflict(
                f"'{conflict.path}' was changed at this moment.", f"Try again; {_LIST}"
            )

    # -- our version is a file beside the note

    def _resolve_files(self, conflict: Conflict, kept_as: str, keep: str) -> Resolved:
        choice = Keep.THEIRS if keep in conflict.revs else _parse_choice(conflict, keep)
        ours = self._content(kept_as)
        if choice is Keep.BOTH:
            return Resolved(conflict.path, choice, (kept_as,) if ours is not None else ())
        if choice is Keep.OURS:
            if ours is None:
                raise NotFound(f"'{kept_as}' is gone.", "Keep theirs, or both.")
            self._replace(conflict.path, ours)
        if ours is not None:
            self.trash.remove(kept_as, content_hash(ours), len(ours), _SETTLED)
        return Resolved(conflict.path, choice)

    # -- our version was never sent, because we may not write

    def _resolve_unsent(self, conflict: Conflict, rev: str, keep: str) -> Resolved:
        choice = Keep.THEIRS if keep == rev else _parse_choice(conflict, keep)
        if choice is Keep.OURS:
            raise _read_only_error()
        ours = self._content(conflict.path)
        entry, theirs = self._version(conflict, rev)
        kept_as: tuple[str, ...] = ()
        if ours is not None and choice is Keep.BOTH:
            label = f"conflict {content_hash(ours)[:_LABEL_DIGITS]}"
            kept_as = (create_beside(self.trash.root, conflict.path, label, ours).rel_path,)
        if not entry.is_deleted:
            self._replace(conflict.path, theirs)
        return Resolved(conflict.path, choice, kept_as)

    # -- files

    def _content(self, path: str) -> bytes | None:
        try:
            return read_bytes(self.trash.root, path)[0]
        except NotFound:
            return None

    def _replace(self, path: str, content: bytes) -> None:
        present = self._content(path)
        if present is None:
            replace_file(self.trash.root, path, None, content)
        elif present != content:
            self.trash.keep(path, present, time.time_ns(), _SETTLED)
            replace_file(self.trash.root, path, content_hash(present), content)


def _to_version(rev: str, entry: Entry, content: bytes, *, is_ours: bool) -> Version:
    return Version(is_ours, None if entry.is_deleted else content, entry.mtime_ms, rev)


def _choose_revision(conflict: Conflict, leaves: Sequence[str], ours: str | None, keep: str) -> str:
    """The revision to keep."""
    if keep in leaves:
        return keep
    choice = _parse_choice(conflict, keep)
    if choice is Keep.BOTH:
        return ours or leaves[0]
    if ours is None:
        raise LivesyncConflict(
            f"None of the versions of '{conflict.path}' is the one in this vault.",
            f"Name the revision to keep, or keep both; {_LIST}",
        )
    if choice is Keep.OURS:
        return ours
    others = [rev for rev in leaves if rev != ours]
    if len(others) > 1:
        raise InvalidArgument(
            f"'{conflict.path}' has {len(others)} other versions.",
            f"Name the revision to keep: {', '.join(others)}.",
        )
    return others[0]


def _parse_choice(conflict: Conflict, keep: str) -> Keep:
    try:
        return Keep(keep)
    except ValueError:
        raise InvalidArgument(
            f"'{conflict.path}' has no version {keep[:60]!r}.",
            f"Keep ours, theirs, both or a revision; {_LIST}",
        ) from None


def _read_only_error() -> ReadOnly:
    return ReadOnly(
        "This node takes changes and sends none, so it cannot resolve this in the database.",
        "Keep theirs, resolve it on another device, or set livesync.read_only to false.",
    )
