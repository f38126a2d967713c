"""`obsidian_rag_index`: start an index run, and its outcome as every door shows it."""

import uuid
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from obsidian_rag.engine import Engine, Job, index_stamp, run_index
from obsidian_rag.errors import InvalidArgument, NotFound
from obsidian_rag.tools.citation import known_files
from obsidian_rag.tools.dispatch import Found, Params, tool, with_health
from obsidian_rag.tools.envelope import Envelope, Meta, success
from obsidian_rag.tools.guard import Caller


class IndexParams(Params):
    """How much to look at."""

    mode: Literal["full", "sync", "reindex"] = Field(
        description="sync: changed files; full: every file, if there is no index; reindex: a new"
        " index, after damage or a change of embedder"
    )
    # Not in the schema: only the person whose notes these are can know that they are gone.
    accept_removals: SkipJsonSchema[bool] = False


@tool(
    "obsidian_rag_index",
    "Bring the search index up to date with the user's notes, which are only read. The answer"
    " has a job id; obsidian_rag_status shows its progress, then counts and the files that"
    " failed. While a job runs, asking again gives the same job.",
    IndexParams,
    is_read_only=False,
    is_of_installation=True,
)
def index(engine: Engine, params: IndexParams, caller: Caller) -> Found:
    """Start a job, or take up the one that runs; a process that does not stay runs it to its end.

    Raises:
        InvalidArgument: an agent says that missing notes are gone, which is the user's to say.
        Busy: the daemon is stopping, or another process writes the index.
    """
    accepts = params.accept_removals
    if accepts and not caller.is_owner:
        raise InvalidArgument(
            "Only the user can say that missing notes are gone.",
            "Run `obsidian-rag sync --accept-removals`.",
        )
    if engine.live is None:
        fields = run_index(engine, params.mode, accepts_removals=accepts).fields
        job = {"job_id": str(uuid.uuid4()), "status": "completed"}
        shown = {"errors": known_files(engine, fields["errors"], caller)}
        return Found({**job, **fields, **shown})
    running = engine.live.jobs.request(params.mode, accepts_removals=accepts)
    return Found(started_job(running))


class CancelParams(Params):
    """Which job."""

    job_id: str | None = Field(
        None, min_length=1, max_length=64, description="The job; by default the running one"
    )


@tool(
    "obsidian_rag_cancel",
    "Stop a running index job when the user asks for it; the next run continues from there.",
    CancelParams,
    is_read_only=False,
    is_of_installation=True,
)
def cancel(engine: Engine, params: CancelParams, _: Caller) -> Found:
    """Ask a job to end early; what it has done so far is kept.

    Raises:
        NotFound: no such job is waiting or running.
    """
    if engine.live is None:
        raise NotFound("No job is running here.", "Jobs run in the daemon: `obsidian-rag serve`.")
    job = engine.live.jobs.cancel(params.job_id)
    return Found({**started_job(job), "cancelling": True})


def started_job(job: Job) -> dict[str, object]:
    """A job that runs or waits, as every door shows it."""
    return {"job_id": job.id, "status": job.status.value, "mode": job.order.mode.value}


def index_outcome(engine: Engine, fields: Mapping[str, Any]) -> Envelope:
    """The envelope of a finished run, whose outcome is told by its `fields`."""
    version, newest = index_stamp(engine)
    meta = Meta(
        query_time_ms=fields["duration_ms"],
        chunks_scanned=0,
        index_version=version,
        vault_mtime=newest,
    )
    return with_health(engine, success(dict(fields), meta))
