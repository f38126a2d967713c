"""A job: one index run as an immutable value, and its fields for events and tools."""

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.index import Phase, Precedence, Progress, RunOrder
from obsidian_rag.store import now

_FILE_PHASES = (Phase.PARSING, Phase.EMBEDDING, Phase.STORING)


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

    def moved_on(self, told: Progress) -> "Job":
        """The job with new progress; an attempt counts only its own files."""
        if told.phase in _FILE_PHASES:
            before = self.stored_before
            told = Progress(told.phase, before + told.current, before + told.total)
        is_stored = told.phase is Phase.STORING
        return replace(self, progress=told, stored=told if is_stored else self.stored)

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
