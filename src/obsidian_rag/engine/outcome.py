"""sync-result.json: the outcome of the last index run."""

import contextlib
import json
from collections.abc import Mapping

from obsidian_rag.config import Config, write_atomically
from obsidian_rag.errors import IndexerFailed, ObsidianRagError
from obsidian_rag.index import Mode
from obsidian_rag.store import now

RESULT_FILE = "sync-result.json"
_MAX_RECENT = 30
_BRIEF_FIELDS = ("status", "mode", "duration_ms", "added", "changed", "removed")


def read_outcome(config: Config) -> dict[str, object] | None:
    """The outcome of the last run, if any."""
    try:
        found = json.loads((config.home / RESULT_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def record_outcome(config: Config, outcome: dict[str, object]) -> None:
    """Write the outcome; a failed run keeps `last_sync`, which says how old the index is."""
    at = now()
    before = read_outcome(config) or {}
    last = before.get("last_sync") if outcome["status"] == "failed" else at
    recent = [*recent_outcomes(before), {"finished_at": at, **_summarise(outcome)}][-_MAX_RECENT:]
    outcome = {**outcome, "finished_at": at, "last_sync": last, "recent": recent}
    write_atomically(config.home / RESULT_FILE, json.dumps(outcome, indent=2) + "\n")


def recent_outcomes(result: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Summaries of the last runs, oldest first."""
    recent = result.get("recent")
    return [one for one in recent if isinstance(one, Mapping)] if isinstance(recent, list) else []


def _summarise(outcome: Mapping[str, object]) -> dict[str, object]:
    errors, error = outcome.get("errors"), outcome.get("error")
    failed = len(errors) if isinstance(errors, list) else 0
    code = {"error": error.get("code")} if isinstance(error, Mapping) else {}
    return (
        {name: outcome[name] for name in _BRIEF_FIELDS if name in outcome}
        | {"failed": failed}
        | code
    )


def record_failure(config: Config, mode: Mode, error: ObsidianRagError) -> None:
    """Record a failed run, including one whose process died."""
    failure = {"code": error.code, "message": error.message}
    record_outcome(config, {"status": "failed", "mode": mode.value, "error": failure})


def record_unexpected(config: Config, mode: Mode, error: Exception) -> IndexerFailed:
    """Record and return an unexpected error, without its text, which may quote a note."""
    failure = IndexerFailed(
        f"The indexer failed unexpectedly ({type(error).__name__}).",
        "Try again; if it happens again, logs/worker.log has the details to report.",
    )
    with contextlib.suppress(OSError):
        record_failure(config, mode, failure)
    return failure
