"""A job: one index run for somebody, as a value, and how it is shown."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.index import Mode, Progress
from obsidian_rag.store import now


class JobStatus(StrEnum):
    """How far a job is."""

    STARTED = "started"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Job:
    """One index run for somebody; a new value replaces the old one as it moves on.

    `attempt` is 0 while it waits.
    """

    id: str
    mode: Mode
    status: JobStatus
    is_requested: bool
    paths: frozenset[str] | None
    attempt: int
    created_at: str
    finished_at: str | None = None
    progress: Progress | None = None
    result: Mapping[str, object] | None = None
    error: ObsidianRagError | None = None
    accepts_removals: bool = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.status is not JobStatus.STARTED


def job_fields(job: Job) -> dict[str, object]:
    """A job as events and tools show it."""
    return {
        "id": job.id,
        "mode": job.mode.value,
        "status": job.status.value,
        "requested": job.is_requested,
        "attempt": job.attempt,
        "created_at": job.created_at,
        "finished_at": job.finished_at,
        "progress": progress_fields(job.progress) if job.progress else None,
        "result": dict(job.result) if job.result is not None else None,
        "error": job.error.body if job.error else None,
    }


def progress_fields(progress: Progress) -> dict[str, object]:
    """How far a run is, as events and tools show it."""
    return {"phase": progress.phase.value, "current": progress.current, "total": progress.total}


def cancelled(job: Job) -> Job:
    """The job, ended early."""
    return replace(job, status=JobStatus.CANCELLED, finished_at=now())


def failed(job: Job, error: ObsidianRagError) -> Job:
    """The job, ended by a failure."""
    return replace(job, status=JobStatus.FAILED, finished_at=now(), error=error)
