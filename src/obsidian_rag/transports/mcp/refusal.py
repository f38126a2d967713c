"""Our failures as protocol errors, for requests that have no envelope."""

from collections.abc import Mapping

from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from obsidian_rag.errors import ObsidianRagError

# The caller can do something about these; everything else is trouble on our side.
_OF_THE_CALLER = {"NOT_FOUND", "INVALID_ARGUMENT", "SECURITY_VIOLATION", "SENSITIVE_FILTERED"}


def refusal(error: ObsidianRagError) -> MCPError:
    """A failure that was raised; its code is in the error's data."""
    return refused(
        {
            "code": error.code,
            "message": error.message,
            "recoverable": error.recoverable,
            "suggestion": error.suggestion,
        }
    )


def refused(body: Mapping[str, object], uri: str | None = None) -> MCPError:
    """A failure as an envelope has it."""
    code = INVALID_PARAMS if body["code"] in _OF_THE_CALLER else INTERNAL_ERROR
    return MCPError(code, str(body["message"]), {**({"uri": uri} if uri else {}), **body})
