"""Linked vaults: link, change, unlink, and their status."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from obsidian_rag.errors import InvalidArgument
from obsidian_rag.index.health import HealthAnswer
from obsidian_rag.index.place import IndexPlace
from obsidian_rag.index.probes import vault_health
from obsidian_rag.index.progress import Progress
from obsidian_rag.index.report import (
    FileTotals,
    LinkProgress,
    file_totals,
    running_progress,
    waiting_progress,
)
from obsidian_rag.index.vault_check import FIRST_UNFINISHED
from obsidian_rag.store import IndexState, Link, LinkFacts, Queue, QueuedFile, writer_lock
from obsidian_rag.vault import VaultMode, check_link_mode, check_link_texts, linkable_root

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
class LinkRun:
    """A run over a link: its last progress, what it has stored, and its duration."""

    progress: Progress | None
    stored: Progress | None
    worked_s: float


@dataclass(frozen=True, slots=True)
class LinkStatus:
    """Status of a link; `queue` is limited to the requested number of rows."""

    link: Link
    label: str
    health: HealthAnswer
    progress: LinkProgress
    totals: FileTotals
    queue: tuple[QueuedFile, ...]


def link_vault(
    place: IndexPlace,
    root_path: str,
    mode: str,
    include: Sequence[str],
    exclude: Sequence[str],
    name: str | None,
    synced: Path | None,
) -> Link:
    """Link the vault in this folder, without reading it yet; `synced` is LiveSync's folder.

    Raises:
        InvalidArgument: the folder cannot be a linked vault.
        SecurityViolation: a folder to include or exclude is outside the vault.
        ReadOnly: `mode` asks for writing.
    """
    check_link_mode(mode)
    check_link_texts(include, exclude, name)
    root = linkable_root(root_path, place.vaults, place.config.home, synced)
    wanted = (name or root.name or "vault").strip()
    place.vaults.remember_primary()
    with place.database.transaction():
        link = place.vaults.links.add(root, mode, wanted, include, exclude)
        LinkFacts(place.database, link.link_id).put(FIRST_UNFINISHED, "1")
    return link


def unlink_vault(
    place: IndexPlace,
    link_id: str,
    end_runs: Callable[[str], None],
    forget_relations: Callable[[str], int],
) -> RemovedCounts:
    """Remove a linked vault and all its data; both functions get its link id.

    Raises:
        NotFound: no such link.
        InvalidArgument: it is the primary vault.
        Busy: another process writes the index.
    """
    link = place.vaults.link(link_id)
    if link.is_primary:
        raise InvalidArgument(
            "The primary vault cannot be unlinked.",
            "`obsidian-rag init --vault …` chooses another one.",
        )
    # A run over it, in any process, ends between two groups of files.
    place.vaults.links.set_enabled(link.link_id, is_enabled=False)
    end_runs(link.link_id)
    with writer_lock(place.config.home, "unlink", wait_s=_UNLINK_TIMEOUT_S):
        files, chunks = IndexState(place.database).total_of(link.link_id)
        queued = Queue(place.database).size(link.link_id)
        # Remove the link last: after a crash before that, a second call finishes the work.
        if place.chunks.exists():
            place.chunks.remove_link(link.link_id)
        relations = forget_relations(link.link_id)
        place.vaults.links.remove(link.link_id)
    return RemovedCounts(files, chunks, relations, queued)


def set_link_mode(place: IndexPlace, link: Link, mode: str) -> None:
    """Make a vault read-only or writable.

    Raises:
        ReadOnly: a linked vault cannot be made writable.
        InvalidArgument: the primary vault cannot be made read-only.
    """
    if not link.is_primary:
        check_link_mode(mode)
    elif mode != VaultMode.READ_WRITE:
        raise InvalidArgument(
            "The primary vault is always read_write.", "Reading and searching never write to it."
        )
    place.vaults.links.set_mode(link.link_id, mode)


def set_link_paused(place: IndexPlace, link: Link, *, is_paused: bool) -> None:
    """Pause or resume a linked vault.

    Raises:
        InvalidArgument: it is the primary vault.
    """
    if is_paused and link.is_primary:
        raise InvalidArgument("Only linked vaults can be paused.", "Stop the daemon instead.")
    place.vaults.links.set_paused(link.link_id, is_paused=is_paused)


def status_of_link(
    place: IndexPlace,
    link: Link,
    run: LinkRun | None,
    health_of_all: Callable[[], HealthAnswer],
    limit: int,
) -> LinkStatus:
    """Status and queue of a link; the primary vault's health is that of everything."""
    vault = place.vaults.one(link.link_id)
    totals = file_totals(place.database, link.link_id)
    if vault.is_primary:
        health = health_of_all()
    else:
        health = vault_health(place, vault, is_running=run is not None)
    if run is None or run.progress is None:
        progress = waiting_progress(totals, is_running=run is not None)
    else:
        progress = running_progress(run.progress, run.stored, run.worked_s)
    queue = tuple(Queue(place.database).rows(link.link_id, limit))
    return LinkStatus(link, vault.label, health, progress, totals, queue)
