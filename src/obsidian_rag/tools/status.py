"""`obsidian_rag_status`: the health of the index and what is not in it."""

from dataclasses import asdict, replace
from typing import Any

from obsidian_rag.engine import Engine, report_status
from obsidian_rag.tools.citation import known_files
from obsidian_rag.tools.dispatch import Found, NoParams, tool
from obsidian_rag.tools.guard import Caller

# What would tell of notes outside of a scope.
_OF_ALL_NOTES: dict[str, Any] = {
    "searchable": None,
    "unindexed_files": 0,
    "unindexed_checked": False,
    "active_job": None,
    "last_job": None,
    "watch_trouble": None,
    "health_changes": (),
    "vault_path": None,
    "link_id": None,
    "vaults": (),
    "relations": None,
    "meaning": None,
    "restart_needed": (),
}


@tool(
    "obsidian_rag_status",
    "Is the index of the user's Obsidian vaults healthy and up to date? Counts notes, and"
    " lists files that cannot be searched with the reason. Call it first, and after starting"
    " an index run.",
    NoParams,
    is_read_only=True,
    tells_health=True,
)
def status(engine: Engine, _: NoParams, caller: Caller) -> Found:
    """Report health, counts, and every file that is not searchable with its reason.

    Agents are not told of files that say `rag: false` or `rag: private`, nor of earlier runs, and
    one that is limited to some notes of those only.
    """
    report = report_status(engine, caller.scope)
    data = asdict(replace(report, trouble=None))
    del data["trouble"]
    if caller.is_limited:
        data |= _OF_ALL_NOTES
    if not caller.is_owner:
        del data["recent_syncs"]
    data["notices"] = known_files(engine, data["notices"], caller)
    if data["last_job"] and data["last_job"].get("errors"):
        errors = known_files(engine, data["last_job"]["errors"], caller)
        data["last_job"] = {**data["last_job"], "errors": errors}
    return Found(data, report.trouble, report.plugin_health)
