"""Reads the body of a request: limited in size and time, and strictly one JSON object.

Threat: a client that sends too much, too slowly, or ambiguous JSON: two parsers must not read
different values from the same document (duplicate keys, broken UTF-8). `obsidian_rag.tools` refuses
NaN and infinite numbers when it parses the arguments.
"""

import asyncio
import json
import re
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from obsidian_rag.config import ServerSettings
from obsidian_rag.transports.http.answers import Refusal

_JSON_TYPE = re.compile(r'application/json\s*(;\s*charset="?utf-8"?\s*)?', re.IGNORECASE)
_AS_JSON = "Send one JSON object with the tool's arguments."


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
