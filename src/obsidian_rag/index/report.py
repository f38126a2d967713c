"""What the books say of each vault: counts, how far its import is, and files that are left out."""

from dataclasses import dataclass

from obsidian_rag.errors import NotFound
from obsidian_rag.index.changed import changed_files
from obsidian_rag.index.health import HealthFacts
from obsidian_rag.index.place import IndexPlace
from obsidian_rag.index.progress import Phase, Progress
from obsidian_rag.index.vault_place import VaultPlace
from obsidian_rag.store import Database, EmbeddingStatus, IndexState, Queue

_PHASES = {Phase.SCANNING: "scan", Phase.HASHING: "hash", Phase.PARSING: "parse"}
# A status must answer at once; a vault that takes longer to walk is told from the books alone.
_WALK_S = 0.4
_MOST_WALKED = 30_000


@dataclass(frozen=True, slots=True)
class FileTotals:
    """How many files of a vault are searchable, wait, failed or are left out."""

    indexed: int
    pending: int
    failed: int
    skipped: int
    chunks: int


@dataclass(frozen=True, slots=True)
class LinkProgress:
    """`phase` is scan, hash, parse, embed or done; a total of 0 is not known yet."""

    phase: str
    current: int
    total: int
    is_running: bool = False
    files_per_s: float | None = None
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True)
class FileNotice:
    """A file that is not searchable, or only in part, and why."""

    file: str
    status: str
    reason: str
    link_id: str = ""
    vault: str = ""


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


def waiting_progress(totals: FileTotals, *, is_running: bool) -> LinkProgress:
    """How far a vault is whose run has told nothing yet, or that has none."""
    phase = "parse" if totals.pending else "done"
    return LinkProgress(phase, totals.indexed, totals.indexed + totals.pending, is_running)


def running_progress(now: Progress, stored: Progress | None, seconds: float) -> LinkProgress:
    """How far a run is that began so many seconds ago, and has stored so many files."""
    rate = left = None
    if stored is not None and stored.current:
        rate = stored.current / max(seconds, 0.001)
        left = (stored.total - stored.current) / rate
    phase = _PHASES.get(now.phase, "embed")
    return LinkProgress(phase, now.current, now.total, True, rate, left)


def vault_reports(place: IndexPlace, found: HealthFacts) -> tuple[VaultReport, ...]:
    """Every vault and its counts; where each is, a look has found."""
    state, queue = IndexState(place.database), Queue(place.database)
    there = {one.link_id: one.place is VaultPlace.THERE for one in found.linked}
    is_primary_there = found.vault.place is VaultPlace.THERE
    reports = []
    for vault in place.vaults:
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


def file_notices(place: IndexPlace) -> tuple[FileNotice, ...]:
    """Every file that is not searchable, or only in part."""
    state = IndexState(place.database)
    return tuple(
        FileNotice(
            item.rel_path,
            "warning" if item.status is EmbeddingStatus.INDEXED else item.status.value,
            item.reason or item.parse_error or "",
            vault.link_id,
            vault.name,
        )
        for vault in place.vaults
        for item in state.troubled(vault.link_id)
    )


def ollama_status(place: IndexPlace, found: HealthFacts) -> str:
    """Whether Ollama answers, if it is the embedder."""
    if place.embedder.provider != "ollama":
        return "not_used"
    return "up" if found.embedder is None else "down"


def unindexed_files(place: IndexPlace, found: HealthFacts, indexed: int) -> tuple[int, bool]:
    """How many files differ from the index, and whether the vaults themselves were asked."""
    owed = Queue(place.database).size()
    is_reachable = all(one.place is VaultPlace.THERE for one in (found.vault, *found.linked))
    if indexed > _MOST_WALKED or not is_reachable:
        return owed, False
    try:
        changed, is_complete = changed_files(place.vaults, place.database, _WALK_S)
    except NotFound:
        return owed, False
    return (max(owed, changed), True) if is_complete else (owed, False)
