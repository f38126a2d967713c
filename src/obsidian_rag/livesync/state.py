"""A node's counts and current state, stored in the records for other processes."""

import contextlib
import json
import os
import threading
from collections import Counter
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from obsidian_rag.errors import LivesyncBrake, ObsidianRagError, error_from
from obsidian_rag.livesync.left_out import LeftOut
from obsidian_rag.store import LivesyncRecords, now

if TYPE_CHECKING:
    from collections.abc import Mapping

_STATE = "state"
COUNTED = ("pulled", "pushed", "deleted_here", "deleted_there", "renamed", "merged", "waiting")
_REPORTED = (*COUNTED, "conflicts", "quarantined", "last_seq", "last_change_at")


@dataclass(slots=True)
class Stats:
    """Counts since the start; written by the node's thread, read by others."""

    pulled: int = 0
    pushed: int = 0
    deleted_here: int = 0
    deleted_there: int = 0
    renamed: int = 0
    merged: int = 0
    conflicts: int = 0
    quarantined: int = 0
    waiting: int = 0
    chunks_fetched: int = 0
    last_seq: str = ""
    last_change_at: str | None = None
    is_connected: bool = False
    trouble: ObsidianRagError | None = None
    brake: LivesyncBrake | None = None  # deletions from other devices are held
    not_synced: tuple[LeftOut, ...] = ()
    planned: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, **counts: int) -> None:
        """Add to the counts."""
        with self._lock:
            for name, number in counts.items():
                setattr(self, name, getattr(self, name) + number)
            if any(counts.values()):
                self.last_change_at = now()

    def fields(self) -> dict[str, object]:
        """The counts under the names of the status tool."""
        stored = {name: getattr(self, name) for name in _REPORTED}
        return stored | {"not_synced": [one.fields() for one in self.not_synced]}


@dataclass(frozen=True, slots=True)
class LivesyncState:
    """A node's state. `counts` are since its start; `lag` is how many changes are queued."""

    is_running: bool = False
    is_watching: bool = False
    is_connected: bool = False
    counts: "Mapping[str, object]" = field(default_factory=lambda: MappingProxyType({}))
    lag: int | None = None
    progress: tuple[str, int, int] | None = None
    trouble: ObsidianRagError | None = None


def save_state(records: LivesyncRecords, state: LivesyncState) -> None:
    """Store the node's state for other processes."""
    progress = list(state.progress) if state.progress else None
    stored = {
        "pid": os.getpid(),
        "at": now(),
        "is_watching": state.is_watching,
        "is_connected": state.is_connected,
        "counts": dict(state.counts),
        "lag": state.lag,
        "progress": progress,
        "trouble": dict(state.trouble.body) if state.trouble else None,
    }
    with contextlib.suppress(ObsidianRagError):  # the next heartbeat repeats it
        records.put_fact(_STATE, json.dumps(stored))


def load_state(records: LivesyncRecords, *, is_running: bool) -> LivesyncState:
    """The state of a node in another process, or the last state of one that ended."""
    try:
        stored: dict[str, Any] = json.loads(records.get_fact(_STATE) or "{}")
        body = stored.get("trouble")
        trouble = error_from(body["code"], body["message"], body["suggestion"]) if body else None
        counts = MappingProxyType(dict(stored.get("counts") or {}))
    except (AttributeError, KeyError, TypeError, ValueError):
        return LivesyncState(is_running=is_running)
    if not is_running:
        return LivesyncState(counts=counts, trouble=trouble)
    progress = stored.get("progress")
    return LivesyncState(
        is_running=True,
        is_watching=stored.get("is_watching") is True,
        is_connected=stored.get("is_connected") is True,
        counts=counts,
        lag=stored.get("lag"),
        progress=tuple(progress) if progress else None,
        trouble=trouble,
    )
