"""Counts of each vault and the files that are left out, as the database has them."""

from collections.abc import Iterable
from dataclasses import dataclass

from obsidian_rag.health.facts import HealthFacts
from obsidian_rag.health.vault_presence import VaultPlace
from obsidian_rag.store import Database, EmbeddingStatus, IndexState, Queue
from obsidian_rag.vault import Vault


@dataclass(frozen=True, slots=True)
class FileTotals:
    """Number of files of a vault that are searchable, queued, failed or skipped."""

    indexed: int
    pending: int
    failed: int
    skipped: int
    chunks: int


@dataclass(frozen=True, slots=True)
class FileNotice:
    """A file that is not fully searchable, and why."""

    file: str
    status: str
    reason: str
    link_id: str = ""
    vault: str = ""

    @property
    def is_left_out(self) -> bool:
        """Whether it is not searchable at all, for another reason than `rag: false`."""
        return self.status != "warning" and self.reason != "rag_false"


@dataclass(frozen=True, slots=True)
class VaultReport:
    """One vault and its counts."""

    link_id: str
    name: str
    label: str
    root_path: str
    mode: str
    is_paused: bool
    is_there: bool
    indexed: int
    chunks: int
    pending: int


def file_totals(database: Database, link_id: str) -> FileTotals:
    """The counts of one vault."""
    state = IndexState(database)
    files, chunks = state.total_of(link_id)
    counts = state.counts(link_id)
    failed, skipped = counts[EmbeddingStatus.FAILED], counts[EmbeddingStatus.SKIPPED]
    return FileTotals(files, Queue(database).size(link_id), failed, skipped, chunks)


def vault_reports(
    vaults: Iterable[Vault], database: Database, found: HealthFacts
) -> tuple[VaultReport, ...]:
    """Every vault with its counts; `found` says whether each is there."""
    state, queue = IndexState(database), Queue(database)
    there = {one.link_id: one.place is VaultPlace.THERE for one in found.linked}
    is_primary_there = found.vault.place is VaultPlace.THERE
    reports = []
    for vault in vaults:
        files, chunks = state.total_of(vault.link_id)
        reports.append(
            VaultReport(
                vault.link_id,
                vault.name,
                vault.label,
                str(vault.root),
                vault.mode.value,
                vault.is_paused,
                is_primary_there if vault.is_primary else there.get(vault.link_id, True),
                files,
                chunks,
                queue.size(vault.link_id),
            )
        )
    return tuple(reports)


def file_notices(vaults: Iterable[Vault], database: Database) -> tuple[FileNotice, ...]:
    """Every file that is not fully searchable."""
    state = IndexState(database)
    return tuple(
        FileNotice(
            item.rel_path,
            "warning" if item.status is EmbeddingStatus.INDEXED else item.status.value,
            item.reason or item.parse_error or "",
            vault.link_id,
            vault.name,
        )
        for vault in vaults
        for item in state.troubled(vault.link_id)
    )
