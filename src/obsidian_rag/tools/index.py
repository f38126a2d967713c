"""`obsidian_rag_index`: start an index run, and its outcome as every door shows it."""

import time
import uuid
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from obsidian_rag.engine import Engine, Job, index_stamp, result_fields, run_index
from obsidian_rag.errors import InvalidArgument, NotFound
from obsidian_rag.tools.citation import known_files
from obsidian_rag.tools.dispatch import Params, Tool, answer_meta, with_health
from obsidian_rag.tools.envelope import Envelope, Meta, success
from obsidian_rag.tools.guard import AGENT, Caller


class IndexParams(Params):
    """How much to look at."""

    mode: Literal["full", "sync", "reindex"] = Field(
        description="sync: changed files; full: every file, if there is no index; reindex: a new"
        " index, after damage or a change of embedder"
    )
    # Not in the schema: only the person whose notes these are can know that they are gone.
    accept_removals: SkipJsonSchema[bool] = False


def index(engine: Engine, params: IndexParams, caller: Caller = AGENT) -> Envelope:
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
        fields = result_fields(run_index(engine, params.mode, accepts_removals=accepts))
        job = {"job_id": str(uuid.uuid4()), "status": "completed"}
        shown = {"errors": known_files(engine, fields["errors"], caller)}
        return success({**job, **fields, **shown}, _meta(engine, fields))
    started = time.perf_counter()
    running = engine.live.jobs.request(params.mode, accepts_removals=accepts)
    return success(started_job(running), answer_meta(engine, started))


class CancelParams(Params):
    """Which job."""

    job_id: str | None = Field(
        None, min_length=1, max_length=64, description="The job; without it, the one that runs"
    )


def cancel(engine: Engine, params: CancelParams, _: Caller = AGENT) -> Envelope:
    """Ask a job to end early; what it has done so far is kept.

    Raises:
        NotFound: no such job is waiting or running.
    """
    started = time.perf_counter()
    if engine.live is None:
        raise NotFound("No job is running here.", "Jobs run in the daemon: `obsidian-rag serve`.")
    job = engine.live.jobs.cancel(params.job_id)
    return success({**started_job(job), "cancelling": True}, answer_meta(engine, started))


def started_job(job: Job) -> dict[str, object]:
    """A job that runs or waits, as every door shows it."""
    return {"job_id": job.id, "status": job.status.value, "mode": job.mode.value}


def index_outcome(engine: Engine, fields: Mapping[str, Any]) -> Envelope:
    """The envelope of a finished run, whose outcome is told by `result_fields`."""
    return with_health(engine, success(dict(fields), _meta(engine, fields)))


def _meta(engine: Engine, fields: Mapping[str, Any]) -> Meta:
    version, newest = index_stamp(engine)
    return Meta(
        query_time_ms=fields["duration_ms"],
        chunks_scanned=0,
        index_version=version,
        vault_mtime=newest,
    )


INDEX = Tool(
    name="obsidian_rag_index",
    description=(
        "Bring the search index up to date with the user's notes, which are only read. The answer"
        " has a job id; obsidian_rag_status shows its progress, then counts and the files that"
        " failed. While a job runs, asking again gives the same job."
    ),
    params=IndexParams,
    run=index,
    is_read_only=False,
    is_of_installation=True,
)
CANCEL = Tool(
    name="obsidian_rag_cancel",
    description=(
        "End a running index job early, when the user asks for it; the next run goes on from there."
    ),
    params=CancelParams,
    run=cancel,
    is_read_only=False,
    is_of_installation=True,
)
