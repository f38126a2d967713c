"""What gets a parsed note besides the chunk table: a protocol, and what goes over it.

A run reads and parses each note once. In the process that parsed it a consumer makes of the note
what it needs; the run hands that over when the note's chunks are stored. Work is owed to each
consumer by itself, so a crash between two of them is healed for the one that is behind.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from obsidian_rag.notes import Note
from obsidian_rag.store import Change, ChangeType, ChunkStore
from obsidian_rag.vault import Vault

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Stop = Callable[[], bool]
# Called once in each process that reads; the other processes get it as a pickle.
MakeContent = Callable[[], Callable[[Note], object]]
# For a vault's link id and paths, the content of which the chunk table holds the passages.
Indexed = Callable[[str, Sequence[str]], Mapping[str, str | None]]
# A note of any vault: the link id, and the path.
NoteRef = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ParsedNote:
    """What a consumer made of a note, and the passages that were stored with it, if any."""

    path: str
    content_hash: str
    content: object
    passages: "Sequence[tuple[str, NDArray[np.float32]]] | None" = None


@dataclass(slots=True)
class Delivery:
    """What a consumer gets of a group of files, in one go. Renames are old path, new path."""

    notes: list[ParsedNote] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    # Files that cannot be read at this moment, with the reason.
    postponed: list[tuple[str, str]] = field(default_factory=list)

    def done(self) -> list[str]:
        """The paths for which nothing is owed any more."""
        return [*(note.path for note in self.notes), *self.removed, *self.unchanged]


class NoteConsumer(Protocol):
    """Something that is kept in line with the vault's notes."""

    # What it had is damaged and of no use; until it starts over it takes nothing.
    is_lost: bool

    @property
    def make_content(self) -> MakeContent:
        """Makes what the consumer needs of a note."""
        ...

    @property
    def mark(self) -> str | None:
        """A name for its state if it agreed with an index once; the index has the same one then."""
        ...

    def begin(self, fingerprint: str, *, is_rebuild: bool, is_whole: bool) -> None:
        """Be ready: with what is in use, or with something new beside it."""
        ...

    def start_over(self) -> None:
        """Throw away what is damaged; everything will be handed over again."""
        ...

    def admits(self, path: str) -> bool:
        """Whether it wants the note at this path."""
        ...

    def contents(self, link_id: str, paths: Sequence[str] | None = None) -> Mapping[str, str]:
        """The content hash of a vault's notes that it has: of all, or of those at some paths."""
        ...

    def keep_only(self, link_ids: Collection[str]) -> None:
        """Let go of the notes of all other vaults: nobody knows of these any more."""
        ...

    def before_reading(self, vault: Vault, paths: Iterable[str]) -> None:
        """These notes are about to be read."""
        ...

    def take(self, link_id: str, delivery: Delivery) -> bool:
        """Take up what was read in a vault; whether it could."""
        ...

    def settle(self) -> Sequence[NoteRef]:
        """Do what depends on all notes; those, of any vault, that must be read again for it."""
        ...

    def finish(self, chunks: ChunkStore, indexed: Indexed, stop: Stop) -> str | None:
        """Everything was handed over: the mark of what is in use now, if all of it is done."""
        ...


def differences(
    held: Mapping[str, str],
    indexed: Mapping[str, str | None],
    kept: Set[str],
    admits: Callable[[str], bool],
) -> list[Change]:
    """What brings a consumer that holds `held` in line with the index, without a look at files.

    `kept` are files that the index could not take up for now: what is known of them stays.
    """
    found = [
        Change(path, ChangeType.UPDATE)
        for path, content in indexed.items()
        if held.get(path) != content and admits(path)
    ]
    found += [
        Change(path, ChangeType.DELETE)
        for path in held
        if not admits(path) or (path not in indexed and path not in kept)
    ]
    return found
