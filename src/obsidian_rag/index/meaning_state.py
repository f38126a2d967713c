"""Progress of the meaning vectors, for status, events and commands."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MEANING_PHASE = "meaning"


@dataclass(frozen=True, slots=True)
class MeaningState:
    """How many of all chunks have their meaning vector.

    `is_over` means that a pass is finished, or cannot continue because of `trouble`.
    """

    model: str
    done: int
    total: int
    is_paused: bool = False
    is_over: bool = False
    per_second: float | None = None
    trouble: str | None = None

    @property
    def seconds_left(self) -> float | None:
        """Estimated time left; None if nothing is being added."""
        if not self.per_second or self.is_paused or self.is_over or self.trouble:
            return None
        return round((self.total - self.done) / self.per_second, 1)

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> "MeaningState":
        """Read the state from a worker's message."""
        return cls(**{name: fields[name] for name in cls.__slots__})

    @property
    def shown(self) -> dict[str, object]:
        """The state as status shows it."""
        return {
            "model": self.model,
            "done": self.done,
            "total": self.total,
            "is_paused": self.is_paused,
            "per_second": self.per_second,
            "seconds_left": self.seconds_left,
            "trouble": self.trouble,
        }


def meaning_fields(state: MeaningState) -> dict[str, object]:
    """The state as a progress event, without a job."""
    return {
        "job_id": None,
        "mode": None,
        "phase": MEANING_PHASE,
        "current": state.done,
        "total": state.total,
        "is_over": state.is_over,
        "is_paused": state.is_paused,
        "per_second": state.per_second,
        "seconds_left": state.seconds_left,
        "trouble": state.trouble,
    }
