"""One index run as the outside sees it: under the writer's lock, with its result on file."""

import contextlib
import json
from collections.abc import Sequence
from dataclasses import asdict

from obsidian_rag.config import write_atomically
from obsidian_rag.engine.engine import Engine
from obsidian_rag.errors import IndexCorrupted, ObsidianRagError
from obsidian_rag.index import INDEX_VERSION, IndexResult, IndexRun, Listener, Mode, Stop
from obsidian_rag.store import now, writer_lock

RESULT_FILE = "sync-result.json"
_SUFFIXES = ("", "-wal", "-shm")


def run_index(
    engine: Engine,
    mode: Mode,
    listener: Listener = lambda _: None,
    stop: Stop = lambda: False,
    paths: Sequence[str] | None = None,
) -> IndexResult:
    """Index the vault, or some files of it, and leave the outcome in sync-result.json.

    Raises:
        Busy: another process is at it.
        ObsidianRagError: the run could not finish; the next one goes on where it stopped.
    """
    home = engine.config.home
    root = engine.config.vault_root
    with writer_lock(home, mode.value):
        started = now()
        try:
            if mode is Mode.REINDEX:
                _set_damaged_database_aside(engine)
            result = IndexRun(engine.workplace, listener, stop).run(mode, paths)
        except ObsidianRagError as error:
            failure = {"code": error.code, "message": error.message}
            _write(engine, {"status": "failed", "mode": mode.value, "error": failure})
            raise
        status = "cancelled" if result.tally.is_cancelled else "complete"
        _write(
            engine,
            {
                "status": "partial" if result.tally.errors else status,
                "vault_path": str(root),
                "started_at": started,
                **result_fields(result),
            },
        )
        return result


def result_fields(result: IndexResult) -> dict[str, object]:
    """A run's outcome with the names of the plugin design, and ours beside them."""
    tally = asdict(result.tally)
    return {
        "mode": result.mode.value,
        "indexed_files": result.indexed_files,
        "total_chunks": result.total_chunks,
        "duration_ms": result.duration_ms,
        "errors": tally.pop("errors"),
        **tally,
    }


def index_version(engine: Engine) -> str:
    """A name for the present state of the index; it changes when the index does."""
    return engine.database.get(INDEX_VERSION) or "0"


def read_result(engine: Engine) -> dict[str, object] | None:
    """The outcome of the last run, if there was one."""
    try:
        found = json.loads((engine.config.home / RESULT_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _write(engine: Engine, outcome: dict[str, object]) -> None:
    """A failed run keeps the time of the last good one, which says how old the index is."""
    at = now()
    before = read_result(engine) or {}
    last = before.get("last_sync") if outcome["status"] == "failed" else at
    outcome = {**outcome, "finished_at": at, "last_sync": last}
    write_atomically(engine.config.home / RESULT_FILE, json.dumps(outcome, indent=2) + "\n")


def _set_damaged_database_aside(engine: Engine) -> None:
    """Keep a broken state.db under another name: it also holds what the user asked to remember."""
    with contextlib.suppress(IndexCorrupted):
        if engine.database.check() is None:
            return
    engine.close()
    stamp = now()[:19].replace(":", "")
    for suffix in _SUFFIXES:
        file = engine.config.database.with_name(engine.config.database.name + suffix)
        if file.exists():
            file.rename(file.with_name(f"{file.name}.damaged-{stamp}"))
