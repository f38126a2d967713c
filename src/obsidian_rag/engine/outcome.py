"""sync-result.json: how the last index run ended, for everyone who asks later."""

import json

from obsidian_rag.config import Config, write_atomically
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.index import Mode
from obsidian_rag.store import now

RESULT_FILE = "sync-result.json"


def read_outcome(config: Config) -> dict[str, object] | None:
    """How the last run ended, if there was one."""
    try:
        found = json.loads((config.home / RESULT_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def record_outcome(config: Config, outcome: dict[str, object]) -> None:
    """A failed run keeps the time of the last good one, which says how old the index is."""
    at = now()
    before = read_outcome(config) or {}
    last = before.get("last_sync") if outcome["status"] == "failed" else at
    outcome = {**outcome, "finished_at": at, "last_sync": last}
    write_atomically(config.home / RESULT_FILE, json.dumps(outcome, indent=2) + "\n")


def record_failure(config: Config, mode: Mode, error: ObsidianRagError) -> None:
    """Leave word of a run that could not finish, also when it could not say so itself."""
    failure = {"code": error.code, "message": error.message}
    record_outcome(config, {"status": "failed", "mode": mode.value, "error": failure})
