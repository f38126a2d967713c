"""Linked vaults by the rules of the index; jobs, related notes and watchers hear of each change."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.foreground import run_index
from obsidian_rag.engine.health import health_of
from obsidian_rag.engine.job import Job
from obsidian_rag.index import (
    IndexResult,
    LinkRun,
    LinkStatus,
    Mode,
    RemovedCounts,
    link_vault,
    set_link_mode,
    set_link_paused,
    status_of_link,
    unlink_vault,
)
from obsidian_rag.relations import forget_vault
from obsidian_rag.store import Link
from obsidian_rag.vault import oddities


def add_link(
    engine: Engine,
    root_path: str,
    mode: str = "read_only",
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    name: str | None = None,
) -> Link:
    """Link the vault in this folder; it is searchable as its import goes on.

    Raises:
        InvalidArgument: the folder cannot be a linked vault.
        ReadOnly: `mode` asks for writing.
    """
    link = link_vault(engine, root_path, mode, include, exclude, name)
    vault = engine.vaults.one(link.link_id)
    _announce(engine)
    return replace(link, warnings=oddities(vault))


def remove_link(engine: Engine, link_id: str) -> RemovedCounts:
    """Forget a linked vault and all that was made of it; its files stay as they are.

    Raises:
        NotFound: no such link.
        InvalidArgument: it is the primary vault.
        Busy: another process writes the index.
    """
    end_runs, forget_relations = partial(_end_runs, engine), partial(forget_vault, engine)
    removed = unlink_vault(engine, link_id, end_runs, forget_relations)
    _announce(engine)
    return removed


def change_link(
    engine: Engine, link_id: str, mode: str | None = None, is_paused: bool | None = None
) -> Link:
    """Change the mode of a linked vault, pause it or go on with it; what is None stays.

    While a vault is paused it is left alone; what is indexed stays searchable.

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
            _end_runs(engine, link.link_id)
        _announce(engine)
    return engine.vaults.link(link.link_id)


def sync_link(engine: Engine, link_id: str) -> Job | IndexResult:
    """Make the index agree with one vault: a job where a daemon runs, a run here otherwise.

    Raises:
        NotFound: no such link.
        InvalidArgument: it is paused.
        VaultAway: its folder is not there.
    """
    link = engine.vaults.unpaused(link_id)
    if engine.live is not None:
        return engine.live.jobs.request(Mode.SYNC, link_id=link.link_id)
    return run_index(engine, Mode.SYNC, link_id=link.link_id)


def link_status(engine: Engine, link_id: str, limit: int = 50) -> LinkStatus:
    """How far a link is, and what waits; of the primary vault, the health of everything.

    Raises:
        NotFound: no such link.
    """
    link = engine.vaults.link(link_id)
    job = engine.live.jobs.for_link(link.link_id) if engine.live is not None else None
    run = LinkRun(job.progress, job.stored, job.began) if job is not None else None
    return status_of_link(engine, link, run, partial(health_of, engine), limit)


def _end_runs(engine: Engine, link_id: str) -> None:
    if engine.live is not None:
        engine.live.jobs.end_link(link_id)


def _announce(engine: Engine) -> None:
    """Let a living engine watch, sync and tell what it has to now."""
    if engine.live is not None:
        engine.live.links_changed()
