"""An index run as a value: the order, also as a message to the worker, and the job it becomes."""

import time
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import Self

from obsidian_rag.config import Config
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.health import VaultFacts
from obsidian_rag.index import Mode, Phase, Progress
from obsidian_rag.store import now

_FILE_PHASES = (Phase.PARSING, Phase.EMBEDDING, Phase.STORING)


class Precedence(IntEnum):
    """Job priority: lower numbers go first, and preempt a running job."""

    # Edits, explicit requests, and any scan of the primary vault.
    EDIT = 0
    # A full scan of a linked vault that is already indexed.
    LOOK = 1
    # The first index of a linked vault, which may take hours.
    IMPORT = 2


@dataclass(frozen=True, slots=True)
class RunOrder:
    """Which files an index run covers, and how.

    `link_id` limits it to that vault; `paths` are in that vault, or in the primary one. None means
    all vaults, and all files. `accepts_removals`: the user confirmed that missing notes were
    deleted. `is_resumed` continues with what a preempted run left.
    """

    mode: Mode
    paths: tuple[str, ...] | None = None
    link_id: str | None = None
    accepts_removals: bool = False
    is_resumed: bool = False

    @classmethod
    def read(cls, message: Mapping[str, object]) -> Self:
        """Read the order from a message."""
        paths, link_id = message["paths"], message.get("link_id")
        return cls(
            Mode(str(message["mode"])),
            tuple(str(path) for path in paths) if isinstance(paths, list) else None,
            str(link_id) if link_id else None,
            accepts_removals=message.get("accepts_removals") is True,
            is_resumed=message.get("is_resumed") is True,
        )


def settings_for_runs(config: Config) -> dict[str, object]:
    """The settings that an index run depends on."""
    return config.settings.model_dump(exclude={"server", "watcher", "livesync", "meaning"})


def precedence_of(paths: Collection[str] | None, linked: VaultFacts | None) -> Precedence:
    """Priority of a run over these files, or all; `linked` is None for the primary vault."""
    if linked is None or paths is not None:
        return Precedence.EDIT
    return Precedence.IMPORT if linked.is_unfinished else Precedence.LOOK


class JobStatus(StrEnum):
    """How far a job is."""

    STARTED = "started"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Job:
    """One index run; a new value replaces the old one as it progresses.

    `order` is what the worker is asked to do; `attempt` is 0 while it waits.
    """

    order: RunOrder
    is_requested: bool
    precedence: Precedence = Precedence.EDIT
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: JobStatus = JobStatus.STARTED
    attempt: int = 0
    created_at: str = field(default_factory=now)
    finished_at: str | None = None
    progress: Progress | None = None
    result: Mapping[str, object] | None = None
    error: ObsidianRagError | None = None
    # When this attempt began (monotonic clock), and its last storing progress.
    began: float | None = None
    stored: Progress | None = None
    # Files stored and seconds worked before an interruption; progress continues from there.
    stored_before: int = 0
    worked_before_s: float = 0.0

    @property
    def worked_s(self) -> float:
        """Seconds it has run so far, without waiting."""
        running_s = 0.0 if self.began is None else time.monotonic() - self.began
        return self.worked_before_s + running_s

    def interrupted(self) -> "Job":
        """The job, waiting to resume where it stopped."""
        stored = self.stored.current if self.stored is not None else self.stored_before
        return replace(self, began=None, stored_before=stored, worked_before_s=self.worked_s)

    def with_progress(self, reported: Progress) -> "Job":
        """The job with new progress; an attempt counts only its own files."""
        if reported.phase in _FILE_PHASES:
            before = self.stored_before
            reported = Progress(reported.phase, before + reported.current, before + reported.total)
        is_stored = reported.phase is Phase.STORING
        return replace(self, progress=reported, stored=reported if is_stored else self.stored)

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.status is not JobStatus.STARTED


def job_fields(job: Job) -> dict[str, object]:
    """The fields of a job for events and tools."""
    return {
        "id": job.id,
        "mode": job.order.mode.value,
        "link_id": job.order.link_id,
        "status": job.status.value,
        "requested": job.is_requested,
        "attempt": job.attempt,
        "created_at": job.created_at,
        "finished_at": job.finished_at,
        "progress": job.progress.fields if job.progress else None,
        "result": dict(job.result) if job.result is not None else None,
        "error": job.error.body if job.error else None,
    }


def cancelled(job: Job) -> Job:
    """The job, ended early."""
    return replace(job, status=JobStatus.CANCELLED, finished_at=now())


def failed(job: Job, error: ObsidianRagError) -> Job:
    """The job, ended by a failure."""
    return replace(job, status=JobStatus.FAILED, finished_at=now(), error=error)
