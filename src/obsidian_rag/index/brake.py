"""Decides whether missing notes were deleted or the vault is away: pure rules and their records.

Nothing is removed from the index if more than a fifth of the known notes and more than 50 vanish
in one scan, if all vanish, or if more than a fifth vanish, however few, from a folder that is not
the one we knew: a mount point without its disk, an unmounted share or an old backup.
"""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from obsidian_rag.store import KnownFile
from obsidian_rag.vault import FileEntry, RootIdentity

MANY = 50
_SHARE = 5
# What reading a record raises after a bit of it was flipped.
_DAMAGED = (ValueError, TypeError, KeyError, AttributeError)
_MAX_MISSING_KEPT = 50

# Keys of the facts in the database.
MADE_OF = "made_of"
AWAY = "vault_away"
REPLACE_WITH = "replace_with"


@dataclass(frozen=True, slots=True)
class MadeOf:
    """The vault an index was made from; not every system gives a folder an identity."""

    path: str
    identity: RootIdentity | None = None

    def to_text(self) -> str:
        """As it is kept in the database."""
        return json.dumps({"path": self.path, "identity": self.identity})

    @staticmethod
    def from_text(text: str) -> "MadeOf":
        """What `to_text` made."""
        found = json.loads(text)
        identity = found["identity"]
        return MadeOf(found["path"], RootIdentity(*identity) if identity else None)


@dataclass(frozen=True, slots=True)
class Away:
    """A scan that found too little of a vault; `missing` has some of the missing notes."""

    path: str
    known: int
    there: int
    missing: tuple[str, ...]

    @staticmethod
    def seen(path: str, known: int, missing: list[str]) -> "Away":
        """A record of a scan, with a sample of the missing notes."""
        some = missing[:: len(missing) // _MAX_MISSING_KEPT + 1]
        return Away(path, known, known - len(missing), tuple(some))

    def to_text(self) -> str:
        """As it is kept in the database."""
        return json.dumps([self.path, self.known, self.there, self.missing])

    @staticmethod
    def from_text(text: str) -> "Away":
        """What `to_text` made."""
        path, known, there, missing = json.loads(text)
        return Away(path, known, there, tuple(missing))


class Root(StrEnum):
    """How a folder relates to the indexed vault."""

    SAME = "same"
    CHANGED = "changed"
    OTHER = "other"


def is_away(known: int, missing: int, root: Root = Root.SAME) -> bool:
    """Whether so many missing notes mean that the vault is away, not that they were deleted."""
    if not missing:
        return False
    is_mass = missing > MANY and missing * _SHARE > known
    return is_mass or missing >= known or root is not Root.SAME


def compare_roots(
    made: MadeOf,
    path: str,
    identity: RootIdentity | None,
    known: Mapping[str, KnownFile],
    found: Mapping[str, FileEntry],
) -> Root:
    """Whether the folder at `path` is the vault the index was made from.

    The folder's identity decides; if that differs, its files do: file ids stay when a device gets
    another number after a restart, paths when a vault is restored from a backup, paths and sizes
    when it is copied elsewhere.
    """
    if not known or (identity is not None and made.identity == identity):
        return Root.SAME
    there = [(known[name], file) for name, file in found.items() if name in known]
    kept = sum(1 for old, new in there if new.file_id is not None and old.file_id == new.file_id)
    if there and kept * 2 >= len(there):
        return Root.SAME
    most = len(known) * (_SHARE - 1)
    if path == made.path:
        is_same = made.identity is None or len(there) * _SHARE >= most
        return Root.SAME if is_same else Root.CHANGED
    alike = sum(1 for old, new in there if old.size_bytes == new.size_bytes)
    return Root.SAME if alike * _SHARE >= most else Root.OTHER


def made_of(facts: Mapping[str, str], link_path: str | None) -> MadeOf | None:
    """The vault the index was made from, if any."""
    with contextlib.suppress(*_DAMAGED):  # then its path is known
        if (text := facts.get(MADE_OF)) is not None:
            return MadeOf.from_text(text)
    return MadeOf(link_path) if link_path is not None else None


def away_before(facts: Mapping[str, str], path: str) -> Away | None:
    """The notes an earlier scan missed at this path, if still in force."""
    with contextlib.suppress(*_DAMAGED):  # then the next scan misses the same notes
        text = facts.get(AWAY)
        away = Away.from_text(text) if text is not None else None
        return away if away is not None and away.path == path else None
    return None
