"""What is answered to each request of an MCP client, whatever carries it.

The event loop only passes messages on: everything that could take a while runs in a thread.
"""

import logging
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp_types import (
    INTERNAL_ERROR,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)

from obsidian_rag import __version__
from obsidian_rag.errors import ObsidianRagError, unexpected
from obsidian_rag.transports.mcp.prompts import INSTRUCTIONS, get_prompt, offered_prompts
from obsidian_rag.transports.mcp.refusal import refusal
from obsidian_rag.transports.mcp.template import TEMPLATE

if TYPE_CHECKING:
    from collections.abc import Callable

    from obsidian_rag.transports.mcp.answers import Answers

_MOST_AT_ONCE = 8
_log = logging.getLogger(__name__)
T = TypeVar("T")


class Handlers:
    """The requests that are answered; `answers` gives those for the context of a request."""

    def __init__(self, answers: "Callable[[Any], Answers]") -> None:
        self._answers = answers
        self._limiter = anyio.CapacityLimiter(_MOST_AT_ONCE)

    def server(self) -> Server[Any]:
        """The server with all that it answers."""
        return Server(
            "obsidian-rag",
            version=__version__,
            title="Obsidian vault",
            description="Searches an Obsidian vault by meaning and by word, on this machine",
            instructions=INSTRUCTIONS,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
        )

    async def list_tools(self, context: Any, _: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=await self._answer(context, lambda answers: answers.tools()))

    async def call_tool(self, context: Any, asked: CallToolRequestParams) -> CallToolResult:
        arguments = asked.arguments or {}
        return await self._answer(context, lambda answers: answers.tool(asked.name, arguments))

    async def list_resources(
        self, context: Any, asked: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        cursor = asked.cursor if asked else None
        return await self._answer(context, lambda answers: answers.notes(cursor))

    async def list_templates(
        self, _: Any, __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=[TEMPLATE])

    async def read_resource(
        self, context: Any, asked: ReadResourceRequestParams
    ) -> ReadResourceResult:
        return await self._answer(context, lambda answers: answers.note(asked.uri))

    async def list_prompts(self, _: Any, __: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=offered_prompts())

    async def get_prompt(self, _: Any, asked: GetPromptRequestParams) -> GetPromptResult:
        return get_prompt(asked.name, asked.arguments or {})

    async def _answer(self, context: Any, ask: "Callable[[Answers], T]") -> T:
        """Off the event loop; what nobody expected is told by its kind: its text may quote a note.

        Raises:
            MCPError: the request cannot be answered.
        """
        try:
            return await anyio.to_thread.run_sync(
                lambda: ask(self._answers(context)), limiter=self._limiter
            )
        except MCPError:
            raise
        except ObsidianRagError as error:
            raise refusal(error) from error
        except Exception as error:  # noqa: BLE001  (the outer edge: a traceback is for the log)
            _log.exception("a request failed")
            raise MCPError(INTERNAL_ERROR, unexpected(error).message) from None
