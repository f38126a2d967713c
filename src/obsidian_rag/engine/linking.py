"""Linked vaults: folders elsewhere that become searchable where they are, without a write."""

import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.health import HealthAnswer
from obsidian_rag.engine.indexing import run_index
from obsidian_rag.engine.job import Job
from obsidian_rag.engine.link_progress import LinkProgress, progress_of
from obsidian_rag.engine.probes import vault_health
from obsidian_rag.errors import InvalidArgument, NotFound, ReadOnly, VaultAway
from obsidian_rag.index import FIRST_UNFINISHED, IndexResult, Listener, Mode, Stop
from obsidian_rag.relations import forget_vault
from obsidian_rag.store import (
    EmbeddingStatus,
    IndexState,
    Link,
    LinkFacts,
    Links,
    Queue,
    QueuedFile,
    writer_lock,
)
from obsidian_rag.vault import Vault, VaultMode

# How long a new folder is looked through for links that lead out of it; status tells the rest.
_LOOK_S = 0.5
_MOST_WARNINGS = 20
# A run of the link that is removed ends between two groups of files.
_UNLINK_WAIT_S = 30.0
_ODD = {
    "outside_vault": "leads out of the vault and is not read",
    "symlink_loop": "leads in a circle and is not followed",
}


@dataclass(frozen=True, slots=True)
class RemovedCounts:
    """What was dropped with a link; its files are untouched."""

    files: int
    chunks: int
    relations: int
    queued: int


@dataclass(frozen=True, slots=True)
class LinkTotals:
    """How many files of a link are searchable, wait, failed or are left out."""

    indexed: int
    pending: int
    failed: int
    skipped: int
    chunks: int


@dataclass(frozen=True, slots=True)
class LinkStatus:
    """How far a link is; `queue` has at most as many rows as were asked for."""

    link: Link
    label: str
    health: HealthAnswer
    progress: LinkProgress
    totals: LinkTotals
    queue: tuple[QueuedFile, ...]

    @property
    def last_scan_at(self) -> str | None:
        """When its folder was last walked."""
        return self.link.last_scan_at

    @property
    def last_error(self) -> str | None:
        """Why it could not be walked, if so."""
        return self.link.last_error


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
    _refuse_writing(mode)
    root = _checked_root(engine, root_path)
    wanted = (name or root.name or "vault").strip()
    engine.vaults.remember_primary()
    with engine.database.transaction():
        link = Links(engine.database).add(root, mode, wanted, include, exclude)
        LinkFacts(engine.database, link.link_id).put(FIRST_UNFINISHED, "1")
    vault = engine.vaults.one(link.link_id)
    _announce(engine)
    return replace(link, warnings=_oddities(vault))


def links(engine: Engine) -> list[Link]:
    """Every vault, the primary one first."""
    return Links(engine.database).all()


def find_link(engine: Engine, wanted: str) -> Link:
    """The link with this name or id.

    Raises:
        NotFound: there is none.
    """
    known = Links(engine.database).all()
    named = {wanted, wanted.casefold()}
    link = next((one for one in known if {one.link_id, one.name.casefold()} & named), None)
    if link is None:
        names = ", ".join(f"'{one.name}'" for one in known) or "none"
        raise NotFound(f"No vault '{wanted}' is linked.", f"Linked are {names}.")
    return link


def remove_link(engine: Engine, link_id: str) -> RemovedCounts:
    """Forget a linked vault and all that was made of it; its files stay as they are.

    Raises:
        NotFound: no such link.
        InvalidArgument: it is the primary vault.
        Busy: another process writes the index.
    """
    link = find_link(engine, link_id)
    if link.is_primary:
        raise InvalidArgument(
            "The primary vault cannot be unlinked.",
            "`obsidian-rag init --vault …` chooses another one.",
        )
    # A run over it, in whatever process, ends between two groups of files.
    Links(engine.database).set_enabled(link.link_id, is_enabled=False)
    if engine.live is not None:
        engine.live.jobs.end_link(link.link_id)
    with writer_lock(engine.config.home, "unlink", wait_s=_UNLINK_WAIT_S):
        files, chunks = IndexState(engine.database).total_of(link.link_id)
        queued = Queue(engine.database).size(link.link_id)
        # The link last: until then a crash leaves work that a second call does.
        if engine.chunks.exists():
            engine.chunks.remove_link(link.link_id)
        relations = forget_vault(engine, link.link_id)
        Links(engine.database).remove(link.link_id)
    _announce(engine)
    return RemovedCounts(files, chunks, relations, queued)


def set_mode(engine: Engine, link_id: str, mode: str) -> Link:
    """Say whether a linked vault may be written.

    Raises:
        NotFound: no such link.
        ReadOnly: `mode` asks for writing.
    """
    link = find_link(engine, link_id)
    if not link.is_primary:
        _refuse_writing(mode)
    elif mode != VaultMode.READ_WRITE:
        raise InvalidArgument(
            "The primary vault is always read_write.", "Reading and searching never write to it."
        )
    Links(engine.database).set_mode(link.link_id, mode)
    return find_link(engine, link.link_id)


def pause(engine: Engine, link_id: str) -> Link:
    """Leave a linked vault alone until it is resumed; what is indexed stays searchable.

    Raises:
        NotFound: no such link.
        InvalidArgument: it is the primary vault.
    """
    link = find_link(engine, link_id)
    if link.is_primary:
        raise InvalidArgument("Only linked vaults can be paused.", "Stop the daemon instead.")
    Links(engine.database).set_paused(link.link_id, is_paused=True)
    if engine.live is not None:
        engine.live.jobs.end_link(link.link_id)
    _announce(engine)
    return find_link(engine, link.link_id)


def resume(engine: Engine, link_id: str) -> Link:
    """Go on with a vault that was paused.

    Raises:
        NotFound: no such link.
    """
    link = find_link(engine, link_id)
    Links(engine.database).set_paused(link.link_id, is_paused=False)
    _announce(engine)
    return find_link(engine, link.link_id)


def change_link(
    engine: Engine, link_id: str, mode: str | None = None, is_paused: bool | None = None
) -> Link:
    """Change the mode of a linked vault, pause it or go on with it; what is None stays.

    Raises:
        NotFound: no such link.
        ReadOnly: `mode` asks for writing.
        InvalidArgument: it is the primary vault.
    """
    link = find_link(engine, link_id)
    if mode is not None:
        link = set_mode(engine, link.link_id, mode)
    if is_paused is not None:
        link = (pause if is_paused else resume)(engine, link.link_id)
    return link


def sync_link(
    engine: Engine,
    link_id: str,
    listener: Listener = lambda _: None,
    stop: Stop = lambda: False,
) -> Job | IndexResult:
    """Make the index agree with one vault: a job where a daemon runs, a run here otherwise.

    Raises:
        NotFound: no such link.
        InvalidArgument: it is paused.
        VaultAway: its folder is not there.
    """
    link = find_link(engine, link_id)
    if link.is_paused:
        raise InvalidArgument(
            f"'{link.name}' is paused.", f"Run `obsidian-rag link resume {link.name}` first."
        )
    if engine.live is not None:
        return engine.live.jobs.request(Mode.SYNC, link_id=link.link_id)
    return run_index(engine, Mode.SYNC, listener, stop, link_id=link.link_id)


def link_status(engine: Engine, link_id: str, limit: int = 50) -> LinkStatus:
    """How far a link is, and what waits.

    Raises:
        NotFound: no such link.
    """
    link = find_link(engine, link_id)
    vault = engine.vaults.one(link.link_id)
    state, queue = IndexState(engine.database), Queue(engine.database)
    files, chunks = state.total_of(link.link_id)
    counts = state.counts(link.link_id)
    totals = LinkTotals(
        indexed=files,
        pending=queue.size(link.link_id),
        failed=counts[EmbeddingStatus.FAILED],
        skipped=counts[EmbeddingStatus.SKIPPED],
        chunks=chunks,
    )
    return LinkStatus(
        link=link,
        label=vault.label,
        health=vault_health(engine, vault),
        progress=progress_of(engine, link.link_id, totals.indexed, totals.pending),
        totals=totals,
        queue=tuple(queue.rows(link.link_id, limit)),
    )


def _announce(engine: Engine) -> None:
    """Let a living engine watch, sync and tell what it has to now."""
    if engine.live is not None:
        engine.live.links_changed()


def _refuse_writing(mode: str) -> None:
    if mode not in tuple(VaultMode):
        raise InvalidArgument(
            f"'{mode}' is no mode.", "Use read_only: linked vaults are never written to."
        )
    if mode == VaultMode.READ_WRITE:
        raise ReadOnly(
            "Linked vaults are read_only: how two programs' edits would be joined is not decided.",
            "Leave the mode out, or make it the primary vault with `obsidian-rag init --vault …`.",
        )


def _checked_root(engine: Engine, root_path: str) -> Path:
    given = Path(os.path.expanduser(root_path))  # noqa: PTH111  (the text may be anything)
    if not given.is_absolute():
        raise InvalidArgument(f"'{root_path}' is not an absolute path.", "Give the whole path.")
    try:
        root = given.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or "it leads in a circle"
        raise InvalidArgument(
            f"'{root_path}' cannot be opened: {why}.", "Check the path and that its disk is there."
        ) from None
    if not root.is_dir():
        raise InvalidArgument(f"'{root}' is not a folder.", "Name the vault's folder.")
    if not os.access(root, os.R_OK | os.X_OK):
        raise InvalidArgument(f"'{root}' may not be read.", "Give yourself the right to read it.")
    _refuse_overlap(engine, root)
    return root


def _refuse_overlap(engine: Engine, root: Path) -> None:
    for vault in engine.vaults:
        other = vault.root.resolve()
        if root == other:
            raise InvalidArgument(
                f"'{root}' is linked already, as '{vault.name}' (link id"
                f" {vault.link_id or 'none yet'}).",
                "`obsidian-rag link list` shows all of them.",
            )
        if root.is_relative_to(other) or other.is_relative_to(root):
            raise InvalidArgument(
                f"'{root}' and the vault '{vault.name}' ({other}) lie in each other.",
                "Link a folder that shares no files with another vault; include and exclude"
                " narrow one down.",
            )
    home = engine.config.home.resolve()
    if root.is_relative_to(home) or home.is_relative_to(root):
        raise InvalidArgument(
            f"'{root}' and the data folder ({home}) lie in each other.", "Link another folder."
        )


def _oddities(vault: Vault) -> tuple[str, ...]:
    """Links that lead out of a vault or in circles, as far as half a second tells."""
    until = time.monotonic() + _LOOK_S
    with contextlib.suppress(NotFound, VaultAway):
        found = vault.scan(lambda: time.monotonic() > until)
        odd = [item for item in found.skipped if item.reason in _ODD]
        told = [f"{item.rel_path} {_ODD[item.reason]}" for item in odd[:_MOST_WARNINGS]]
        more = len(odd) - len(told)
        return (*told, f"and {more} more") if more else tuple(told)
    return ()
