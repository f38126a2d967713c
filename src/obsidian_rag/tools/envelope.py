"""The one shape of every answer, from every door."""

from typing import TypedDict

from obsidian_rag.errors import ObsidianRagError, Status


class ErrorBody(TypedDict):
    """A failure as the caller sees it."""

    code: str
    message: str
    recoverable: bool
    suggestion: str


class Meta(TypedDict):
    """What an answer was made from."""

    query_time_ms: float
    chunks_scanned: int
    index_version: str
    vault_mtime: str | None


class Envelope(TypedDict):
    """Data, or an error, or both when the answer is degraded."""

    status: Status
    data: object | None
    error: ErrorBody | None
    meta: Meta


NO_META = Meta(query_time_ms=0, chunks_scanned=0, index_version="0", vault_mtime=None)


def success(
    data: object, meta: Meta = NO_META, trouble: ObsidianRagError | None = None
) -> Envelope:
    """An answer; with `trouble` it is one with a caveat."""
    return Envelope(
        status=trouble.status if trouble else "healthy",
        data=data,
        error=_body(trouble) if trouble else None,
        meta=meta,
    )


def failure(error: ObsidianRagError, meta: Meta = NO_META) -> Envelope:
    """No answer, and why."""
    return Envelope(status=error.status, data=None, error=_body(error), meta=meta)


def _body(error: ObsidianRagError) -> ErrorBody:
    return ErrorBody(
        code=error.code,
        message=error.message,
        recoverable=error.recoverable,
        suggestion=error.suggestion,
    )
