"""Whether the indexed vaults are there, missing, or replaced by other ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from obsidian_rag.health.brake import (
    Away,
    MadeOf,
    Root,
    away_before,
    compare_roots,
    indexed_vault,
    is_away,
    is_replacing,
)
from obsidian_rag.store import Database, IndexFact, IndexState, LinkFact, LinkFacts, Manifest
from obsidian_rag.vault import Vault, find_files, root_identity

_SAMPLE_NOTES = 100
_SAMPLE_NOTES_PER_END = 4


class VaultPlace(StrEnum):
    """Whether the indexed vault is there, missing, or another one."""

    THERE = "there"
    AWAY = "away"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class VaultFacts:
    """A vault, the one its index was made from, and how many notes were found."""

    place: VaultPlace = VaultPlace.THERE
    path: str = ""
    made_of: str = ""
    is_replacing: bool = False
    # None: the folder itself is missing.
    counted: Away | None = None
    # Set for linked vaults only.
    link_id: str = ""
    name: str = ""
    is_paused: bool = False
    # Its first index is unfinished, with this many searchable notes.
    is_unfinished: bool = False
    indexed: int = 0


@dataclass(frozen=True, slots=True)
class IndexedVault:
    """An indexed vault, its number of searchable notes, and the vault replacing it."""

    path: str
    notes: int
    replaced_by: str


def vault_facts(vault: Vault, database: Database) -> VaultFacts:
    """Locate a vault by its folder and, in doubt, by a few of its notes."""
    root, known = vault.root, LinkFacts(database, vault.link_id).all()
    made = indexed_vault(database, vault, known)
    facts = VaultFacts(path=str(root))
    if not vault.is_primary:
        facts = replace(facts, link_id=vault.link_id, name=vault.name)
    elif made is None or database.get(IndexFact.FINGERPRINT) is None:
        return facts
    made_path = made.path if made is not None else ""
    facts = replace(facts, made_of=made_path, is_replacing=is_replacing(database, vault))
    identity = root_identity(root)
    if identity is None:
        return replace(facts, place=VaultPlace.AWAY)
    if made is None:
        return facts
    away = away_before(known, str(root))
    if away is not None and len(find_files(root, away.missing)) < len(away.missing):
        return replace(facts, place=VaultPlace.AWAY, counted=away)
    if identity == made.identity and _has_notes(database, root, vault.link_id):
        return facts
    return _compare_folder(database, facts, made, vault.link_id)


def see_vaults(
    vaults: Iterable[Vault], database: Database, known: Sequence[VaultFacts] = ()
) -> tuple[VaultFacts, tuple[VaultFacts, ...]]:
    """The primary vault and the linked ones: where they are, and how far their first index is.

    `known` are those that were located before; the others are located now.
    """
    seen = {one.link_id: one for one in known}
    primary, *linked = vaults
    return (
        seen.get("") or vault_facts(primary, database),
        tuple(linked_facts(vault, database, seen.get(vault.link_id)) for vault in linked),
    )


def linked_facts(vault: Vault, database: Database, known: VaultFacts | None = None) -> VaultFacts:
    """A linked vault and how far its first index is; located now unless `known`."""
    is_unfinished = LinkFacts(database, vault.link_id).get(LinkFact.FIRST_UNFINISHED) is not None
    return replace(
        known or vault_facts(vault, database),
        is_paused=vault.is_paused,
        is_unfinished=is_unfinished,
        indexed=IndexState(database).total_of(vault.link_id)[0] if is_unfinished else 0,
    )


def vault_to_replace(vault: Vault, database: Database) -> IndexedVault | None:
    """The vault whose index a run over this primary vault would replace, if any.

    A vault that was moved, copied or renamed still counts as the same one.
    """
    seen = vault_facts(vault, database)
    notes = IndexState(database).total_of(vault.link_id)[0]
    if seen.place is VaultPlace.OTHER and notes:
        return IndexedVault(seen.made_of, notes, str(vault.root))
    return None


def allow_replacement(vault: Vault, database: Database, *, is_allowed: bool) -> None:
    """Allow the next run to replace the index by one of this vault, or revoke that."""
    database.put(IndexFact.REPLACE_WITH, str(vault.root) if is_allowed else None)


def is_worth_a_try(vault: Vault, database: Database) -> bool:
    """Whether a sync may now find notes that were missing before."""
    away = away_before(LinkFacts(database, vault.link_id).all(), str(vault.root))
    return away is None or bool(find_files(vault.root, away.missing))


def _compare_folder(
    database: Database, facts: VaultFacts, made: MadeOf, link_id: str
) -> VaultFacts:
    """Decide whether a different folder is still the indexed vault."""
    root = Path(facts.path)
    known = Manifest(database).some(link_id, _SAMPLE_NOTES)
    found = find_files(root, known)
    match compare_roots(made, facts.path, root_identity(root), known, found):
        case Root.OTHER:
            return replace(facts, place=VaultPlace.OTHER)
        case kind:
            missing = [path for path in known if path not in found]
            if not known and facts.path != made.path:
                return replace(facts, place=VaultPlace.OTHER)
            if is_away(len(known), len(missing), kind):
                counted = Away.seen(facts.path, len(known), missing)
                return replace(facts, place=VaultPlace.AWAY, counted=counted)
            return facts


def _has_notes(database: Database, root: Path, link_id: str) -> bool:
    """Whether known notes are there; the inode alone may be reused by a recreated folder."""
    ends = Manifest(database).ends(link_id, _SAMPLE_NOTES_PER_END)
    return not ends or bool(find_files(root, ends))
