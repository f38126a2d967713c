"""The state of an installation at a glance, without opening LanceDB or loading a model."""

from collections.abc import Mapping
from dataclasses import dataclass

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.health import HealthChange, HealthFacts, Share, assess
from obsidian_rag.engine.indexing import read_result
from obsidian_rag.engine.jobs import job_fields
from obsidian_rag.engine.probes import look, newest_note
from obsidian_rag.errors import NotFound, ObsidianRagError, Status
from obsidian_rag.index import (
    VaultPlace,
    changed_files,
    embedder_choice,
    meaning_state,
    recent_outcomes,
)
from obsidian_rag.notes import EVERYTHING, Scope
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


@dataclass(frozen=True, slots=True)
class StatusReport:
    """What `status` tells; `trouble` is the worst thing found.

    `embedder_notice` says why another embedder than the wanted one makes the vectors;
    `searchable` says how many notes are, of how many, when that is not all of them.
    `relations` has the number of notes that are related and when they were last updated;
    `meaning` says how many chunks have a meaning vector, and is None without a transformer;
    `restart_needed` has the changed settings that the daemon takes up when it is started anew;
    `recent_syncs` says how the last runs ended, the latest last.
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
    vaults: tuple[VaultReport, ...]
    embedder: str
    embedder_notice: str | None
    index_version: str
    vault_mtime: str | None
    notices: tuple[FileNotice, ...]
    relations: Mapping[str, object] | None
    meaning: Mapping[str, object] | None
    restart_needed: tuple[str, ...]
    recent_syncs: tuple[Mapping[str, object], ...]
    trouble: ObsidianRagError | None


def report_status(engine: Engine, scope: Scope = EVERYTHING) -> StatusReport:
    """Look at everything that is cheap to look at; notes are counted in scope.

    Raises:
        ConfigInvalid: no vault is configured.
        IndexCorrupted: the books cannot be read.
    """
    vault = engine.vaults.primary
    state = IndexState(engine.database)
    files, chunks = state.totals(scope)
    found = look(engine)
    answer = assess(found)
    places = [found.vault, *found.linked]
    is_reachable = all(one.place is VaultPlace.THERE for one in places)
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
        link_id=vault.link_id or None,
        vaults=_vaults(engine, found),
        embedder=f"{engine.embedder.provider}:{engine.embedder.model}",
        embedder_notice=embedder_choice(engine.config).notice,
        index_version=engine.index_version,
        vault_mtime=newest_note(engine),
        notices=_notices(engine, state),
        relations=relations_state(engine),
        meaning=_meaning(engine),
        restart_needed=tuple(engine.settings_file.restart_needed),
        recent_syncs=tuple(recent_outcomes(last)),
        trouble=answer.error,
    )


def _vaults(engine: Engine, found: HealthFacts) -> tuple[VaultReport, ...]:
    state, queue = IndexState(engine.database), Queue(engine.database)
    there = {one.link_id: one.place is VaultPlace.THERE for one in found.linked}
    is_primary_there = found.vault.place is VaultPlace.THERE
    reports = []
    for vault in engine.vaults:
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


def _notices(engine: Engine, state: IndexState) -> tuple[FileNotice, ...]:
    return tuple(
        FileNotice(
            item.rel_path,
            "warning" if item.status is EmbeddingStatus.INDEXED else item.status.value,
            item.reason or item.parse_error or "",
            vault.link_id,
            vault.name,
        )
        for vault in engine.vaults
        for item in state.troubled(vault.link_id)
    )


def _unindexed(engine: Engine, indexed: int, *, is_reachable: bool) -> tuple[int, bool]:
    """Files that differ from the index, and whether the vault itself was asked."""
    owed = Queue(engine.database).size()
    if indexed > _MOST_WALKED or not is_reachable:
        return owed, False
    try:
        changed, is_complete = changed_files(engine.vaults, engine.database, _WALK_S)
    except NotFound:
        return owed, False
    return (max(owed, changed), True) if is_complete else (owed, False)


def _meaning(engine: Engine) -> Mapping[str, object] | None:
    state = meaning_state(engine, engine.live.jobs.meaning if engine.live else None)
    return state.shown if state is not None else None


def _ollama(engine: Engine, trouble: ObsidianRagError | None) -> str:
    if engine.embedder.provider != "ollama":
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
