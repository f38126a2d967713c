"""`obsidian_rag_index`, `_status` and `_cancel`: index runs and the state of the index."""

import uuid
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from obsidian_rag.engine import Engine, Job, index_stamp, report_status, run_index
from obsidian_rag.errors import InvalidArgument, NotFound
from obsidian_rag.tools.citation import known_files
from obsidian_rag.tools.dispatch import Found, NoParams, Params, tool, with_health
from obsidian_rag.tools.envelope import Envelope, Meta, success
from obsidian_rag.tools.guard import Caller

# Replaces fields that would reveal notes outside a scope.
_HIDDEN_FROM_LIMITED: dict[str, Any] = {
    "searchable": None,
    "unindexed_files": 0,
    "unindexed_checked": False,
    "left_out_files": 0,
    "active_job": None,
    "last_job": None,
    "watch_trouble": None,
    "health_changes": (),
    "vault_path": None,
    "link_id": None,
    "vaults": (),
    "livesync": None,
    "relations": None,
    "meaning": None,
    "restart_needed": (),
}


@tool(
    "obsidian_rag_status",
    "Is the index of the user's Obsidian vaults healthy and up to date? Counts notes, and"
    " lists files that cannot be searched with the reason. Call it first, and after starting"
    " an index run.",
    NoParams,
    is_read_only=True,
    reports_health=True,
)
def status(engine: Engine, _: NoParams, caller: Caller) -> Found:
    """Report health, counts, and every file that is not searchable with its reason.

    `left_out_files` counts the files that cannot be searched at all, without those that say
    `rag: false`: healthy means all others are searchable. Agents do not see files that say
    `rag: false` or `rag: private`, nor earlier runs; limited callers see only their notes.
    """
    report = report_status(engine, caller.scope)
    data = asdict(replace(report, trouble=None))
    del data["trouble"]
    data["left_out_files"] = sum(one.is_left_out for one in report.notices)
    if caller.is_limited:
        data |= _HIDDEN_FROM_LIMITED
    if not caller.is_owner:
        del data["recent_syncs"]
    data["notices"] = known_files(engine, data["notices"], caller)
    if data["last_job"] and data["last_job"].get("errors"):
        errors = known_files(engine, data["last_job"]["errors"], caller)
        data["last_job"] = {**data["last_job"], "errors": errors}
    return Found(data, report.trouble, report.plugin_health)


class IndexParams(Params):
    """How much to look at."""

    mode: Literal["full", "sync", "reindex"] = Field(
        description="sync: changed files; full: every file, if there is no index; reindex: a new"
        " index, after damage or a change of embedder"
    )
    # Not in the schema: only the owner of the notes can know that they were deleted on purpose.
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
    """Start a job or join the running one; without a daemon, run it to its end.

    Raises:
        InvalidArgument: an agent says that missing notes are gone; only the user may.
        Busy: the daemon is stopping, or another process writes the index.
    """
    accepts = params.accept_removals
    if accepts and not caller.is_owner:
        raise InvalidArgument(
            "Only the user can say that missing notes are gone.",
            "Run `obsidian-rag sync --accept-removals`.",
        )
    jobs = engine.live.jobs
    if jobs is None:
        fields = run_index(engine, params.mode, accepts_removals=accepts).fields
        job = {"job_id": str(uuid.uuid4()), "status": "completed"}
        shown = {"errors": known_files(engine, fields["errors"], caller)}
        return Found({**job, **fields, **shown})
    running = jobs.request(params.mode, accepts_removals=accepts)
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
    """Cancel a job; what it has done so far is kept.

    Raises:
        NotFound: there is no such job waiting or running.
    """
    jobs = engine.live.jobs
    if jobs is None:
        raise NotFound("No job is running here.", "Jobs run in the daemon: `obsidian-rag serve`.")
    job = jobs.cancel(params.job_id)
    return Found({**started_job(job), "cancelling": True})


def started_job(job: Job) -> dict[str, object]:
    """A waiting or running job, as every door shows it."""
    return {"job_id": job.id, "status": job.status.value, "mode": job.order.mode.value}


def index_outcome(engine: Engine, fields: Mapping[str, Any]) -> Envelope:
    """The envelope of a finished run with these `fields`."""
    version, newest = index_stamp(engine)
    meta = Meta(
        query_time_ms=fields["duration_ms"],
        chunks_scanned=0,
        index_version=version,
        vault_mtime=newest,
    )
    return with_health(engine, success(dict(fields), meta))
