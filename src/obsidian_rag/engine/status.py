"""The state of an installation at a glance, without loading a model or opening a note."""

from collections.abc import Mapping
from dataclasses import dataclass

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.health import livesync_of, probe
from obsidian_rag.engine.job import Job, job_fields
from obsidian_rag.engine.outcome import read_outcome, recent_outcomes
from obsidian_rag.errors import NotFound, ObsidianRagError, Status
from obsidian_rag.health import (
    FileNotice,
    HealthChange,
    HealthFacts,
    Share,
    VaultPlace,
    VaultReport,
    assess,
    file_notices,
    vault_reports,
)
from obsidian_rag.index import changed_files, embedder_choice, meaning_state
from obsidian_rag.notes import EVERYTHING, Scope
from obsidian_rag.relations import relations_state
from obsidian_rag.store import IndexState, Queue

_MAX_CHANGES_SHOWN = 10
# Status must answer quickly; vaults that take longer to walk are reported from the database.
_MAX_WALK_S = 0.4
_MAX_WALKED_FILES = 30_000


@dataclass(frozen=True, slots=True)
class StatusReport:
    """The report of `status`; `trouble` is the most serious error found.

    `livesync` says what keeps the vault from syncing; all notes stay searchable.
    `embedder_notice` says why another embedder than the configured one makes the vectors;
    `searchable` is the share of notes that are searchable, if not all are.
    `relations` has the number of notes that are related and when they were last updated;
    `meaning` says how many chunks have a meaning vector, and is None without a transformer;
    `restart_needed` has the changed settings that need a restart of the daemon;
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
    livesync: Mapping[str, object] | None
    embedder: str
    embedder_notice: str | None
    notices: tuple[FileNotice, ...]
    relations: Mapping[str, object] | None
    meaning: Mapping[str, object] | None
    restart_needed: tuple[str, ...]
    recent_syncs: tuple[Mapping[str, object], ...]
    trouble: ObsidianRagError | None


def report_status(engine: Engine, scope: Scope = EVERYTHING) -> StatusReport:
    """Collect everything that is cheap to check; notes are counted in scope.

    Raises:
        ConfigInvalid: no vault is configured.
        IndexCorrupted: the database cannot be read.
    """
    vault = engine.vaults.primary
    files, chunks = IndexState(engine.database).totals(scope)
    found = probe(engine)
    answer = assess(found)
    unindexed, is_checked = _count_unindexed(engine, found, files)
    last = read_outcome(engine.config) or {}
    jobs = engine.live.jobs
    active, ended = (jobs.active, jobs.last) if jobs else (None, None)
    last_job = _pick_fields(ended, "id", "mode", "status", "finished_at", "error")
    if last_job is not None and ended is not None:
        last_job |= ended.result or {}
    return StatusReport(
        plugin_health=answer.state,
        searchable=answer.share,
        total_docs=files,
        total_chunks=chunks,
        last_sync=str(last["last_sync"]) if last.get("last_sync") else None,
        unindexed_files=unindexed,
        unindexed_checked=is_checked,
        ollama_status=_ollama_status(engine, found),
        active_job=_pick_fields(active, "id", "mode", "status", "attempt", "progress"),
        last_job=last_job,
        is_watching=engine.live.is_watching(),
        watch_trouble=engine.live.watch_trouble(),
        health_changes=engine.live.health_changes[-_MAX_CHANGES_SHOWN:],
        vault_path=str(vault.root),
        link_id=vault.link_id or None,
        vaults=vault_reports(engine.vaults, engine.database, found),
        livesync=_body(livesync_of(engine)),
        embedder=f"{engine.embedder.provider}:{engine.embedder.model}",
        embedder_notice=embedder_choice(engine.config).notice,
        notices=file_notices(engine.vaults, engine.database),
        relations=relations_state(engine.relations),
        meaning=_meaning(engine),
        restart_needed=tuple(engine.settings_file.restart_needed),
        recent_syncs=tuple(recent_outcomes(last)),
        trouble=answer.error,
    )


def _ollama_status(engine: Engine, found: HealthFacts) -> str:
    """Whether Ollama answers, if it is the embedder."""
    if engine.embedder.provider != "ollama":
        return "not_used"
    return "up" if found.embedder is None else "down"


def _count_unindexed(engine: Engine, found: HealthFacts, indexed: int) -> tuple[int, bool]:
    """How many files differ from the index, and whether the vaults were walked for it."""
    owed = Queue(engine.database).size()
    is_reachable = all(one.place is VaultPlace.THERE for one in (found.vault, *found.linked))
    if indexed > _MAX_WALKED_FILES or not is_reachable:
        return owed, False
    try:
        changed, is_complete = changed_files(engine.vaults, engine.database, _MAX_WALK_S)
    except NotFound:
        return owed, False
    return (max(owed, changed), True) if is_complete else (owed, False)


def _meaning(engine: Engine) -> Mapping[str, object] | None:
    jobs = engine.live.jobs
    state = meaning_state(engine.parts, jobs.meaning if jobs is not None else None)
    return state.shown if state is not None else None


def _body(trouble: ObsidianRagError | None) -> Mapping[str, object] | None:
    return {**trouble.body} if trouble is not None else None


def _pick_fields(job: Job | None, *names: str) -> dict[str, object] | None:
    if job is None:
        return None
    fields = job_fields(job)
    return {name: fields[name] for name in names}
