"""What each request is answered from; imported with the first one, since it costs a second."""

import json
from collections.abc import Mapping
from typing import Any

from mcp_types import (
    CallToolResult,
    ListResourcesResult,
    ReadResourceResult,
    TextContent,
    Tool,
    ToolAnnotations,
)

from obsidian_rag.tools import TOOLS, Envelope
from obsidian_rag.tools import Tool as OwnTool
from obsidian_rag.transports.backend import Backend
from obsidian_rag.transports.mcp.notes import list_resources, read_resource


class Answers:
    """The answers that need the engine; any thread may ask."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def tools(self) -> list[Tool]:
        """Every tool there is."""
        return [_offer(tool) for tool in TOOLS.values()]

    def tool(self, name: str, arguments: Mapping[str, object]) -> CallToolResult:
        """What a tool answers; a failure is an answer too."""
        return _result(self._backend.call(name, arguments))

    def notes(self, cursor: str | None) -> ListResourcesResult:
        """A page of notes: of the daemon while one runs, as with the tools."""
        told = self._backend.ask_daemon("resources/list", {"cursor": cursor} if cursor else {})
        if told is not None:
            return ListResourcesResult.model_validate(told)
        return list_resources(self._backend.engine, cursor, self._backend.caller)

    def note(self, uri: str) -> ReadResourceResult:
        """One note.

        Raises:
            MCPError: there is no such note, or it is not for agents.
        """
        return read_resource(self._backend.call, uri)

    def close(self) -> None:
        """End what was started for the answers."""
        self._backend.close()


def _result(envelope: Envelope) -> CallToolResult:
    """An envelope for programs and, as the same JSON, for models; no data is an error."""
    # A file name may hold what UTF-8 cannot; its characters are shown as "?".
    plain = json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))
    text = plain.encode(errors="replace").decode()
    return CallToolResult(
        content=[TextContent(text=text)],
        structured_content=json.loads(text),
        is_error=envelope["data"] is None,
    )


def _offer(tool: OwnTool[Any]) -> Tool:
    """A tool as MCP offers it; an output schema or a title would make the list long."""
    return Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema,
        annotations=ToolAnnotations(
            read_only_hint=tool.is_read_only,
            # A relation is added to a note, nothing is taken away; asking twice is asking once.
            destructive_hint=None if tool.is_read_only else False,
            idempotent_hint=None if tool.is_read_only else True,
            open_world_hint=False,
        ),
    )
