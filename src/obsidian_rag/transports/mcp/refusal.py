"""Our failures as protocol errors, for requests that have no envelope."""

from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from obsidian_rag.errors import ErrorBody, ObsidianRagError

# The caller can do something about these; everything else is trouble on our side.
_OF_THE_CALLER = {"NOT_FOUND", "INVALID_ARGUMENT", "SECURITY_VIOLATION", "SENSITIVE_FILTERED"}


def refusal(error: ObsidianRagError) -> MCPError:
    """A failure that was raised; its code is in the error's data."""
    return refused(error.body)


def refused(body: ErrorBody, uri: str | None = None) -> MCPError:
    """A failure as an envelope has it."""
    code = INVALID_PARAMS if body["code"] in _OF_THE_CALLER else INTERNAL_ERROR
    return MCPError(code, body["message"], {**({"uri": uri} if uri else {}), **body})
