"""Lines that the MCP library cannot read: it drops them, and their sender would wait forever.

JSON may say what UTF-8 cannot (`"\\ud800"`): such a message is mended and goes on. Every other
unreadable line is answered with a protocol error, with the request's id where one can be found.
"""

import json
from typing import TYPE_CHECKING

from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterator

Id = int | str | None


def mended(problem: Exception) -> JSONRPCMessage | None:
    """The message with "?" for what is no text, if that is all that was wrong with it."""
    line = _line_of(problem)
    if line is None:
        return None
    try:
        found = json.loads(line)
        text = json.dumps(found, ensure_ascii=False).encode(errors="replace")
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
    except (ValueError, RecursionError):
        return None


def refusal_of(problem: Exception) -> JSONRPCError | None:
    """What to answer to a line that is no message; None for an empty one."""
    line = _line_of(problem)
    if line is not None and not line.strip():
        return None
    is_json = line is None
    error = (
        ErrorData(code=INVALID_REQUEST, message="The message is not a JSON-RPC request.")
        if is_json
        else ErrorData(code=PARSE_ERROR, message="The message is not valid JSON.")
    )
    return JSONRPCError(jsonrpc="2.0", id=_id_of(problem), error=error)


def _line_of(problem: Exception) -> str | None:
    """The line, where it was not even JSON."""
    for kind, given in _given(problem):
        if kind == "json_invalid":
            return str(given)
    return None


def _id_of(problem: Exception) -> Id:
    for _, given in _given(problem):
        if isinstance(given, dict) and isinstance(given.get("id"), int | str):
            found: Id = given["id"]
            return found
    return None


def _given(problem: Exception) -> "Iterator[tuple[str, object]]":
    if isinstance(problem, ValidationError):
        for detail in problem.errors(include_url=False, include_context=False):
            yield detail["type"], detail["input"]
