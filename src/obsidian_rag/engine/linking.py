"""Choosing and linking vaults; jobs, related notes and watchers follow each change."""

import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from obsidian_rag.config import Config
from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.health import health_of
from obsidian_rag.engine.index_run import run_index
from obsidian_rag.engine.job import Job
from obsidian_rag.errors import InvalidArgument, ObsidianRagError
from obsidian_rag.health import (
    FileTotals,
    HealthAnswer,
    IndexedVault,
    allow_replacement,
    assess_vault,
    file_totals,
    linked_facts,
    vault_to_replace,
)
from obsidian_rag.index import IndexResult, Mode, Phase
from obsidian_rag.livesync import synced_root
from obsidian_rag.relations import forget_vault
from obsidian_rag.store import (
    IndexState,
    Link,
    LinkFact,
    LinkFacts,
    Queue,
    QueuedFile,
    writer_lock,
)
from obsidian_rag.vault import (
    VaultMode,
    check_link_mode,
    check_link_texts,
    configured_vault,
    link_warnings,
    obsidian_vaults,
    resolve_link_root,
)

_PHASES = {Phase.SCANNING: "scan", Phase.HASHING: "hash", Phase.PARSING: "parse"}
# A run over the removed link ends between two groups of files.
_UNLINK_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class RemovedCounts:
    """What was removed from the index with a link; the vault's files are untouched."""

    files: int
    chunks: int
    relations: int
    queued: int


@dataclass(frozen=True, slots=True)
class LinkProgress:
    """`phase` is scan, hash, parse, embed or done; total 0 means not known yet."""

    phase: str
    current: int
    total: int
    is_running: bool = False
    files_per_s: float | None = None
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True)
class LinkStatus:
    """Status of a link; `queue` is limited to the requested number of rows."""

    link: Link
    label: str
    health: HealthAnswer
    progress: LinkProgress
    totals: FileTotals
    queue: tuple[QueuedFile, ...]


def offered_vaults() -> list[Path]:
    """The vaults that Obsidian lists in its own settings, the most likely first."""
    return obsidian_vaults(os.environ, sys.platform)


def replaced_vault(config: Config) -> IndexedVault | None:
    """The vault whose index these settings would replace, if any.

    A vault that was moved, copied or renamed counts as the same vault.
    """
    if not config.database.exists():
        return None
    # The next run reports a damaged index.
    with contextlib.suppress(ObsidianRagError), contextlib.closing(Engine(config)) as engine:
        return vault_to_replace(engine.vaults.primary, engine.database)
    return None


def accept_replacement(config: Config, *, is_accepted: bool) -> None:
    """Set whether the next index run may replace the index with one of this vault."""
    if config.database.exists():
        with contextlib.suppress(ObsidianRagError), contextlib.closing(Engine(config)) as engine:
            vault = configured_vault(config)
            allow_replacement(vault, engine.database, is_allowed=is_accepted)


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
        SecurityViolation: a folder to include or exclude is outside the vault.
        ReadOnly: `mode` asks for writing.
    """
    check_link_mode(mode)
    check_link_texts(include, exclude, name)
    synced = synced_root(engine.config)
    root = resolve_link_root(root_path, engine.vaults, engine.config.home, synced)
    wanted = (name or root.name or "vault").strip()
    engine.vaults.remember_primary()
    with engine.database.transaction():
        link = engine.vaults.links.add(root, mode, wanted, include, exclude)
        LinkFacts(engine.database, link.link_id).put(LinkFact.FIRST_UNFINISHED, "1")
    vault = engine.vaults.one(link.link_id)
    engine.live.links_changed()
    return replace(link, warnings=link_warnings(vault))


def remove_link(engine: Engine, link_id: str) -> RemovedCounts:
    """Remove a linked vault and all data derived from it; its files stay unchanged.

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
    # A run over it, in any process, ends between two groups of files.
    engine.vaults.links.set_enabled(link.link_id, is_enabled=False)
    engine.live.end_jobs_for(link.link_id)
    home = engine.config.home
    with writer_lock(home, "unlink", wait_s=_UNLINK_TIMEOUT_S):
        files, chunks = IndexState(engine.database).total_of(link.link_id)
        queued = Queue(engine.database).size(link.link_id)
        # Remove the link last: after a crash before that, a second call finishes the work.
        if engine.chunks.exists():
            engine.chunks.remove_link(link.link_id)
        relations = forget_vault(home, engine.config.settings.relations, link.link_id)
        engine.vaults.links.remove(link.link_id)
    engine.live.links_changed()
    return RemovedCounts(files, chunks, relations, queued)


def change_link(
    engine: Engine, link_id: str, mode: str | None = None, is_paused: bool | None = None
) -> Link:
    """Change the mode of a vault, pause it or resume it; None leaves it unchanged.

    A paused vault is not synced; what is indexed stays searchable.

    Raises:
        NotFound: no such link.
        ReadOnly: a linked vault cannot be made writable.
        InvalidArgument: the primary vault can neither be read-only nor paused.
    """
    link = engine.vaults.link(link_id)
    if mode is not None:
        _set_mode(engine, link, mode)
    if is_paused is not None:
        if is_paused and link.is_primary:
            raise InvalidArgument("Only linked vaults can be paused.", "Stop the daemon instead.")
        engine.vaults.links.set_paused(link.link_id, is_paused=is_paused)
        if is_paused:
            engine.live.end_jobs_for(link.link_id)
        engine.live.links_changed()
    return engine.vaults.link(link.link_id)


def _set_mode(engine: Engine, link: Link, mode: str) -> None:
    if not link.is_primary:
        check_link_mode(mode)
    elif mode != VaultMode.READ_WRITE:
        raise InvalidArgument(
            "The primary vault is always read_write.", "Reading and searching never write to it."
        )
    engine.vaults.links.set_mode(link.link_id, mode)


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
    vault = engine.vaults.one(link.link_id)
    totals = file_totals(engine.database, link.link_id)
    if vault.is_primary:
        health = health_of(engine)
    else:
        facts = linked_facts(vault, engine.database)
        health = assess_vault(facts, is_running=job is not None)
    progress = _progress(job, totals)
    queue = tuple(Queue(engine.database).rows(link.link_id, limit))
    return LinkStatus(link, vault.label, health, progress, totals, queue)


def _progress(job: Job | None, totals: FileTotals) -> LinkProgress:
    """How far a vault is: from its job's last report or, before one, from the database."""
    if job is None or job.progress is None:
        phase = "parse" if totals.pending else "done"
        total = totals.indexed + totals.pending
        return LinkProgress(phase, totals.indexed, total, job is not None)
    rate = left = None
    if job.stored is not None and job.stored.current:
        rate = job.stored.current / max(job.worked_s, 0.001)
        left = (job.stored.total - job.stored.current) / rate
    phase = _PHASES.get(job.progress.phase, "embed")
    return LinkProgress(phase, job.progress.current, job.progress.total, True, rate, left)
