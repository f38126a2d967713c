"""One index run as the outside sees it: under the writer's lock, with its result on file."""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from obsidian_rag.engine.allocator import give_back
from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.outcome import read_outcome, record_failure, record_outcome
from obsidian_rag.engine.repair import repaired
from obsidian_rag.errors import IndexerFailed, ObsidianRagError
from obsidian_rag.index import IndexResult, IndexRun, Listener, Mode, Stop
from obsidian_rag.store import make_private, now, writer_lock
from obsidian_rag.vault import sweep_data_folder


def run_index(
    engine: Engine,
    mode: str,
    listener: Listener = lambda _: None,
    stop: Stop = lambda: False,
    paths: Sequence[str] | None = None,
    *,
    accepts_removals: bool = False,
) -> IndexResult:
    """Index the vault, or some files of it, and leave the outcome in sync-result.json.

    `mode` is a `Mode` or the name of one; `accepts_removals` is the user's word that notes which
    are missing are gone.

    Raises:
        Busy: another process is at it.
        ObsidianRagError: the run could not finish; the next one goes on where it stopped.
    """
    mode = Mode(mode)
    home = engine.config.home
    root = engine.config.vault_root
    begun = time.monotonic()
    with writer_lock(home, mode.value):
        sweep_data_folder(home)
        started = now()
        try:
            make_private(home)
            repair = repaired(engine) if mode is Mode.REINDEX else ""
            if mode is not Mode.REINDEX and engine.chunks.exists():
                engine.chunks.check()
            with engine.relations_consumer() as consumer:
                place = replace(engine.workplace, consumer=consumer)
                run = IndexRun(place, listener, stop, accepts_removals=accepts_removals)
                result = replace(run.run(mode, paths), repair=repair)
            engine.chunks.record()
            if paths is None:
                give_back()
            took = round((time.monotonic() - begun) * 1000)
            result = replace(result, duration_ms=took)
            status = "cancelled" if result.tally.is_cancelled else "complete"
            record_outcome(
                engine.config,
                {
                    "status": "partial" if result.tally.errors else status,
                    "vault_path": str(root),
                    "started_at": started,
                    **result_fields(result),
                },
            )
        except (ObsidianRagError, OSError) as error:
            failure = _known(error)
            with contextlib.suppress(OSError):  # on a full disk the old word has to do
                record_failure(engine.config, mode, failure)
            raise failure from error
        return result


def _known(error: ObsidianRagError | OSError) -> ObsidianRagError:
    if isinstance(error, ObsidianRagError):
        return error
    return IndexerFailed(
        f"The index cannot be written: {error.strerror or error}.",
        "Check free disk space and permissions, then run `obsidian-rag sync`.",
    )


def result_fields(result: IndexResult) -> dict[str, Any]:
    """A run's outcome with the names of the plugin design, and ours beside them."""
    tally = asdict(result.tally)
    return {
        "mode": result.mode.value,
        "indexed_files": result.indexed_files,
        "total_chunks": result.total_chunks,
        "duration_ms": result.duration_ms,
        **({"repair": result.repair} if result.repair else {}),
        "errors": tally.pop("errors"),
        **tally,
    }


def read_result(engine: Engine) -> dict[str, object] | None:
    """The outcome of the last run, if there was one."""
    return read_outcome(engine.config)
