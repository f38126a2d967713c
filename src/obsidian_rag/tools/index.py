"""`obsidian_rag_index`: the outcome of an index run as every door shows it."""

from obsidian_rag.engine import Engine, IndexResult, index_version, result_fields
from obsidian_rag.tools.envelope import Envelope, Meta, success


def index_outcome(engine: Engine, result: IndexResult) -> Envelope:
    """The envelope of a finished run."""
    meta = Meta(
        query_time_ms=result.duration_ms,
        chunks_scanned=0,
        index_version=index_version(engine),
        vault_mtime=None,
    )
    return success(result_fields(result), meta)
