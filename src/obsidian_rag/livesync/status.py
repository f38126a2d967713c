"""LiveSync's status: from the running node if there is one, else from its last stored state."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from obsidian_rag.config import Config
from obsidian_rag.errors import IndexCorrupted, ObsidianRagError, Status
from obsidian_rag.livesync.session import is_node_running, open_database
from obsidian_rag.livesync.site import Options, is_configured, place_of
from obsidian_rag.livesync.state import COUNTED, LivesyncState, load_state
from obsidian_rag.store import Database, Links, LivesyncRecords

_SINCE = "since"
_NOT_CONFIGURED = (
    "LiveSync is NOT configured: the vault is not synced with other devices."
    " `obsidian-rag livesync setup` sets it up."
)


@dataclass(frozen=True, slots=True)
class LivesyncStatus:
    """The answer of `obsidian_sync_status`; `files` counts those that both sides have."""

    configured: bool
    enabled: bool
    running: bool = False
    watching: bool = False
    connected: bool = False
    message: str = ""
    server: str | None = None
    database: str | None = None
    vault: str | None = None
    link_id: str | None = None  # None if the synced folder is not a searched vault
    read_only: bool = False
    files: int = 0
    stats: Mapping[str, object] = field(default_factory=dict)
    not_synced: tuple[Mapping[str, object], ...] = ()
    progress: Mapping[str, object] | None = None
    health: Status = "healthy"
    trouble: ObsidianRagError | None = None


def livesync_status(
    config: Config, database: Database, ours: LivesyncState | None
) -> LivesyncStatus:
    """The sync status of this installation; makes no request to the server.

    `ours` is the state of this process's node, if it should have one.

    Raises:
        IndexCorrupted: state.db cannot be read.
    """
    settings = config.settings.livesync
    if not is_configured(config):
        return LivesyncStatus(
            configured=False,
            enabled=settings.enabled,
            message=_NOT_CONFIGURED,
            stats=_stats(LivesyncState(), None),
        )
    try:
        site = place_of(config)
    except ObsidianRagError as error:
        return _unusable_status(settings.enabled, error)
    records = LivesyncRecords.at_address(database, site.key)
    live = _current_state(config, records, ours)
    return LivesyncStatus(
        configured=True,
        enabled=settings.enabled,
        running=live.is_running,
        watching=live.is_watching,
        connected=live.is_connected,
        message=_message(live, settings.enabled),
        server=site.remote.url,
        database=site.remote.database,
        vault=str(site.root),
        link_id=_link_id(database, site.root),
        read_only=settings.read_only,
        files=records.count(),
        stats=_stats(live, records),
        not_synced=_not_synced(live),
        progress=_progress(live),
        health="degraded" if live.trouble else "healthy",
        trouble=live.trouble,
    )


def livesync_trouble(
    config: Config, database: Database, ours: LivesyncState | None
) -> ObsidianRagError | None:
    """What keeps the vault from being in sync with other devices."""
    try:
        return livesync_status(config, database, ours).trouble
    except IndexCorrupted:  # health reports it
        return None


def synced_link(config: Config, options: Options | None = None) -> str | None:
    """The link id of the vault whose folder is synced; None if that folder is not a vault.

    Raises:
        ConfigInvalid: LiveSync is not set up.
    """
    root = place_of(config, options).root
    with contextlib.closing(open_database(config)) as database:
        return _link_id(database, root)


def _link_id(database: Database, root: Path) -> str | None:
    real = root.resolve()
    links = Links(database).all()
    return next((one.link_id for one in links if one.root_path.resolve() == real), None)


def _current_state(
    config: Config, records: LivesyncRecords, ours: LivesyncState | None
) -> LivesyncState:
    if ours is not None and ours.is_running:
        return ours
    if is_node_running(config, records.remote):
        return load_state(records, is_running=True)
    return ours or load_state(records, is_running=False)


def _stats(state: LivesyncState, records: LivesyncRecords | None) -> dict[str, object]:
    counts = state.counts
    return {
        **{name: counts.get(name, 0) for name in COUNTED},
        "conflicts": len(records.conflicts()) if records else 0,
        "quarantined": len(records.quarantined()) if records else 0,
        "trash": len(records.trash()) if records else 0,
        "last_seq": counts.get("last_seq") or (records.get_fact(_SINCE) if records else None),
        "last_change_at": counts.get("last_change_at"),
        "lag": state.lag,
    }


def _not_synced(state: LivesyncState) -> tuple[Mapping[str, object], ...]:
    found: Any = state.counts.get("not_synced")
    return tuple(one for one in found or () if isinstance(one, Mapping))


def _progress(state: LivesyncState) -> dict[str, object] | None:
    if state.progress is None:
        return None
    what, done, total = state.progress
    return {"phase": what, "current": done, "total": total}


def _message(state: LivesyncState, is_enabled: bool) -> str:
    if state.trouble is not None:
        return state.trouble.message
    if not state.is_running:
        how = "`obsidian-rag serve` syncs" if is_enabled else "`obsidian-rag livesync run` syncs"
        return f"LiveSync is set up, but does not run; {how}."
    if state.progress is not None:
        return "LiveSync is catching up."
    if not state.is_connected:
        return "LiveSync is connecting."
    missing = sum(_count(one) for one in _not_synced(state) if one.get("kind") != "elsewhere")
    if not missing:
        return "LiveSync is in sync."
    return f"LiveSync is in sync, except for {missing} {'file' if missing == 1 else 'files'}."


def _count(one: Mapping[str, object]) -> int:
    count = one.get("count")
    return count if isinstance(count, int) else 0


def _unusable_status(is_enabled: bool, trouble: ObsidianRagError) -> LivesyncStatus:
    return LivesyncStatus(
        configured=True,
        enabled=is_enabled,
        message=trouble.message,
        stats=_stats(LivesyncState(), None),
        health="degraded",
        trouble=trouble,
    )
