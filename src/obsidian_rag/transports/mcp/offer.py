"""The tools as MCP offers them, and their envelopes as MCP results."""

import json
from typing import Any

from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations

from obsidian_rag.tools import TOOLS, Envelope, schemas
from obsidian_rag.tools import Tool as OwnTool


def offered_tools() -> list[Tool]:
    """Every tool there is, without what would make the list long: an output schema, a title."""
    by_name = schemas()
    return [_offer(tool, by_name[tool.name]) for tool in TOOLS.values()]


def result_of(envelope: Envelope) -> CallToolResult:
    """An envelope for programs and, as the same JSON, for models; no data is an error."""
    # A file name may hold what UTF-8 cannot; its characters are shown as "?".
    plain = json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))
    text = plain.encode(errors="replace").decode()
    return CallToolResult(
        content=[TextContent(text=text)],
        structured_content=json.loads(text),
        is_error=envelope["data"] is None,
    )


def _offer(tool: OwnTool[Any], parameters: dict[str, Any]) -> Tool:
    return Tool(
        name=tool.name,
        description=tool.description,
        input_schema=parameters,
        annotations=ToolAnnotations(
            read_only_hint=tool.is_read_only,
            # A relation is added to a note, nothing is taken away; asking twice is asking once.
            # Who only reads has nothing to say about it.
            destructive_hint=None if tool.is_read_only else False,
            idempotent_hint=None if tool.is_read_only else True,
            open_world_hint=False,
        ),
    )
