"""HTTP responses: JSON with the headers that every response has, and refusals as envelopes."""

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
    Status,
    error_kinds,
    worse,
)
from obsidian_rag.tools import Envelope, failure

JSON = "application/json"
# The page sets its own Content-Security-Policy; the others apply to it too.
SAFE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'",
    "Referrer-Policy": "no-referrer",
}


class Refusal(Exception):
    """A request that is refused before a tool runs; the HTTP status decides the error class."""

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
        self._error = _ERROR_CLASSES.get(status, InvalidArgument)(message, suggestion)

    def envelope(self, health: Status) -> Envelope:
        """The refusal with the engine's health, which a wrong request does not change."""
        error = self._error
        return {
            **failure(error),
            "status": health if error.is_about_call else worse(health, error.status),
        }

    def response(self, health: Status) -> Response:
        """The HTTP response."""
        return answer(self.envelope(health), self.status, self.headers)


_ERROR_CLASSES: dict[int, type[ObsidianRagError]] = {
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
    """A JSON document as bytes; ASCII, because file names may not be valid UTF-8."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def status_of(envelope: Envelope) -> int:
    """200 if there is data, degraded or not; otherwise the status of the error."""
    if envelope["data"] is not None or envelope["error"] is None:
        return 200
    return _STATUSES.get(envelope["error"]["code"], 500)


_STATUSES = {code: kind.http_status for code, kind in error_kinds().items()}
ERROR_STATUSES = frozenset(_STATUSES.values())
