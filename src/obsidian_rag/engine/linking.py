"""Choosing and linking vaults; jobs, related notes and watchers follow each change."""

import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from obsidian_rag.config import Config
from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.foreground import run_index
from obsidian_rag.engine.health import health_of
from obsidian_rag.engine.job import Job
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.index import (
    IndexedVault,
    IndexResult,
    LinkRun,
    LinkStatus,
    Mode,
    RemovedCounts,
    allow_replacement,
    link_vault,
    set_link_mode,
    set_link_paused,
    status_of_link,
    unlink_vault,
    vault_to_replace,
)
from obsidian_rag.livesync import synced_root
from obsidian_rag.relations import forget_vault
from obsidian_rag.store import Link
from obsidian_rag.vault import obsidian_vaults, oddities


def offered_vaults() -> list[Path]:
    """The vaults that Obsidian lists in its own settings, the most likely first."""
    return obsidian_vaults(os.environ, sys.platform)


def replaced_vault(config: Config) -> IndexedVault | None:
    """The vault whose index these settings would replace; None if they replace none.

    A vault that was moved, copied or renamed counts as the same vault.
    """
    if not config.database.exists():
        return None
    # The next run reports a damaged index.
    with contextlib.suppress(ObsidianRagError), contextlib.closing(Engine(config)) as engine:
        return vault_to_replace(engine)
    return None


def accept_replacement(config: Config, *, is_accepted: bool) -> None:
    """Set whether the next index run may replace the index with one of this vault."""
    if config.database.exists():
        with contextlib.suppress(ObsidianRagError), contextlib.closing(Engine(config)) as engine:
            allow_replacement(engine, is_allowed=is_accepted)


def add_link(
    engine: Engine,
    root_path: str,
    mode: str = "read_only",
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    name: str | None = None,
) -> Link:
    """Link the vault in this folder; it becomes searchable during its import.

    Raises:
        InvalidArgument: the folder cannot be a linked vault.
        ReadOnly: `mode` asks for writing.
    """
    synced = synced_root(engine.config)
    link = link_vault(engine, root_path, mode, include, exclude, name, synced)
    vault = engine.vaults.one(link.link_id)
    engine.live.links_changed()
    return replace(link, warnings=oddities(vault))


def remove_link(engine: Engine, link_id: str) -> RemovedCounts:
    """Remove a linked vault and all data derived from it; its files stay unchanged.

    Raises:
        NotFound: no such link.
        InvalidArgument: it is the primary vault.
        Busy: another process writes the index.
    """
    forget_relations = partial(forget_vault, engine)
    removed = unlink_vault(engine, link_id, engine.live.end_jobs_for, forget_relations)
    engine.live.links_changed()
    return removed


def change_link(
    engine: Engine, link_id: str, mode: str | None = None, is_paused: bool | None = None
) -> Link:
    """Change the mode of a linked vault, pause it or resume it; None leaves it unchanged.

    A paused vault is not synced; what is indexed stays searchable.

    Raises:
        NotFound: no such link.
        ReadOnly: `mode` asks for writing.
        InvalidArgument: it is the primary vault.
    """
    link = engine.vaults.link(link_id)
    if mode is not None:
        set_link_mode(engine, link, mode)
    if is_paused is not None:
        set_link_paused(engine, link, is_paused=is_paused)
        if is_paused:
            engine.live.end_jobs_for(link.link_id)
        engine.live.links_changed()
    return engine.vaults.link(link.link_id)


def sync_link(engine: Engine, link_id: str) -> Job | IndexResult:
    """Sync one vault: as a job if a daemon runs, else in this process.

    Raises:
        NotFound: no such link.
        InvalidArgument: it is paused.
        VaultAway: its folder is missing.
    """
    link = engine.vaults.unpaused(link_id)
    if engine.live.jobs is not None:
        return engine.live.jobs.request(Mode.SYNC, link_id=link.link_id)
    return run_index(engine, Mode.SYNC, link_id=link.link_id)


def link_status(engine: Engine, link_id: str, limit: int = 50) -> LinkStatus:
    """The progress of a link and its queue; for the primary vault, the overall health.

    Raises:
        NotFound: no such link.
    """
    link = engine.vaults.link(link_id)
    job = engine.live.job_for(link.link_id)
    run = LinkRun(job.progress, job.stored, job.worked_s) if job is not None else None
    return status_of_link(engine, link, run, partial(health_of, engine), limit)
