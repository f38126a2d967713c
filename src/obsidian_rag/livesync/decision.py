"""What to do about one document: its file, its winner in the database, our record. No I/O.

Three rules come before the table. Content that is not known to be synced is never overwritten
or deleted. An edit wins over a deletion, wherever it was made. A conflict is resolved by the
user or by a lossless merge, never by which revision happens to be the winner. Each action leaves
less to do for the next look, so looking again recovers from a crash after any step.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from obsidian_rag.errors import LivesyncBrake
from obsidian_rag.livesync.codec.path_ids import normalise
from obsidian_rag.store import SyncedFile

# Up to this many missing files are taken as deleted on purpose.
_MAX_UNQUESTIONED_DELETIONS = 10


@dataclass(frozen=True, slots=True)
class Absent:
    """There is certainly no file: the walk covered its path and did not find it."""


@dataclass(frozen=True, slots=True)
class Present:
    """The file as read, and its path as the disk spells it (in NFC)."""

    content_hash: str
    path: str


@dataclass(frozen=True, slots=True)
class NoDocument:
    """The database has never had the document, or has purged it."""


@dataclass(frozen=True, slots=True)
class Live:
    """The document has one living revision; its content may not have been fetched yet."""

    rev: str
    path: str
    content_hash: str | None = None


@dataclass(frozen=True, slots=True)
class Deleted:
    """The winner is an entry that says `deleted: true`, the only deletion that clients apply."""

    rev: str


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The document is deleted in CouchDB's own way; its body may say `deleted: true` as well."""

    rev: str
    was_soft_deleted: bool


@dataclass(frozen=True, slots=True)
class Conflicted:
    """The document has several living revisions; `leaves` has all of them, `winner` included."""

    winner: str
    leaves: tuple[str, ...]


Local = Absent | Present
RemoteState = NoDocument | Live | Deleted | Tombstone | Conflicted


class Action(StrEnum):
    """What to do next. Each action holds only for the states it was decided on.

    WRITE, TRASH and RENAME_LOCAL replace, remove or rename only the content that was decided
    on. PUSH and SOFT_DELETE are children of the revision in our record, PUSH_REVIVED of the
    deletion. What is recorded afterwards is the revision with the path that it holds.
    """

    NOTHING = "nothing"
    RECORD = "record"  # both sides agree: record this revision, this content (None: deleted)
    REBASE = "rebase"  # what we synced has a new revision: record that, not our file, look again
    FORGET = "forget"  # neither file nor document is left: drop the record
    FETCH = "fetch"  # the document's content is needed to decide
    WRITE = "write"  # replace our file with the document's content, or create it
    RENAME_LOCAL = "rename_local"  # change the file's case to the document's spelling
    TRASH = "trash"  # move the file to the trash and record the deletion
    PUSH = "push"  # store the file as a child of the recorded revision, or as a new document
    PUSH_REVIVED = "push_revived"  # store the file as a child of the deletion
    SOFT_DELETE = "soft_delete"  # rewrite the entry as deleted, if the brake allows it
    MERGE_OR_CONFLICT = "merge_or_conflict"  # both changed: merge, or keep both
    REPORT_CONFLICT = "report_conflict"  # change nothing and report to the user
    WARN_TOMBSTONE = "warn_tombstone"  # keep the file, warn the user, record the tombstone's rev


def decide(
    local: Local, remote: RemoteState, known: SyncedFile | None, *, is_read_only: bool = False
) -> Action:
    """The next action for a document; NOTHING when both sides are settled."""
    action = _decide(local, remote, known)
    if not is_read_only:
        return action
    match action:
        case Action.MERGE_OR_CONFLICT:
            return Action.REPORT_CONFLICT
        case Action.PUSH if isinstance(remote, Conflicted):
            return Action.REPORT_CONFLICT
        case Action.PUSH | Action.PUSH_REVIVED | Action.SOFT_DELETE:
            return Action.NOTHING
        case _:
            return action


def brake(known: int, missing: int, root_ok: bool, max_percent: float) -> None:
    """Stop before sending deletions that look like an accident.

    `known` files should be on the disk, `missing` of them are not; `root_ok` is false when the
    vault's folder is missing or empty, as after a disk was not mounted.

    Raises:
        LivesyncBrake: the folder is missing or empty, or too many files and percent are gone.
    """
    if known and not root_ok:
        raise LivesyncBrake(
            f"The vault's folder is missing or empty, but {known} synced"
            f" {'file belongs' if known == 1 else 'files belong'} in it."
            " Nothing was deleted on the other devices.",
            "Connect the disk or correct `livesync.vaultPath`. If you mean to delete every file,"
            " do so in Obsidian on another device.",
        )
    if missing > _MAX_UNQUESTIONED_DELETIONS and missing * 100 > max_percent * known:
        raise LivesyncBrake(
            f"{missing} of {known} synced files are gone, which is more than {max_percent:g} %."
            " Nothing was deleted on the other devices.",
            "Put the files back. If you deleted them on purpose, run"
            " `obsidian-rag livesync run --once --allow-deletions`.",
        )


def brake_on_arrival(
    known: int, done: int, waiting: int, max_percent: float
) -> LivesyncBrake | None:
    """The brake for incoming deletions that look like an accident; None if they do not.

    Other devices deleted `done + waiting` of `known` files lately; `waiting` are still here.
    """
    gone = done + waiting
    if gone <= _MAX_UNQUESTIONED_DELETIONS or gone * 100 <= max_percent * known:
        return None
    stay = f"{waiting} of them stay here" if done else "They stay here"
    return LivesyncBrake(
        f"{gone} of {known} synced files were deleted on other devices, which is more than"
        f" {max_percent:g} %. {stay} until you decide; all else is synced.",
        "If the deletions are meant, run `obsidian-rag livesync run --once --allow-deletions`."
        " If not, `obsidian-rag livesync restore --all` sends the files back to the other devices.",
    )


def _decide(local: Local, remote: RemoteState, known: SyncedFile | None) -> Action:
    match remote:
        case NoDocument():
            return _decide_without_document(local, known)
        case Live():
            if isinstance(local, Absent):
                return _decide_absent_live(remote, known)
            return _decide_present_live(local, remote, known)
        case Deleted():
            return _decide_deleted(local, remote.rev, known)
        case Tombstone():
            return _decide_tombstone(local, remote, known)
        case Conflicted():
            return _decide_conflicted(local, remote, known)
        case _:
            assert_never(remote)


def _decide_without_document(local: Local, known: SyncedFile | None) -> Action:
    if isinstance(local, Present):
        # Known or not: a document that vanished without a deletion does not concern the file.
        return Action.PUSH
    return Action.NOTHING if known is None else Action.FORGET


def _decide_absent_live(remote: Live, known: SyncedFile | None) -> Action:
    if known is not None and known.content_hash is not None and known.rev == remote.rev:
        return Action.SOFT_DELETE
    return Action.WRITE


def _decide_present_live(local: Present, remote: Live, known: SyncedFile | None) -> Action:
    if known is None or known.content_hash is None:
        return _decide_without_common_base(local, remote, known)
    if remote.rev == known.rev:
        is_renamed = local.path not in (normalise(known.path), remote.path)
        is_changed = local.content_hash != known.content_hash
        return Action.PUSH if is_changed or is_renamed else Action.NOTHING
    if local.content_hash == known.content_hash:
        is_same = remote.content_hash == local.content_hash
        return _rename_first(local, remote, known, Action.RECORD if is_same else Action.WRITE)
    if remote.content_hash == known.content_hash:
        return _rename_first(local, remote, known, Action.REBASE)
    return _decide_without_common_base(local, remote, known)


def _decide_without_common_base(local: Present, remote: Live, known: SyncedFile | None) -> Action:
    """Neither side is what we last synced: only equal content avoids a merge."""
    if remote.content_hash is None:
        return Action.FETCH
    if remote.content_hash == local.content_hash:
        return _rename_first(local, remote, known, Action.RECORD)
    return Action.MERGE_OR_CONFLICT


def _rename_first(local: Present, remote: Live, known: SyncedFile | None, action: Action) -> Action:
    """Rename first if the document spells the path otherwise, unless it was renamed here."""
    is_ours = known is not None and normalise(known.path) == remote.path
    if local.path == remote.path or is_ours:
        return action
    return Action.RENAME_LOCAL


def _decide_deleted(local: Local, rev: str, known: SyncedFile | None) -> Action:
    if isinstance(local, Absent):
        is_recorded = known is None or (known.rev == rev and known.content_hash is None)
        return Action.NOTHING if is_recorded else Action.RECORD
    return Action.TRASH if _is_unchanged(local, known) else Action.PUSH_REVIVED


def _decide_tombstone(local: Local, remote: Tombstone, known: SyncedFile | None) -> Action:
    if isinstance(local, Absent) or remote.was_soft_deleted or not _is_unchanged(local, known):
        return _decide_deleted(local, remote.rev, known)
    # Other clients keep the file as well: a tombstone alone is not a user's deletion.
    is_recorded = known is not None and known.rev == remote.rev
    return Action.NOTHING if is_recorded else Action.WARN_TOMBSTONE


def _decide_conflicted(local: Local, remote: Conflicted, known: SyncedFile | None) -> Action:
    if isinstance(local, Present) and known is not None and known.content_hash is not None:
        is_edited = local.content_hash != known.content_hash
        if is_edited and known.rev in remote.leaves:
            return Action.PUSH
    return Action.REPORT_CONFLICT


def _is_unchanged(local: Present, known: SyncedFile | None) -> bool:
    return known is not None and known.content_hash == local.content_hash
