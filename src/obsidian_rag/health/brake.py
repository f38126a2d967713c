"""The brake: stops a run that would remove notes because their vault is missing or another one.

Nothing is removed from the index if more than a fifth of the known notes and more than 50 vanish
in one scan, if all vanish, or if more than a fifth vanish, however few, from a folder that is not
the one we knew: a mount point without its disk, an unmounted share or an old backup.

The rules are pure; `Brake` applies them to one run and keeps their records.
"""

import contextlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from obsidian_rag.errors import IndexIncomplete, NotFound, ObsidianRagError, VaultAway
from obsidian_rag.store import (
    Change,
    ChangeType,
    Database,
    IndexFact,
    KnownFile,
    LinkFact,
    LinkFacts,
    Links,
    Manifest,
)
from obsidian_rag.vault import FileEntry, RootIdentity, Scan, Vault, root_identity

# More missing notes than this, and more than one note in `_SHARE`, mean that the vault is away.
_MANY = 50
_SHARE = 5
# What reading a record raises after a bit of it was flipped.
_DECODE_ERRORS = (ValueError, TypeError, KeyError, AttributeError)
_MAX_MISSING_KEPT = 50
_ACCEPT = "run `obsidian-rag sync --accept-removals`"


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
    is_mass = missing > _MANY and missing * _SHARE > known
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
    with contextlib.suppress(*_DECODE_ERRORS):  # then its path is known
        if (text := facts.get(LinkFact.MADE_OF)) is not None:
            return MadeOf.from_text(text)
    return MadeOf(link_path) if link_path is not None else None


def away_before(facts: Mapping[str, str], path: str) -> Away | None:
    """The notes an earlier scan missed at this path, if still in force."""
    with contextlib.suppress(*_DECODE_ERRORS):  # then the next scan misses the same notes
        text = facts.get(LinkFact.AWAY)
        away = Away.from_text(text) if text is not None else None
        return away if away is not None and away.path == path else None
    return None


class Brake:
    """Decides what one run may conclude from missing notes.

    `accepts_removals`: the user confirmed that the notes were deleted.
    """

    def __init__(self, database: Database, vault: Vault, *, accepts_removals: bool) -> None:
        self._database = database
        self._vault = vault
        self._root = vault.root
        self._links = Links(database)
        self._manifest = Manifest(database)
        self._facts = LinkFacts(database, vault.link_id)
        # The vault's stored facts when the run began.
        self.known_facts = self._facts.all()
        self._made_of = indexed_vault(database, vault, self.known_facts)
        self._identity = root_identity(vault.root)
        self._accepts_removals = accepts_removals or is_replacing(database, vault)
        self._lost_count = 0

    @property
    def needs_full_scan(self) -> bool:
        """Whether the whole vault must be scanned, because its identity or content is in doubt."""
        is_known = self._made_of is not None and self._made_of == self._current()
        return not is_known or away_before(self.known_facts, str(self._root)) is not None

    def is_doubtful(self, work: Iterable[Change]) -> bool:
        """Whether so many of some paths are missing that the whole vault must be scanned."""
        missing = sum(1 for change in work if change.change_type is ChangeType.DELETE)
        return bool(missing) and is_away(self._known_count(), missing)

    def allow(self, found: Scan, known: Mapping[str, KnownFile], work: Iterable[Change]) -> None:
        """Check that a run may act on a full scan.

        Raises:
            VaultAway: too many notes are missing; that is recorded for health.
            IndexIncomplete: the index belongs to another vault.
        """
        if self._accepts_removals or self._made_of is None:
            return
        seen = {entry.rel_path: entry for entry in found.files}
        root = compare_roots(self._made_of, str(self._root), self._identity, known, seen)
        if root is Root.OTHER:
            raise other_vault(self._made_of.path, str(self._root), is_accepted=False)
        missing = self._find_missing(found, work)
        if is_away(len(known), len(missing), root):
            away = Away.seen(str(self._root), len(known), missing)
            self._facts.put(LinkFact.AWAY, away.to_text())
            raise too_few(away, self._name)

    def adopt(self) -> None:
        """Record that the index belongs to this vault; the caller provides the transaction."""
        if self._vault.is_primary:
            self._links.set_primary(self._root)
            if self._database.get(IndexFact.REPLACE_WITH) is not None:
                self._database.put(IndexFact.REPLACE_WITH, None)
        news = {LinkFact.MADE_OF: self._current().to_text(), LinkFact.AWAY: None}
        for name, value in news.items():
            if self.known_facts.get(name) != value:
                self._facts.put(name, value)

    def check_missing(self, changes: Iterable[Change]) -> None:
        """Check that the vault is still there when these files turn out to be missing.

        Raises:
            VaultAway: notes that were there a moment ago are missing, and so is the vault.
        """
        self._lost_count += sum(1 for one in changes if one.change_type is not ChangeType.DELETE)
        if not self._lost_count or self._accepts_removals:
            return
        if root_identity(self._root) != self._identity:
            raise not_there(str(self._root), self._name)
        if is_away(known := self._known_count(), self._lost_count):
            raise too_few(Away(str(self._root), known, known - self._lost_count, ()), self._name)

    def explain(self, error: NotFound) -> ObsidianRagError:
        """The error to raise if the vault's folder cannot be walked."""
        is_known = self._known_count() or not self._vault.is_primary
        return not_there(str(self._root), self._name) if is_known else error

    @property
    def _name(self) -> str:
        return "" if self._vault.is_primary else self._vault.name

    def _current(self) -> MadeOf:
        return MadeOf(str(self._root), self._identity)

    def _known_count(self) -> int:
        return self._manifest.count(self._vault.link_id)

    def _find_missing(self, found: Scan, work: Iterable[Change]) -> list[str]:
        """Deleted notes, without those that the settings or their size now exclude."""
        skipped = {item.rel_path for item in found.skipped}
        return [
            change.rel_path
            for change in work
            if change.change_type is ChangeType.DELETE
            and change.rel_path not in skipped
            and self._vault.rules.admits_file(change.rel_path)
        ]


def indexed_vault(database: Database, vault: Vault, facts: Mapping[str, str]) -> MadeOf | None:
    """The vault that the index of this link id was made from, if any."""
    link = Links(database).get(vault.link_id)
    is_scanned = link is not None and link.last_scan_at is not None
    return made_of(facts, str(link.root_path) if link is not None and is_scanned else None)


def is_replacing(database: Database, vault: Vault) -> bool:
    """Whether the user allowed this vault to replace the indexed one."""
    return vault.is_primary and database.get(IndexFact.REPLACE_WITH) == str(vault.root)


def too_few(away: Away, name: str = "") -> VaultAway:
    """The error for too many missing notes; only linked vaults have a name."""
    accept = f"run `obsidian-rag link remove {name}` and link it again" if name else _ACCEPT
    return VaultAway(
        f"{away.there:,} of {away.known:,} notes are there in {away.path}; nothing was removed from"
        " the index.",
        "If a disk or a share is away, bring it back: the index heals by itself."
        f" If the notes are really gone, {accept}.",
    )


def not_there(path: str, name: str = "") -> VaultAway:
    """The error for a vault folder that is missing or unreadable."""
    moved = f"link remove {name}` and `obsidian-rag link add" if name else "init --vault"
    called = f"linked vault '{name}' ({path})" if name else f"vault {path}"
    return VaultAway(
        f"The {called} is not there; answers come from the last index.",
        "If its disk or share is away, bring it back. If it has moved, run"
        f" `obsidian-rag {moved} /its/new/place`.",
    )


def other_vault(made: str, path: str, *, is_accepted: bool) -> IndexIncomplete:
    """The error for an index of another vault than the configured one."""
    return IndexIncomplete(
        f"{path} is not searchable: the index was made of another vault, {made}.",
        "Run `obsidian-rag index`."
        if is_accepted
        else "Run `obsidian-rag index --accept-removals` to index it instead, or"
        f" `obsidian-rag init --vault {made}` to go back.",
    )
