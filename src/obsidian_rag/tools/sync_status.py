"""`obsidian_sync_status`: is the vault in sync with the user's other devices."""

from dataclasses import asdict, replace

from obsidian_rag.engine import Engine
from obsidian_rag.livesync import livesync_status
from obsidian_rag.tools.dispatch import Found, NoParams, tool
from obsidian_rag.tools.guard import Caller


@tool(
    "obsidian_sync_status",
    "Is the vault in sync with the user's other devices (Self-hosted LiveSync)? Tells whether"
    " it runs, what was pulled and pushed, what waits and what is not synced. Call it when a"
    " note seems old or missing, or before relying on an edit reaching other devices.",
    NoParams,
    is_read_only=True,
    tells_health=True,
    is_of_installation=True,
)
def sync_status(engine: Engine, _: NoParams, caller: Caller) -> Found:
    """Report whether LiveSync runs, what it did, and what keeps it from doing more.

    Which files are not synced is for their owner; an agent hears how many.
    """
    ours = engine.live.livesync() if engine.live else None
    found = livesync_status(engine.config, engine.database, ours)
    if found.trouble is not None and engine.live is not None:
        engine.live.look_soon()  # the caller may just have helped
    data = asdict(replace(found, trouble=None))
    data["not_synced"] = [
        {key: value for key, value in one.items() if caller.is_owner or key != "paths"}
        for one in found.not_synced
    ]
    data["trouble"] = found.trouble.body if found.trouble else None
    return Found(data, found.trouble, found.health)
