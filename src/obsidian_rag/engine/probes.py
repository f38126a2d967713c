"""A look at what an engine depends on: cheap enough to be taken every half minute.

Each probe tells the trouble of one subject, or None. They never raise: a probe that cannot look
because the books are broken leaves that to the store's own probe.
"""

import os
from collections.abc import Callable

from obsidian_rag.engine.changes import staleness
from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.health import Subject
from obsidian_rag.engine.indexing import read_result
from obsidian_rag.errors import (
    IndexCorrupted,
    IndexerFailed,
    IndexNotFound,
    NotFound,
    ObsidianRagError,
)
from obsidian_rag.index import FINGERPRINT, check, fingerprint
from obsidian_rag.store import IndexState

# Failures of a run that another subject tells about, or that somebody else's run will end.
_TOLD_ELSEWHERE = {
    "BUSY",
    "NOT_FOUND",
    "OLLAMA_UNREACHABLE",
    "PROVIDER_FAILED",
    "EMBEDDING_MISMATCH",
    "INDEX_CORRUPTED",
}


def look(engine: Engine) -> dict[Subject, ObsidianRagError | None]:
    """Probe every subject, and tell a living engine's health."""
    engine.follow_database()
    found = {subject: probe(engine) for subject, probe in _PROBES.items()}
    if engine.live is not None:
        engine.live.health.note(found)
    return found


def vault_trouble(engine: Engine) -> ObsidianRagError | None:
    """Whether the vault's folder can be read; one without its disk is often an empty folder."""
    root = engine.config.vault_root
    try:
        with os.scandir(root) as entries:
            is_empty = next(entries, None) is None
    except OSError as error:
        return NotFound(
            f"The vault {root} is unreachable ({error.strerror}).",
            "Is its disk mounted? Search goes on with the last index.",
        )
    if is_empty and _counted(engine):
        return NotFound(
            f"The vault {root} is unreachable: its folder is empty, but notes were indexed.",
            "Is its disk mounted? If the notes are really gone, run `obsidian-rag reindex`.",
        )
    return None


def _counted(engine: Engine) -> int:
    try:
        return IndexState(engine.database).totals()[0]
    except ObsidianRagError:
        return 0


def _store_trouble(engine: Engine) -> ObsidianRagError | None:
    try:
        files = IndexState(engine.database).totals()[0]
        if files == 0 or not engine.chunks.exists():
            return IndexNotFound("There is no index yet.", "Run `obsidian-rag index`.")
        if (damage := engine.chunks.damage()) is not None:
            return IndexCorrupted(f"The index is damaged: {damage}.", "Run `obsidian-rag reindex`.")
    except ObsidianRagError as error:
        return error
    return None


def _embedder_trouble(engine: Engine) -> ObsidianRagError | None:
    try:
        engine.embedder.probe()
    except ObsidianRagError as error:
        return error
    return None


def _index_trouble(engine: Engine) -> ObsidianRagError | None:
    try:
        check(engine.database.get(FINGERPRINT), fingerprint(engine.embedder, engine.limits))
        return staleness(engine)
    except IndexCorrupted:
        return None
    except ObsidianRagError as error:
        return error


def _indexer_trouble(engine: Engine) -> ObsidianRagError | None:
    told = _last_failure(engine)
    if told is None or told[0] in _TOLD_ELSEWHERE:
        return None
    return IndexerFailed(
        f"The last index run failed: {told[1]}",
        "Look at logs/worker.log in the data folder, then run `obsidian-rag sync`.",
    )


def _last_failure(engine: Engine) -> tuple[str, str] | None:
    """Code and message of the last run, if it failed: our own job's, or what is on file."""
    last = read_result(engine) or {}
    job = engine.live.jobs.latest if engine.live else None
    # On a full disk a failure does not get into the file.
    if job is not None and (job.finished_at or "") >= str(last.get("finished_at") or ""):
        return (job.error.code, job.error.message) if job.error else None
    error = last.get("error")
    if last.get("status") != "failed" or not isinstance(error, dict):
        return None
    return str(error.get("code")), str(error.get("message"))


def _livesync_trouble(engine: Engine) -> ObsidianRagError | None:
    """What the daemon's own node says; who has none has no trouble with it."""
    state = engine.live.livesync() if engine.live else None
    return state.trouble if state else None


_PROBES: dict[Subject, Callable[[Engine], ObsidianRagError | None]] = {
    Subject.STORE: _store_trouble,
    Subject.EMBEDDER: _embedder_trouble,
    Subject.INDEX: _index_trouble,
    Subject.VAULT: vault_trouble,
    Subject.INDEXER: _indexer_trouble,
    Subject.LIVESYNC: _livesync_trouble,
}
