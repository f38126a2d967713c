"""A job: one index run for somebody, as a value, and how it is shown."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.index import Progress, RunOrder
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

    `order` is what the worker is asked to do; `attempt` is 0 while it waits.
    """

    order: RunOrder
    is_requested: bool
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: JobStatus = JobStatus.STARTED
    attempt: int = 0
    created_at: str = field(default_factory=now)
    finished_at: str | None = None
    progress: Progress | None = None
    result: Mapping[str, object] | None = None
    error: ObsidianRagError | None = None
    # When this attempt began, by the clock of the process, and how far it has stored.
    began: float | None = None
    stored: Progress | None = None

    @property
    def is_import(self) -> bool:
        """Whether it is about all of a linked vault: an edit elsewhere need not wait for it."""
        return self.order.link_id is not None and self.order.paths is None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.status is not JobStatus.STARTED


def job_fields(job: Job) -> dict[str, object]:
    """A job as events and tools show it."""
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
