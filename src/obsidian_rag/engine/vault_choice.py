"""Choosing a vault: which ones are offered, and what another one would replace."""

import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from obsidian_rag.config import Config
from obsidian_rag.engine.engine import Engine
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.index import REPLACE_WITH, VaultPlace, vault_facts
from obsidian_rag.store import IndexState
from obsidian_rag.vault import obsidian_vaults


@dataclass(frozen=True, slots=True)
class IndexedVault:
    """A vault that an index was made of, its searchable notes, and the vault that replaces it."""

    path: str
    notes: int
    replaced_by: str


def offered_vaults() -> list[Path]:
    """The vaults that Obsidian lists in its own settings, the likeliest first."""
    return obsidian_vaults(os.environ, sys.platform)


def replaced_vault(config: Config) -> IndexedVault | None:
    """The vault whose index these settings would replace; None if they replace none.

    A vault that was moved, copied or renamed is not another one.
    """
    if not config.database.exists():
        return None
    # A damaged index is for the next run to tell.
    with contextlib.suppress(ObsidianRagError), contextlib.closing(Engine(config)) as engine:
        vault = engine.vaults.primary
        seen = vault_facts(vault, engine.database)
        notes = IndexState(engine.database).total_of(vault.link_id)[0]
        if seen.place is VaultPlace.OTHER and notes:
            return IndexedVault(seen.made_of, notes, str(vault.root))
    return None


def accept_replacement(config: Config, *, is_accepted: bool) -> None:
    """Remember, or forget, that the next index run may replace the index by one of this vault."""
    if config.database.exists():
        with contextlib.suppress(ObsidianRagError), contextlib.closing(Engine(config)) as engine:
            root = str(engine.vaults.configured.root)
            engine.database.put(REPLACE_WITH, root if is_accepted else None)
