"""HTTP messages: reads JSON bodies within limits, and writes JSON answers and refusals.

Threat: a client that sends too much, too slowly, or ambiguous JSON: two parsers must not read
different values from the same document (duplicate keys, broken UTF-8). `obsidian_rag.tools` refuses
NaN and infinite numbers when it parses the arguments.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive

from obsidian_rag.config import ServerSettings
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
_JSON_TYPE = re.compile(r'application/json\s*(;\s*charset="?utf-8"?\s*)?', re.IGNORECASE)
_AS_JSON = "Send one JSON object with the tool's arguments."
_STATUSES = {code: kind.http_status for code, kind in error_kinds().items()}
ERROR_STATUSES = frozenset(_STATUSES.values())
_ERROR_CLASSES: dict[int, type[ObsidianRagError]] = {
    401: SecurityViolation,
    403: SecurityViolation,
    404: NotFound,
    421: SecurityViolation,
    429: Busy,
    500: IndexerFailed,
    503: Busy,
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


def answer(
    content: Mapping[str, object] | Envelope,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A JSON document as a response."""
    return Response(encode(content), status, headers, JSON)


def encode(content: object) -> bytes:
    """A JSON document as bytes; ASCII, because file names may not be valid UTF-8."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def answer_envelope(envelope: Envelope) -> Response:
    """An envelope as a response: 200 if it has data, degraded or not; else the error's status."""
    error = envelope["error"]
    if error is None or envelope["data"] is not None:
        return answer(envelope)
    return answer(envelope, _STATUSES.get(error["code"], 500))


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """How large a body may be, and how long it may take to arrive."""

    most_bytes: int
    most_s: float

    @classmethod
    def of(cls, settings: ServerSettings) -> "BodyLimits":
        """The limits in the server's settings."""
        return cls(settings.max_body_kb * 1024, settings.read_timeout_s)


async def read_object(headers: Headers, receive: Receive, limits: BodyLimits) -> dict[str, object]:
    """Read the JSON object in a request; an empty body is an empty object.

    Raises:
        Refusal: it is too large, too slow, of another type, or not a JSON object.
        ClientDisconnect: the client has disconnected.
    """
    content = await read_bytes(headers, receive, limits)
    if not content:
        return {}
    if not _JSON_TYPE.fullmatch(headers.get("content-type", "").strip()):
        raise Refusal(415, "The body is not application/json in UTF-8.", _AS_JSON)
    return _parse_object(content)


async def read_bytes(headers: Headers, receive: Receive, limits: BodyLimits) -> bytes:
    """Read the body of a request.

    Raises:
        Refusal: it is too large or too slow.
        ClientDisconnect: the client has disconnected.
    """
    declared = headers.get("content-length", "0")
    # h11 has checked that these are at most 20 digits.
    if int(declared) > limits.most_bytes:
        raise _too_large(limits)
    try:
        async with asyncio.timeout(limits.most_s):
            return await _read(receive, limits)
    except TimeoutError:
        raise Refusal(
            408,
            f"The request took more than {limits.most_s:g} s to arrive.",
            "Send it at once.",
            {"Connection": "close"},
        ) from None


async def until_gone(receive: Receive) -> None:
    """Wait until the client disconnects; the body must have been read before."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read(receive: Receive, limits: BodyLimits) -> bytes:
    content = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        content += message.get("body", b"")
        if len(content) > limits.most_bytes:
            raise _too_large(limits)
        if not message.get("more_body", False):
            return bytes(content)


def _too_large(limits: BodyLimits) -> Refusal:
    return Refusal(
        413,
        f"The body is larger than {limits.most_bytes // 1024} KB.",
        "Send less, or raise server.max_body_kb.",
    )


def _parse_object(content: bytes) -> dict[str, object]:
    try:
        found = json.loads(content.decode("utf-8"), object_pairs_hook=_refuse_duplicate_keys)
    except (ValueError, RecursionError):
        raise Refusal(400, "The body is not valid JSON in UTF-8.", _AS_JSON) from None
    if not isinstance(found, dict):
        raise Refusal(400, "The body is not a JSON object.", _AS_JSON)
    return found


def _refuse_duplicate_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key appears twice")
    return found
