"""Linked vaults: folders elsewhere that become searchable where they are, without a write."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.foreground import run_index
from obsidian_rag.engine.health import health_of
from obsidian_rag.engine.job import Job
from obsidian_rag.errors import InvalidArgument
from obsidian_rag.index import (
    FIRST_UNFINISHED,
    FileTotals,
    HealthAnswer,
    IndexResult,
    LinkProgress,
    Mode,
    file_totals,
    running_progress,
    vault_health,
    waiting_progress,
)
from obsidian_rag.relations import forget_vault
from obsidian_rag.store import IndexState, Link, LinkFacts, Queue, QueuedFile, writer_lock
from obsidian_rag.vault import VaultMode, check_link_mode, linkable_root, oddities

# A run of the link that is removed ends between two groups of files.
_UNLINK_WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class RemovedCounts:
    """What was dropped with a link; its files are untouched."""

    files: int
    chunks: int
    relations: int
    queued: int


@dataclass(frozen=True, slots=True)
class LinkStatus:
    """How far a link is; `queue` has at most as many rows as were asked for."""

    link: Link
    label: str
    health: HealthAnswer
    progress: LinkProgress
    totals: FileTotals
    queue: tuple[QueuedFile, ...]


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
    check_link_mode(mode)
    root = linkable_root(root_path, engine.vaults, engine.config.home)
    wanted = (name or root.name or "vault").strip()
    engine.vaults.remember_primary()
    with engine.database.transaction():
        link = engine.vaults.links.add(root, mode, wanted, include, exclude)
        LinkFacts(engine.database, link.link_id).put(FIRST_UNFINISHED, "1")
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
    link = engine.vaults.link(link_id)
    if link.is_primary:
        raise InvalidArgument(
            "The primary vault cannot be unlinked.",
            "`obsidian-rag init --vault …` chooses another one.",
        )
    # A run over it, in whatever process, ends between two groups of files.
    engine.vaults.links.set_enabled(link.link_id, is_enabled=False)
    if engine.live is not None:
        engine.live.jobs.end_link(link.link_id)
    with writer_lock(engine.config.home, "unlink", wait_s=_UNLINK_WAIT_S):
        files, chunks = IndexState(engine.database).total_of(link.link_id)
        queued = Queue(engine.database).size(link.link_id)
        # The link last: until then a crash leaves work that a second call does.
        if engine.chunks.exists():
            engine.chunks.remove_link(link.link_id)
        relations = forget_vault(engine, link.link_id)
        engine.vaults.links.remove(link.link_id)
    _announce(engine)
    return RemovedCounts(files, chunks, relations, queued)


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
        _set_mode(engine, link, mode)
    if is_paused is not None:
        _set_paused(engine, link, is_paused=is_paused)
    return engine.vaults.link(link.link_id)


def _set_mode(engine: Engine, link: Link, mode: str) -> None:
    if not link.is_primary:
        check_link_mode(mode)
    elif mode != VaultMode.READ_WRITE:
        raise InvalidArgument(
            "The primary vault is always read_write.", "Reading and searching never write to it."
        )
    engine.vaults.links.set_mode(link.link_id, mode)


def _set_paused(engine: Engine, link: Link, *, is_paused: bool) -> None:
    if is_paused and link.is_primary:
        raise InvalidArgument("Only linked vaults can be paused.", "Stop the daemon instead.")
    engine.vaults.links.set_paused(link.link_id, is_paused=is_paused)
    if is_paused and engine.live is not None:
        engine.live.jobs.end_link(link.link_id)
    _announce(engine)


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
    vault = engine.vaults.one(link.link_id)
    job = engine.live.jobs.for_link(link.link_id) if engine.live is not None else None
    totals = file_totals(engine.database, link.link_id)
    if vault.is_primary:
        health = health_of(engine)
    else:
        health = vault_health(engine, vault, is_running=job is not None)
    if job is None or job.progress is None:
        progress = waiting_progress(totals, is_running=job is not None)
    else:
        seconds = time.monotonic() - (job.began or 0.0)
        progress = running_progress(job.progress, job.stored, seconds)
    queue = tuple(Queue(engine.database).rows(link.link_id, limit))
    return LinkStatus(link, vault.label, health, progress, totals, queue)


def _announce(engine: Engine) -> None:
    """Let a living engine watch, sync and tell what it has to now."""
    if engine.live is not None:
        engine.live.links_changed()
