"""One document in one round of reconciling, and the policy of a node."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from obsidian_rag.livesync.decision import Action, Conflicted, Present
from obsidian_rag.livesync.disk import LocalState
from obsidian_rag.livesync.remote_view import View
from obsidian_rag.store import SyncedFile


class Direction(StrEnum):
    """Which way changes go."""

    BOTH = "both"
    PULL = "pull"
    PUSH = "push"


@dataclass(frozen=True, slots=True)
class Policy:
    """How a node reconciles files and documents."""

    direction: Direction = Direction.BOTH
    is_dry: bool = False
    may_merge: bool = True
    keeps_conflicts_as_files: bool = True
    trash: Path = Path()


@dataclass(frozen=True, slots=True)
class Case:
    """One document with everything that is known about it in this round."""

    doc_id: str
    view: View
    file: LocalState
    known: SyncedFile | None
    content: bytes | None = None
    action: Action = Action.NOTHING

    @property
    def path(self) -> str:
        """The path to show: the document's, else the file's, else the one we remember."""
        if self.view.entry is not None:
            return self.view.entry.path
        if isinstance(self.file.local, Present):
            return self.file.local.path
        return self.known.path if self.known is not None else self.doc_id

    @property
    def rev(self) -> str:
        """The winner."""
        state = self.view.state
        return state.winner if isinstance(state, Conflicted) else str(getattr(state, "rev", ""))
