"""What all parts of a sync share: the database, the vault, our records, and one document's case."""

from dataclasses import dataclass, field
from pathlib import Path

from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.livesync.codec.path_ids import in_form_of, normalise
from obsidian_rag.livesync.couchdb import Couch
from obsidian_rag.livesync.decision import Action, Conflicted, Present
from obsidian_rag.livesync.disk import Disk, LocalState, Trash
from obsidian_rag.livesync.membership import Membership
from obsidian_rag.livesync.remote_view import RemoteReader, View
from obsidian_rag.livesync.site import Direction
from obsidian_rag.livesync.status import LivesyncState
from obsidian_rag.store import LivesyncRecords, SyncedFile
from obsidian_rag.vault import FileEntry


@dataclass(frozen=True, slots=True)
class Policy:
    """How a node reconciles files and documents."""

    direction: Direction = Direction.BOTH
    is_dry: bool = False
    may_merge: bool = True
    keeps_conflicts_as_files: bool = True
    trash: Path = Path()
    max_deleted_percent: float = 20.0


@dataclass(frozen=True, slots=True)
class Case:
    """One document, with all that one look at both sides found out about it."""

    doc_id: str
    view: View
    file: LocalState
    known: SyncedFile | None
    # The document's content, once it was fetched.
    content: bytes | None = None
    content_hash: str | None = None
    action: Action = Action.NOTHING

    @property
    def path(self) -> str:
        """The path to show: the document's, else the file's, else the recorded one."""
        if self.view.entry is not None:
            return self.view.entry.path
        if isinstance(self.file.local, Present):
            return self.file.local.path
        return self.known.path if self.known is not None else self.doc_id

    @property
    def rev(self) -> str:
        """The winning revision."""
        state = self.view.state
        return state.winner if isinstance(state, Conflicted) else str(getattr(state, "rev", ""))

    @property
    def present(self) -> tuple[Present, FileEntry]:
        """The file, for actions that are decided only where there is one."""
        assert isinstance(self.file.local, Present) and self.file.entry is not None
        return self.file.local, self.file.entry

    def sent_as(self, rev: str) -> SyncedFile:
        """The record of a file that was sent as this revision."""
        local, entry = self.present
        return SyncedFile(
            self.doc_id, entry.rel_path, rev, local.content_hash, entry.size_bytes, entry.mtime_ns
        )

    def deleted_as(self, rev: str) -> SyncedFile:
        """The record of a file that is gone on both sides."""
        return SyncedFile(self.doc_id, self.path, rev, None, 0, 0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of carrying out some cases."""

    synced: list[tuple[Case, SyncedFile]] = field(default_factory=list)
    # The documents to look at again.
    again: list[str] = field(default_factory=list)
    failed: list[tuple[Case, ObsidianRagError]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Sync:
    """One vault and one database, and what syncing them needs."""

    couch: Couch
    member: Membership
    reader: RemoteReader
    disk: Disk
    trash: Trash
    records: LivesyncRecords
    policy: Policy
    state: LivesyncState

    @property
    def is_sending_only(self) -> bool:
        """Whether the vault must not be changed."""
        return self.policy.direction is Direction.PUSH

    @property
    def is_read_only(self) -> bool:
        """Whether the database must not be written to."""
        return self.member.is_read_only or self.policy.direction is Direction.PULL

    def is_case_locked(self, case: Case) -> bool:
        """Whether the disk cannot spell the file's path as the document does."""
        return case.doc_id in self.disk.case_locked

    def agreed(self, case: Case, content_hash: str, entry: FileEntry) -> SyncedFile:
        """The record of a file that matches its document."""
        assert case.view.entry is not None
        spelling = normalise(entry.rel_path if self.is_case_locked(case) else case.view.entry.path)
        path = in_form_of(spelling, entry.rel_path)
        return SyncedFile(
            case.doc_id, path, case.rev, content_hash, entry.size_bytes, entry.mtime_ns
        )
