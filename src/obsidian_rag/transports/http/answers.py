"""What the door sends: JSON with the headers every response has, and refusals as envelopes."""

import json
from collections.abc import Mapping

from starlette.responses import Response

from obsidian_rag.errors import (
    Busy,
    IndexerFailed,
    InvalidArgument,
    NotFound,
    ObsidianRagError,
    SecurityViolation,
    error_kinds,
)
from obsidian_rag.tools import Envelope, failure

JSON = "application/json"
# A page that comes later brings its own Content-Security-Policy; the others stay.
SAFE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'",
    "Referrer-Policy": "no-referrer",
}


class Refusal(Exception):
    """A request that reaches no tool; its class of error follows from the HTTP status."""

    def __init__(
        self,
        status: int,
        message: str,
        suggestion: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.envelope = failure(_KINDS.get(status, InvalidArgument)(message, suggestion))

    @property
    def response(self) -> Response:
        """What the client gets."""
        return answer(self.envelope, self.status, self.headers)


_KINDS: dict[int, type[ObsidianRagError]] = {
    401: SecurityViolation,
    403: SecurityViolation,
    404: NotFound,
    421: SecurityViolation,
    429: Busy,
    500: IndexerFailed,
    503: Busy,
}


def answer(
    content: Mapping[str, object] | Envelope,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A JSON document as a response."""
    return Response(encoded(content), status, headers, JSON)


def encoded(content: object) -> bytes:
    """A JSON document as bytes; ASCII, because a file name may hold what UTF-8 cannot."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def status_of(envelope: Envelope) -> int:
    """200 for an answer, degraded or not; otherwise the status of its error."""
    if envelope["data"] is not None or envelope["error"] is None:
        return 200
    return _STATUSES.get(envelope["error"]["code"], 500)


_STATUSES = {code: kind.http_status for code, kind in error_kinds().items()}
ERROR_STATUSES = frozenset(_STATUSES.values())
