"""Progress and result of an index run."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, Self

_MAX_REPORTS_PER_S = 10


class Mode(StrEnum):
    """How much an index run looks at."""

    FULL = "full"
    SYNC = "sync"
    REINDEX = "reindex"


class Phase(StrEnum):
    """The current phase of a run; counts are files."""

    SCANNING = "scanning"
    HASHING = "hashing"
    PARSING = "parsing"
    EMBEDDING = "embedding"
    STORING = "storing"
    OPTIMISING = "optimising"
    RELATING = "relating"


class Cancelled(Exception):
    """The run was stopped before it had anything to keep."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Files done of a total; 0 means that the total is not known yet."""

    phase: Phase
    current: int
    total: int

    @classmethod
    def read(cls, message: Mapping[str, object]) -> Self:
        """Read the progress from a message."""
        current, total = int(str(message["current"])), int(str(message["total"]))
        return cls(Phase(str(message["phase"])), current, total)

    @property
    def fields(self) -> dict[str, object]:
        """The progress as events and tools show it."""
        return {"phase": self.phase.value, "current": self.current, "total": self.total}


@dataclass(frozen=True, slots=True)
class Failure:
    """A note that could not be indexed; the next run retries temporary failures."""

    file: str
    reason: str
    message: str
    is_passing: bool
    link_id: str = ""


@dataclass(slots=True)
class Tally:
    """Counts of one run, filled as it goes."""

    added: int = 0
    changed: int = 0
    renamed: int = 0
    removed: int = 0
    unchanged: int = 0
    skipped: int = 0
    embedded_chunks: int = 0
    reused_chunks: int = 0
    errors: list[Failure] = field(default_factory=list)
    is_cancelled: bool = False

    def add(self, other: "Tally") -> None:
        """Add the counts of a run over another vault."""
        is_cancelled = self.is_cancelled or other.is_cancelled
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
        self.is_cancelled = is_cancelled

    @property
    def touched(self) -> int:
        """Number of notes changed in the store."""
        return self.added + self.changed + self.renamed + self.removed


@dataclass(frozen=True, slots=True)
class IndexResult:
    """A finished run: what the index holds now, and what the run did."""

    mode: Mode
    indexed_files: int
    total_chunks: int
    tally: Tally
    duration_ms: int = 0
    # A message if the run had to set aside or rebuild something.
    repair: str = ""

    @property
    def exit_code(self) -> int:
        """0 done, 1 some notes failed, 130 interrupted."""
        if self.tally.is_cancelled:
            return 130
        return 1 if self.tally.errors else 0

    @property
    def fields(self) -> dict[str, Any]:
        """The outcome with the names of the plugin design, and ours beside them."""
        tally = asdict(self.tally)
        return {
            "mode": self.mode.value,
            "indexed_files": self.indexed_files,
            "total_chunks": self.total_chunks,
            "duration_ms": self.duration_ms,
            **({"repair": self.repair} if self.repair else {}),
            "errors": tally.pop("errors"),
            **tally,
        }


Listener = Callable[[Progress], None]
Stop = Callable[[], bool]


def paced(listener: Listener) -> Listener:
    """Limit a listener's calls per second; the end of a phase is always reported.

    The threads of a run report concurrently; the listener is called by one at a time.
    """
    reported: dict[Phase, float] = {}
    lock = threading.Lock()

    def report(progress: Progress) -> None:
        now = time.monotonic()
        is_last = progress.current == progress.total
        with lock:
            if is_last or now - reported.get(progress.phase, 0) >= 1 / _MAX_REPORTS_PER_S:
                reported[progress.phase] = now
                listener(progress)

    return report
