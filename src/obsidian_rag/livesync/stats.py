"""What a node has done and what waits, for people and for the status tool."""

import threading
from collections import Counter
from dataclasses import dataclass, field

from obsidian_rag.errors import LivesyncBrake, ObsidianRagError
from obsidian_rag.livesync.left_out import LeftOut
from obsidian_rag.store import now


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
    is_running: bool = False
    is_connected: bool = False
    trouble: ObsidianRagError | None = None
    brake: LivesyncBrake | None = None  # deletions from other devices are held
    not_synced: tuple[LeftOut, ...] = ()
    planned: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, **counts: int) -> None:
        """Count what was done."""
        with self._lock:
            for name, number in counts.items():
                setattr(self, name, getattr(self, name) + number)
            if any(counts.values()):
                self.last_change_at = now()

    def fields(self) -> dict[str, object]:
        """The counts under the names of the status tool."""
        return {
            "pulled": self.pulled,
            "pushed": self.pushed,
            "deleted_here": self.deleted_here,
            "deleted_there": self.deleted_there,
            "renamed": self.renamed,
            "merged": self.merged,
            "conflicts": self.conflicts,
            "quarantined": self.quarantined,
            "waiting": self.waiting,
            "last_seq": self.last_seq,
            "last_change_at": self.last_change_at,
            "not_synced": [one.fields() for one in self.not_synced],
        }
