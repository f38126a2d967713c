"""Stops a run that would take notes out of the index because the vault is away or another one."""

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

# The first index of a vault is not complete; set when it is linked, or before anything of it is
# searchable, and gone when all of it is.
FIRST_UNFINISHED = "first_index_unfinished"
_ACCEPT = "run `obsidian-rag sync --accept-removals`"


class VaultCheck:
    """What one run may conclude from notes that it does not find.

    `accepts_removals` is the user's word that the notes are gone.
    """

    def __init__(self, database: Database, vault: Vault, *, accepts_removals: bool) -> None:
        self._database = database
        self._vault = vault
        self._root = vault.root
        self._links = Links(database)
        self._manifest = Manifest(database)
        self._facts = LinkFacts(database, vault.link_id)
        self._known_facts = self._facts.all()
        self._made = indexed_vault(database, vault, self._known_facts)
        self._identity = root_identity(vault.root)
        self._accepts = accepts_removals or is_replacing(database, vault)
        self._lost = 0

    @property
    def wants_whole_look(self) -> bool:
        """Whether a look at some paths cannot do: something about the vault is in doubt."""
        is_known = self._made is not None and self._made == self._now()
        return not is_known or away_before(self._known_facts, str(self._root)) is not None

    def is_doubtful(self, work: Iterable[Change]) -> bool:
        """Whether so much is missing among some paths that the whole vault has to be looked at."""
        missing = sum(1 for change in work if change.change_type is ChangeType.DELETE)
        return bool(missing) and is_away(self._known(), missing)

    def allow(self, found: Scan, known: Mapping[str, KnownFile], work: Iterable[Change]) -> None:
        """Let a run do what follows from a whole look.

        Raises:
            VaultAway: too many notes are missing; that is remembered for whoever asks.
            IndexIncomplete: the index was made of another vault.
        """
        if self._accepts or self._made is None:
            return
        seen = {entry.rel_path: entry for entry in found.files}
        root = compare_roots(self._made, str(self._root), self._identity, known, seen)
        if root is Root.OTHER:
            raise other_vault(self._made.path, str(self._root), is_accepted=False)
        missing = self._missing(found, work)
        if is_away(len(known), len(missing), root):
            away = Away.seen(str(self._root), len(known), missing)
            self._facts.put(AWAY, away.to_text())
            raise too_few(away, self._name)

    def adopt(self) -> None:
        """The index is made of this vault from now on; for a transaction of the caller."""
        if self._vault.is_primary:
            self._links.set_primary(self._root)
            if self._database.get(REPLACE_WITH) is not None:
                self._database.put(REPLACE_WITH, None)
        news = {MADE_OF: self._now().to_text(), AWAY: None}
        for name, value in news.items():
            if self._known_facts.get(name) != value:
                self._facts.put(name, value)

    def keep_watch(self, group: Group) -> None:
        """Tell a vault that goes away while it is read from one whose notes are removed.

        Raises:
            VaultAway: notes that were there a moment ago are missing, and so is the vault.
        """
        lost = [item for item in group.settled if isinstance(item, Gone)]
        self._lost += sum(1 for item in lost if item.change.change_type is not ChangeType.DELETE)
        if not self._lost or self._accepts:
            return
        if root_identity(self._root) != self._identity:
            raise not_there(str(self._root), self._name)
        if is_away(known := self._known(), self._lost):
            raise too_few(Away(str(self._root), known, known - self._lost, ()), self._name)

    def explained(self, error: NotFound) -> ObsidianRagError:
        """What it means that the vault's folder cannot be walked."""
        is_known = self._known() or not self._vault.is_primary
        return not_there(str(self._root), self._name) if is_known else error

    @property
    def _name(self) -> str:
        return "" if self._vault.is_primary else self._vault.name

    def _now(self) -> MadeOf:
        return MadeOf(str(self._root), self._identity)

    def _known(self) -> int:
        return self._manifest.count(self._vault.link_id)

    def _missing(self, found: Scan, work: Iterable[Change]) -> list[str]:
        """Notes that should be there: not those that the settings or their size exclude now."""
        skipped = {item.rel_path for item in found.skipped}
        return [
            change.rel_path
            for change in work
            if change.change_type is ChangeType.DELETE
            and change.rel_path not in skipped
            and self._vault.rules.admits_file(change.rel_path)
        ]


def indexed_vault(database: Database, vault: Vault, facts: Mapping[str, str]) -> MadeOf | None:
    """The vault that the index under its link id was made of, if it was made of one."""
    link = Links(database).get(vault.link_id)
    is_scanned = link is not None and link.last_scan_at is not None
    return made_of(facts, str(link.root_path) if link is not None and is_scanned else None)


def is_replacing(database: Database, vault: Vault) -> bool:
    """Whether the user said that this vault may take the place of the one that was indexed."""
    return vault.is_primary and database.get(REPLACE_WITH) == str(vault.root)


def too_few(away: Away, name: str = "") -> VaultAway:
    """So much of a vault is missing that it is probably away; linked ones have a name."""
    accept = f"run `obsidian-rag link remove {name}` and link it anew" if name else _ACCEPT
    return VaultAway(
        f"{away.there:,} of {away.known:,} notes are there in {away.path}; nothing was removed from"
        " the index.",
        "If a disk or a share is away, bring it back: the index heals by itself."
        f" If the notes are really gone, {accept}.",
    )


def not_there(path: str, name: str = "") -> VaultAway:
    """A vault's folder is missing or cannot be read."""
    moved = f"link remove {name}` and `obsidian-rag link add" if name else "init --vault"
    called = f"linked vault '{name}' ({path})" if name else f"vault {path}"
    return VaultAway(
        f"The {called} is not there; answers come from the last index.",
        "If its disk or share is away, bring it back. If it has moved, run"
        f" `obsidian-rag {moved} /its/new/place`.",
    )


def other_vault(made: str, path: str, *, is_accepted: bool) -> IndexIncomplete:
    """The index belongs to another vault than the configured one."""
    return IndexIncomplete(
        f"{path} is not searchable: the index was made of another vault, {made}.",
        "Run `obsidian-rag index`."
        if is_accepted
        else "Run `obsidian-rag index --accept-removals` to index it instead, or"
        f" `obsidian-rag init --vault {made}` to go back.",
    )
