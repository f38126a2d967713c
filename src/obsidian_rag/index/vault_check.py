"""Stops a run that would remove notes because the vault is missing or a different one."""

from collections.abc import Iterable, Mapping

from obsidian_rag.errors import IndexIncomplete, NotFound, ObsidianRagError, VaultAway
from obsidian_rag.index.brake import (
    AWAY,
    MADE_OF,
    REPLACE_WITH,
    Away,
    MadeOf,
    Root,
    away_before,
    compare_roots,
    is_away,
    made_of,
)
from obsidian_rag.index.prepare import Gone, Group
from obsidian_rag.store import Change, ChangeType, Database, KnownFile, LinkFacts, Links, Manifest
from obsidian_rag.vault import Scan, Vault, root_identity

# Set while the first index of a vault is incomplete: from linking, or before anything of it is
# searchable, until all of it is.
FIRST_UNFINISHED = "first_index_unfinished"
_ACCEPT = "run `obsidian-rag sync --accept-removals`"


class VaultCheck:
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
    def wants_whole_look(self) -> bool:
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
            self._facts.put(AWAY, away.to_text())
            raise too_few(away, self._name)

    def adopt(self) -> None:
        """Record that the index belongs to this vault; the caller provides the transaction."""
        if self._vault.is_primary:
            self._links.set_primary(self._root)
            if self._database.get(REPLACE_WITH) is not None:
                self._database.put(REPLACE_WITH, None)
        news = {MADE_OF: self._current().to_text(), AWAY: None}
        for name, value in news.items():
            if self.known_facts.get(name) != value:
                self._facts.put(name, value)

    def keep_watch(self, group: Group) -> None:
        """Distinguish a vault that goes away during a run from one whose notes are deleted.

        Raises:
            VaultAway: notes that were there a moment ago are missing, and so is the vault.
        """
        lost = [item for item in group.settled if isinstance(item, Gone)]
        self._lost_count += sum(
            1 for item in lost if item.change.change_type is not ChangeType.DELETE
        )
        if not self._lost_count or self._accepts_removals:
            return
        if root_identity(self._root) != self._identity:
            raise not_there(str(self._root), self._name)
        if is_away(known := self._known_count(), self._lost_count):
            raise too_few(Away(str(self._root), known, known - self._lost_count, ()), self._name)

    def explained(self, error: NotFound) -> ObsidianRagError:
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
    return vault.is_primary and database.get(REPLACE_WITH) == str(vault.root)


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
