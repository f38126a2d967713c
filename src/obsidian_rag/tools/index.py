"""`obsidian_rag_index`: start an index run, and its outcome as every door shows it."""

import uuid
from typing import Literal

from pydantic import Field

from obsidian_rag.engine import Engine, IndexResult, Mode, index_version, result_fields, run_index
from obsidian_rag.tools.dispatch import Params, Tool
from obsidian_rag.tools.envelope import Envelope, Meta, success


class IndexParams(Params):
    """How much to look at."""

    mode: Literal["full", "sync", "reindex"] = Field(
        description="sync: files that changed; full: the content of every file;"
        " reindex: build a new index, needed after damage or a change of embedder"
    )


def index(engine: Engine, params: IndexParams) -> Envelope:
    """Run a job to its end; a daemon will answer `started` here and finish it elsewhere."""
    job_id = str(uuid.uuid4())
    result = run_index(engine, Mode(params.mode))
    job = {"job_id": job_id, "status": "completed"}
    return success({**job, **result_fields(result)}, _meta(engine, result))


def index_outcome(engine: Engine, result: IndexResult) -> Envelope:
    """The envelope of a finished run."""
    return success(result_fields(result), _meta(engine, result))


def _meta(engine: Engine, result: IndexResult) -> Meta:
    return Meta(
        query_time_ms=result.duration_ms,
        chunks_scanned=0,
        index_version=index_version(engine),
        vault_mtime=None,
    )


INDEX = Tool(
    name="obsidian_rag_index",
    description=(
        "Bring the search index up to date with the user's notes. Use `sync` unless the index is"
        " missing (`full`) or damaged (`reindex`). Notes are only read, never changed. The answer"
        " has a job id and, once the job is completed, counts and the files that failed."
    ),
    params=IndexParams,
    run=index,
    is_read_only=False,
)
