"""Whether the indexed vault is there, missing, or replaced by another one."""

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from obsidian_rag.index.brake import (
    REPLACE_WITH,
    Away,
    MadeOf,
    Root,
    away_before,
    compare_roots,
    is_away,
)
from obsidian_rag.index.place import IndexPlace
from obsidian_rag.index.run import FINGERPRINT
from obsidian_rag.index.vault_check import indexed_vault, is_replacing
from obsidian_rag.store import Database, IndexState, LinkFacts, Manifest
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
    root, books = vault.root, LinkFacts(database, vault.link_id).all()
    made = indexed_vault(database, vault, books)
    facts = VaultFacts(path=str(root))
    if not vault.is_primary:
        facts = replace(facts, link_id=vault.link_id, name=vault.name)
    elif made is None or database.get(FINGERPRINT) is None:
        return facts
    made_path = made.path if made is not None else ""
    facts = replace(facts, made_of=made_path, is_replacing=is_replacing(database, vault))
    identity = root_identity(root)
    if identity is None:
        return replace(facts, place=VaultPlace.AWAY)
    if made is None:
        return facts
    away = away_before(books, str(root))
    if away is not None and len(find_files(root, away.missing)) < len(away.missing):
        return replace(facts, place=VaultPlace.AWAY, counted=away)
    if identity == made.identity and _has_notes(database, root, vault.link_id):
        return facts
    return _compare_folder(database, facts, made, vault.link_id)


def vault_to_replace(place: IndexPlace) -> IndexedVault | None:
    """The vault whose index a run with the current settings would replace, if any.

    A vault that was moved, copied or renamed still counts as the same one.
    """
    vault = place.vaults.primary
    seen = vault_facts(vault, place.database)
    notes = IndexState(place.database).total_of(vault.link_id)[0]
    if seen.place is VaultPlace.OTHER and notes:
        return IndexedVault(seen.made_of, notes, str(vault.root))
    return None


def allow_replacement(place: IndexPlace, *, is_allowed: bool) -> None:
    """Allow the next run to replace the index by one of this vault, or revoke that."""
    root = str(place.vaults.configured.root)
    place.database.put(REPLACE_WITH, root if is_allowed else None)


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
