"""Choosing a vault: which ones are offered, and what another one would replace."""

import contextlib
import os
import sys
from pathlib import Path

from obsidian_rag.config import Config
from obsidian_rag.engine.engine import Engine
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.index import IndexedVault, allow_replacement, vault_to_replace
from obsidian_rag.vault import obsidian_vaults


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
        return vault_to_replace(engine)
    return None


def accept_replacement(config: Config, *, is_accepted: bool) -> None:
    """Remember, or forget, that the next index run may replace the index by one of this vault."""
    if config.database.exists():
        with contextlib.suppress(ObsidianRagError), contextlib.closing(Engine(config)) as engine:
            allow_replacement(engine, is_allowed=is_accepted)
