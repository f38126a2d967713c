"""The state of an installation at a glance, without opening LanceDB or loading a model."""

from dataclasses import dataclass

from obsidian_rag.engine.changes import changed_files
from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.indexing import index_version, read_result
from obsidian_rag.errors import (
    IndexCorrupted,
    IndexNotFound,
    NotFound,
    ObsidianRagError,
    Status,
)
from obsidian_rag.index import FINGERPRINT, check, fingerprint
from obsidian_rag.store import EmbeddingStatus, IndexState, Manifest, Queue

# A status must answer at once; a vault that takes longer to walk is told from the books alone.
_WALK_S = 0.4
_MOST_WALKED = 30_000


@dataclass(frozen=True, slots=True)
class FileNotice:
    """A file that is not searchable, or only in part, and why."""

    file: str
    status: str
    reason: str


@dataclass(frozen=True, slots=True)
class StatusReport:
    """What `status` tells; `trouble` is the worst thing found."""

    plugin_health: Status
    total_docs: int
    total_chunks: int
    last_sync: str | None
    unindexed_files: int
    unindexed_checked: bool
    ollama_status: str
    active_job: None
    vault_path: str | None
    embedder: str
    index_version: str
    vault_mtime: str | None
    notices: tuple[FileNotice, ...]
    trouble: ObsidianRagError | None


def report_status(engine: Engine) -> StatusReport:
    """Look at everything that is cheap to look at.

    Raises:
        ConfigInvalid: no vault is configured.
        IndexCorrupted: the books cannot be read.
    """
    root = engine.config.vault_root
    state = IndexState(engine.database)
    files, chunks = state.totals()
    troubles: list[ObsidianRagError] = []
    if files == 0 or not engine.chunks.exists():
        troubles.append(IndexNotFound("There is no index yet.", "Run `obsidian-rag index`."))
    elif (damage := engine.chunks.damage()) is not None:
        troubles.append(
            IndexCorrupted(f"The index is damaged: {damage}.", "Run `obsidian-rag reindex`.")
        )
    unindexed, is_checked = _unindexed(engine, files, troubles)
    ollama = _ollama(engine, troubles)
    _fingerprint(engine, troubles)
    troubles.sort(key=lambda error: error.status != "unavailable")
    last = read_result(engine) or {}
    return StatusReport(
        plugin_health=troubles[0].status if troubles else "healthy",
        total_docs=files,
        total_chunks=chunks,
        last_sync=str(last["last_sync"]) if last.get("last_sync") else None,
        unindexed_files=unindexed,
        unindexed_checked=is_checked,
        ollama_status=ollama,
        active_job=None,
        vault_path=str(root),
        embedder=f"{engine.embedder.provider}:{engine.embedder.model}",
        index_version=index_version(engine),
        vault_mtime=Manifest(engine.database).newest(),
        notices=_notices(state),
        trouble=troubles[0] if troubles else None,
    )


def _notices(state: IndexState) -> tuple[FileNotice, ...]:
    return tuple(
        FileNotice(
            item.rel_path,
            "warning" if item.status is EmbeddingStatus.INDEXED else item.status.value,
            item.reason or item.parse_error or "",
        )
        for item in state.troubled()
    )


def _unindexed(engine: Engine, indexed: int, troubles: list[ObsidianRagError]) -> tuple[int, bool]:
    """Files that differ from the index, and whether the vault itself was asked."""
    owed = Queue(engine.database).size()
    if indexed > _MOST_WALKED:
        return owed, False
    try:
        changed, is_complete = changed_files(engine, _WALK_S)
    except NotFound as error:
        troubles.append(error)
        return owed, False
    return (max(owed, changed), True) if is_complete else (owed, False)


def _ollama(engine: Engine, troubles: list[ObsidianRagError]) -> str:
    if engine.config.settings.embedding.provider != "ollama":
        return "not_used"
    try:
        engine.embedder.probe()
    except ObsidianRagError as error:
        troubles.append(error)
        return "down"
    return "up"


def _fingerprint(engine: Engine, troubles: list[ObsidianRagError]) -> None:
    try:
        check(engine.database.get(FINGERPRINT), fingerprint(engine.embedder, engine.limits))
    except ObsidianRagError as error:
        troubles.append(error)
