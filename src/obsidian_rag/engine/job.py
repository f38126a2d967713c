"""A job: one index run for somebody, as a value, and how it is shown."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.index import Mode, Progress, RunOrder
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
    # The vault it is about: None is all of them or, with paths, the primary one.
    link_id: str | None = None
    # It gave way to an edit, and goes on without another look at the vault.
    is_resumed: bool = False
    # When this attempt began, by the clock of the process, and how far it has stored.
    began: float | None = None
    stored: Progress | None = None

    @property
    def is_import(self) -> bool:
        """Whether it is about all of a linked vault: an edit elsewhere need not wait for it."""
        return self.link_id is not None and self.paths is None

    @property
    def order(self) -> RunOrder:
        """What the worker is asked to do."""
        paths = tuple(sorted(self.paths)) if self.paths is not None else None
        return RunOrder(self.mode, paths, self.link_id, self.accepts_removals, self.is_resumed)

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.status is not JobStatus.STARTED


def job_fields(job: Job) -> dict[str, object]:
    """A job as events and tools show it."""
    return {
        "id": job.id,
        "mode": job.mode.value,
        "link_id": job.link_id,
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


def new_job(
    mode: Mode, paths: frozenset[str] | None, link_id: str | None, *, is_requested: bool
) -> Job:
    """A job that waits."""
    return Job(
        str(uuid.uuid4()),
        mode,
        JobStatus.STARTED,
        is_requested,
        paths,
        0,
        now(),
        link_id=link_id,
    )
