"""How the sync is doing: what a node knows while it runs, and what one command did or found.

A node's state is stored in the records, so that other processes can show it.
"""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from obsidian_rag.config import Config
from obsidian_rag.errors import (
    IndexCorrupted,
    LivesyncBrake,
    LivesyncTooLarge,
    ObsidianRagError,
    Status,
    error_from,
)
from obsidian_rag.livesync.disk import Disk
from obsidian_rag.livesync.site import (
    Options,
    is_configured,
    is_node_running,
    open_database,
    place_of,
)
from obsidian_rag.store import Conflict, Database, Links, LivesyncRecords, Quarantined, now

_STATE = "state"
_SINCE = "since"
_COUNTS = ("pulled", "pushed", "deleted_here", "deleted_there", "renamed", "merged", "waiting")
_MAX_PATHS_SHOWN = 5
_SET_ASIDE = "cannot be read or must not be applied (`obsidian-rag livesync check` says why)"
_SET_ASIDE_BY_CODE = {
    LivesyncTooLarge.code: "the server refuses it as too large (HTTP 413): raise its limits"
    " max_document_size and max_http_request_size, or a proxy's client_max_body_size"
}
# The walk's reasons, in words for the user.
_REASONS = {
    "symlink": "is a symlink",
    "unreadable": "cannot be read",
    "not_a_file": "is not a regular file",
    "cloud_placeholder": "is in the cloud, not on this disk",
    "unsafe_name": "has a name that is not safe",
    "not_utf8_name": "has a name that is not UTF-8",
}
_NOT_CONFIGURED = (
    "LiveSync is NOT configured: the vault is not synced with other devices."
    " `obsidian-rag livesync setup` sets it up."
)


class Kind(StrEnum):
    """Why something is not synced, by what the user can do about it."""

    LEFT_OUT = "left_out"  # a file of the vault that cannot be synced
    FILTERED = "filtered"  # excluded by the user's own filters
    SET_ASIDE = "set_aside"  # a document that waits
    ELSEWHERE = "elsewhere"  # synced, but some systems cannot write it


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Files that share one reason; `paths` has the first few of them."""

    kind: Kind
    reason: str
    count: int
    paths: tuple[str, ...]

    def fields(self, *, has_paths: bool = True) -> dict[str, object]:
        """The fields for JSON, with the paths or without."""
        shown = {"kind": self.kind.value, "reason": self.reason, "count": self.count}
        return {**shown, "paths": list(self.paths)} if has_paths else {**shown}


@dataclass(slots=True)
class LivesyncState:
    """What a node knows of its sync; counts are since its start.

    The node's thread changes its own state; everybody else gets a copy.
    """

    is_running: bool = False
    is_watching: bool = False
    is_connected: bool = False
    pulled: int = 0
    pushed: int = 0
    deleted_here: int = 0
    deleted_there: int = 0
    renamed: int = 0
    merged: int = 0
    waiting: int = 0
    chunks_fetched: int = 0
    last_seq: str = ""
    last_change_at: str | None = None
    lag: int | None = None  # how many changes are queued
    progress: tuple[str, int, int] | None = None
    not_synced: tuple[LeftOut, ...] = ()
    trouble: ObsidianRagError | None = None
    brake: LivesyncBrake | None = None  # deletions from other devices are held

    def count(self, **numbers: int) -> None:
        """Add to the counts."""
        for name, number in numbers.items():
            setattr(self, name, getattr(self, name) + number)
        if any(numbers.values()):
            self.last_change_at = now()

    @property
    def health(self) -> Status:
        """Whether the vault is in sync, or something prevents that."""
        return "degraded" if self.trouble else "healthy"

    def counts(self) -> dict[str, object]:
        """The counts for JSON."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        return {**counts, "last_seq": self.last_seq, "last_change_at": self.last_change_at}

    def fields(self, *, has_paths: bool = True) -> dict[str, object]:
        """The fields for JSON, with the paths of what is not synced or without."""
        names = ("phase", "current", "total")
        return {
            "running": self.is_running,
            "watching": self.is_watching,
            "connected": self.is_connected,
            "stats": {**self.counts(), "lag": self.lag},
            "not_synced": [one.fields(has_paths=has_paths) for one in self.not_synced],
            "progress": dict(zip(names, self.progress, strict=True)) if self.progress else None,
            "health": self.health,
            "trouble": dict(self.trouble.body) if self.trouble else None,
        }


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one sync did and left undone, or what a check found."""

    left_out: Mapping[str, str]  # files of the vault that cannot be synced, with the reasons
    filtered: Mapping[str, str]  # paths that the user's filters exclude
    warnings: Mapping[str, str]  # synced, but some systems cannot write them
    quarantined: tuple[Quarantined, ...]
    conflicts: tuple[Conflict, ...]
    # Of a sync.
    state: LivesyncState = field(default_factory=LivesyncState)
    planned: tuple[str, ...] = ()
    owed: int = 0
    is_stopped: bool = False
    # Of a check: how many files both sides have, and why the database is unusable.
    files: int = 0
    trouble: ObsidianRagError | None = None

    @property
    def is_complete(self) -> bool:
        """Whether everything that takes part was synced."""
        return not (self.owed or self.quarantined)

    @property
    def is_clean(self) -> bool:
        """Whether nothing needs attention; warnings and filters do not count."""
        return not (self.quarantined or self.conflicts or self.left_out or self.trouble)

    @property
    def not_synced(self) -> tuple[LeftOut, ...]:
        """What is not synced and why, the largest groups of each kind first."""
        groups: dict[tuple[Kind, str], list[str]] = {}
        for path, reason in self.left_out.items():
            key = (Kind.LEFT_OUT, _REASONS.get(reason, reason))
            groups.setdefault(key, []).append(path or "the vault's folder")
        for path, reason in self.filtered.items():
            groups.setdefault((Kind.FILTERED, reason), []).append(path)
        for one in self.quarantined:
            reason = _SET_ASIDE_BY_CODE.get(one.code, _SET_ASIDE)
            groups.setdefault((Kind.SET_ASIDE, reason), []).append(one.path or one.doc_id)
        for path, reason in self.warnings.items():
            if path not in self.left_out:
                groups.setdefault((Kind.ELSEWHERE, reason), []).append(path)
        found = [
            LeftOut(kind, reason, len(paths), tuple(sorted(paths)[:_MAX_PATHS_SHOWN]))
            for (kind, reason), paths in groups.items()
        ]
        order = list(Kind)
        return tuple(sorted(found, key=lambda one: (order.index(one.kind), -one.count, one.reason)))


def report_on(
    disk: Disk, records: LivesyncRecords, ignored: Mapping[str, str] | None = None
) -> SyncReport:
    """What is not synced; `ignored` are documents that the filters keep out, with the reasons."""
    return SyncReport(
        left_out=dict(disk.left_out),
        filtered={**(ignored or {}), **disk.filtered},
        warnings=dict(disk.warnings),
        quarantined=tuple(records.quarantined()),
        conflicts=tuple(records.conflicts()),
    )


def save_state(records: LivesyncRecords, state: LivesyncState) -> None:
    """Store a node's state for other processes."""
    with contextlib.suppress(ObsidianRagError):  # the next heartbeat repeats it
        records.put_fact(_STATE, json.dumps(state.fields()))


def load_state(records: LivesyncRecords, *, is_running: bool) -> LivesyncState:
    """The state of a node in another process, or the last state of one that ended."""
    try:
        state = _parse_state(json.loads(records.get_fact(_STATE) or "{}"))
    except (AttributeError, KeyError, TypeError, ValueError):
        state = LivesyncState()
    if is_running:
        return replace(state, is_running=True)
    return replace(state, is_watching=False, is_connected=False, lag=None, progress=None)


def _parse_state(stored: Any) -> LivesyncState:
    stats, body, progress = stored.get("stats", {}), stored.get("trouble"), stored.get("progress")
    state = LivesyncState(
        is_watching=stored.get("watching") is True,
        is_connected=stored.get("connected") is True,
        last_seq=stats.get("last_seq") or "",
        last_change_at=stats.get("last_change_at"),
        lag=stats.get("lag"),
        progress=(progress["phase"], progress["current"], progress["total"]) if progress else None,
        not_synced=tuple(
            LeftOut(Kind(one["kind"]), one["reason"], one["count"], tuple(one["paths"]))
            for one in stored.get("not_synced", ())
        ),
        trouble=error_from(body["code"], body["message"], body["suggestion"]) if body else None,
    )
    for name in _COUNTS:
        setattr(state, name, int(stats.get(name, 0)))
    return state


def livesync_state(config: Config, database: Database, ours: LivesyncState | None) -> LivesyncState:
    """How the sync is: the state of the running node, else its last one; asks no server.

    `ours` is the state of this process's node, if it should have one.

    Raises:
        IndexCorrupted: state.db cannot be read.
    """
    if not is_configured(config):
        return LivesyncState()
    try:
        site = place_of(config)
    except ObsidianRagError as error:
        return LivesyncState(trouble=error)
    records = LivesyncRecords.at_address(database, site.key)
    if ours is not None and ours.is_running:
        return ours
    if is_node_running(config, records.remote):
        return load_state(records, is_running=True)
    return ours or load_state(records, is_running=False)


def livesync_trouble(
    config: Config, database: Database, ours: LivesyncState | None
) -> ObsidianRagError | None:
    """What prevents the vault from being in sync with other devices."""
    try:
        return livesync_state(config, database, ours).trouble
    except IndexCorrupted:  # health reports it
        return None


def status_fields(
    config: Config, database: Database, state: LivesyncState, *, has_paths: bool
) -> dict[str, object]:
    """The answer of `obsidian_sync_status`: the state, and what is synced with what.

    Raises:
        IndexCorrupted: state.db cannot be read.
    """
    settings = config.settings.livesync
    fields: dict[str, object] = {
        "configured": is_configured(config),
        "enabled": settings.enabled,
        "message": _message(state, settings.enabled) if is_configured(config) else _NOT_CONFIGURED,
        "server": None,
        "database": None,
        "vault": None,
        "link_id": None,
        "read_only": False,
        "files": 0,
        **state.fields(has_paths=has_paths),
    }
    stats = {
        **state.counts(),
        "conflicts": 0,
        "quarantined": 0,
        "trash": 0,
        "last_seq": state.last_seq or None,
        "lag": state.lag,
    }
    try:
        site = place_of(config)
    except ObsidianRagError:  # not set up, or wrongly: `state` has the trouble
        return {**fields, "stats": stats}
    records = LivesyncRecords.at_address(database, site.key)
    return {
        **fields,
        "server": site.remote.url,
        "database": site.remote.database,
        "vault": str(site.root),
        "link_id": _link_id(database, site.root),
        "read_only": settings.read_only,
        "files": records.count(),
        "stats": {
            **stats,
            "conflicts": len(records.conflicts()),
            "quarantined": len(records.quarantined()),
            "trash": len(records.trash()),
            "last_seq": state.last_seq or records.get_fact(_SINCE),
        },
    }


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
    missing = sum(one.count for one in state.not_synced if one.kind is not Kind.ELSEWHERE)
    if not missing:
        return "LiveSync is in sync."
    return f"LiveSync is in sync, except for {missing} {'file' if missing == 1 else 'files'}."
