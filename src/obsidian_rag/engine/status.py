"""The state of an installation at a glance, without opening LanceDB or loading a model."""

from collections.abc import Mapping
from dataclasses import dataclass

from obsidian_rag.engine.changes import changed_files
from obsidian_rag.engine.engine import Engine, index_version
from obsidian_rag.engine.health import HealthChange, Share, VaultPlace, assess
from obsidian_rag.engine.indexing import read_result
from obsidian_rag.engine.jobs import job_fields
from obsidian_rag.engine.meaning import meaning_state
from obsidian_rag.engine.probes import look, newest_note
from obsidian_rag.errors import NotFound, ObsidianRagError, Status
from obsidian_rag.relations import relations_state
from obsidian_rag.store import EmbeddingStatus, IndexState, Queue

_CHANGES_SHOWN = 10
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
    """What `status` tells; `trouble` is the worst thing found.

    `searchable` says how many notes are, of how many, when that is not all of them.
    `relations` has the number of notes that are related and when they were last updated;
    `meaning` says how many chunks have a meaning vector, and is None without a transformer;
    `restart_needed` has the changed settings that the daemon takes up when it is started anew.
    """

    plugin_health: Status
    searchable: Share | None
    total_docs: int
    total_chunks: int
    last_sync: str | None
    unindexed_files: int
    unindexed_checked: bool
    ollama_status: str
    active_job: Mapping[str, object] | None
    last_job: Mapping[str, object] | None
    is_watching: bool | None
    watch_trouble: str | None
    health_changes: tuple[HealthChange, ...]
    vault_path: str | None
    link_id: str | None
    embedder: str
    index_version: str
    vault_mtime: str | None
    notices: tuple[FileNotice, ...]
    relations: Mapping[str, object] | None
    meaning: Mapping[str, object] | None
    restart_needed: tuple[str, ...]
    trouble: ObsidianRagError | None


def report_status(engine: Engine) -> StatusReport:
    """Look at everything that is cheap to look at.

    Raises:
        ConfigInvalid: no vault is configured.
        IndexCorrupted: the books cannot be read.
    """
    vault = engine.vaults.one()
    state = IndexState(engine.database)
    files, chunks = state.totals()
    found = look(engine)
    answer = assess(found)
    is_reachable = found.vault.place is VaultPlace.THERE
    unindexed, is_checked = _unindexed(engine, files, is_reachable=is_reachable)
    last = read_result(engine) or {}
    return StatusReport(
        plugin_health=answer.state,
        searchable=answer.share,
        total_docs=files,
        total_chunks=chunks,
        last_sync=str(last["last_sync"]) if last.get("last_sync") else None,
        unindexed_files=unindexed,
        unindexed_checked=is_checked,
        ollama_status=_ollama(engine, found.embedder),
        active_job=_active(engine),
        last_job=_last(engine),
        is_watching=engine.live.is_watching() if engine.live else None,
        watch_trouble=engine.live.watch_trouble() if engine.live else None,
        health_changes=engine.live.health.changes[-_CHANGES_SHOWN:] if engine.live else (),
        vault_path=str(vault.root),
        link_id=vault.link_id,
        embedder=f"{engine.embedder.provider}:{engine.embedder.model}",
        index_version=index_version(engine),
        vault_mtime=newest_note(engine),
        notices=_notices(state),
        relations=relations_state(engine),
        meaning=meaning.shown if (meaning := meaning_state(engine)) else None,
        restart_needed=tuple(engine.settings_file.restart_needed),
        trouble=answer.error,
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


def _unindexed(engine: Engine, indexed: int, *, is_reachable: bool) -> tuple[int, bool]:
    """Files that differ from the index, and whether the vault itself was asked."""
    owed = Queue(engine.database).size()
    if indexed > _MOST_WALKED or not is_reachable:
        return owed, False
    try:
        changed, is_complete = changed_files(engine, _WALK_S)
    except NotFound:
        return owed, False
    return (max(owed, changed), True) if is_complete else (owed, False)


def _ollama(engine: Engine, trouble: ObsidianRagError | None) -> str:
    if engine.config.settings.embedding.provider != "ollama":
        return "not_used"
    return "up" if trouble is None else "down"


def _active(engine: Engine) -> Mapping[str, object] | None:
    job = engine.live.jobs.active if engine.live else None
    if job is None:
        return None
    fields = job_fields(job)
    return {name: fields[name] for name in ("id", "mode", "status", "attempt", "progress")}


def _last(engine: Engine) -> Mapping[str, object] | None:
    job = engine.live.jobs.last if engine.live else None
    if job is None:
        return None
    fields = job_fields(job)
    shown = {name: fields[name] for name in ("id", "mode", "status", "finished_at", "error")}
    return {**shown, **(job.result or {})}
