"""Reports on each vault from the database: counts, import progress, and files left out."""

from dataclasses import dataclass

from obsidian_rag.errors import NotFound
from obsidian_rag.index.health import HealthFacts
from obsidian_rag.index.place import IndexPlace
from obsidian_rag.index.probes import changed_files
from obsidian_rag.index.progress import Phase, Progress
from obsidian_rag.index.vault_place import VaultPlace
from obsidian_rag.store import Database, EmbeddingStatus, IndexState, Queue

_PHASES = {Phase.SCANNING: "scan", Phase.HASHING: "hash", Phase.PARSING: "parse"}
# Status must answer quickly; vaults that take longer to walk are reported from the database.
_MAX_WALK_S = 0.4
_MAX_WALKED_FILES = 30_000


@dataclass(frozen=True, slots=True)
class FileTotals:
    """Number of files of a vault that are searchable, queued, failed or skipped."""

    indexed: int
    pending: int
    failed: int
    skipped: int
    chunks: int


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


def waiting_progress(totals: FileTotals, *, is_running: bool) -> LinkProgress:
    """Progress of a vault without a run, or whose run has not reported yet."""
    phase = "parse" if totals.pending else "done"
    return LinkProgress(phase, totals.indexed, totals.indexed + totals.pending, is_running)


def running_progress(now: Progress, stored: Progress | None, seconds: float) -> LinkProgress:
    """Progress of a run after `seconds`, with the files `stored` so far."""
    rate = left = None
    if stored is not None and stored.current:
        rate = stored.current / max(seconds, 0.001)
        left = (stored.total - stored.current) / rate
    phase = _PHASES.get(now.phase, "embed")
    return LinkProgress(phase, now.current, now.total, True, rate, left)


def vault_reports(place: IndexPlace, found: HealthFacts) -> tuple[VaultReport, ...]:
    """Every vault with its counts; `found` says whether each is there."""
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
    """Every file that is not fully searchable."""
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
    """How many files differ from the index, and whether the vaults were walked for it."""
    owed = Queue(place.database).size()
    is_reachable = all(one.place is VaultPlace.THERE for one in (found.vault, *found.linked))
    if indexed > _MAX_WALKED_FILES or not is_reachable:
        return owed, False
    try:
        changed, is_complete = changed_files(place.vaults, place.database, _MAX_WALK_S)
    except NotFound:
        return owed, False
    return (max(owed, changed), True) if is_complete else (owed, False)
