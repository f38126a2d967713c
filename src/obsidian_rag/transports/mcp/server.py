"""The server itself: one client on stdin and stdout, until it goes or we are told to end.

The event loop only passes messages on. Everything that could take a while runs in a thread, and
nothing heavy is imported before a request needs it, so that a client gets its first answer soon.
"""

import logging
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
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
from obsidian_rag.config import Config
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.transports.mcp.log import keep_log
from obsidian_rag.transports.mcp.malformed import mended, refusal_of
from obsidian_rag.transports.mcp.prompts import INSTRUCTIONS, get_prompt, offered_prompts
from obsidian_rag.transports.mcp.refusal import refusal
from obsidian_rag.transports.mcp.template import TEMPLATE

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable

    from anyio.streams.memory import MemoryObjectSendStream

    from obsidian_rag.transports.mcp.answers import Answers

_MOST_AT_ONCE = 8
_INTERRUPTED = 130
_log = logging.getLogger(__name__)
T = TypeVar("T")


def speak(config: Config) -> int:
    """Serve one MCP client; returns the exit code once its end of the line is closed."""
    keep_log(config.logs / "mcp.log")
    door = _Door(config)
    try:
        anyio.run(_serve, door)
    finally:
        door.close()
    return 0


async def _serve(door: "_Door") -> None:
    server = door.server()
    try:
        async with anyio.create_task_group() as group:
            if sys.platform != "win32":
                group.start_soon(_end_on_signal, door)
            # It keeps stdout to itself: what libraries print goes to stderr.
            async with stdio_server() as (incoming, outgoing):
                passing, readable = anyio.create_memory_object_stream[SessionMessage | Exception]()
                group.start_soon(_pass_on, incoming, passing, outgoing.send)
                await server.run(readable, outgoing, server.create_initialization_options())
            group.cancel_scope.cancel()
    except* (BrokenPipeError, ConnectionResetError):
        _log.info("the client went away before it had its answer")


async def _pass_on(
    incoming: "AsyncIterable[SessionMessage | Exception]",
    passing: "MemoryObjectSendStream[SessionMessage | Exception]",
    reply: "Callable[[SessionMessage], Awaitable[None]]",
) -> None:
    """Hand messages to the server; answer the lines that it would drop."""
    async with passing:
        async for item in incoming:
            if not isinstance(item, Exception):
                await passing.send(item)
            elif (message := mended(item)) is not None:
                await passing.send(SessionMessage(message))
            elif (refused := refusal_of(item)) is not None:
                await reply(SessionMessage(refused))


async def _end_on_signal(door: "_Door") -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            await anyio.to_thread.run_sync(door.close)
            logging.shutdown()
            # A thread waits for the next line of stdin and cannot be told to stop.
            os._exit(0 if number == signal.SIGTERM else _INTERRUPTED)


class _Door:
    """What is answered to each request; the context of a request tells us nothing we need."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._made: Answers | None = None
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

    def close(self) -> None:
        """End what was started for the answers; nothing if nothing was asked."""
        with self._lock:
            if self._made is not None:
                self._made.close()

    async def list_tools(self, _: Any, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=await self._answer(lambda answers: answers.tools()))

    async def call_tool(self, _: Any, asked: CallToolRequestParams) -> CallToolResult:
        arguments = asked.arguments or {}
        return await self._answer(lambda answers: answers.tool(asked.name, arguments))

    async def list_resources(
        self, _: Any, asked: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        cursor = asked.cursor if asked else None
        return await self._answer(lambda answers: answers.notes(cursor))

    async def list_templates(
        self, _: Any, __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=[TEMPLATE])

    async def read_resource(self, _: Any, asked: ReadResourceRequestParams) -> ReadResourceResult:
        return await self._answer(lambda answers: answers.note(asked.uri))

    async def list_prompts(self, _: Any, __: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=offered_prompts())

    async def get_prompt(self, _: Any, asked: GetPromptRequestParams) -> GetPromptResult:
        return get_prompt(asked.name, asked.arguments or {})

    async def _answer(self, ask: "Callable[[Answers], T]") -> T:
        """Off the event loop; what nobody expected is told by its kind: its text may quote a note.

        Raises:
            MCPError: the request cannot be answered.
        """
        try:
            return await anyio.to_thread.run_sync(
                lambda: ask(self._answers()), limiter=self._limiter
            )
        except MCPError:
            raise
        except ObsidianRagError as error:
            raise refusal(error) from error
        except Exception as error:  # noqa: BLE001  (the outer edge: a traceback is for the log)
            _log.exception("a request failed")
            kind = type(error).__name__
            raise MCPError(INTERNAL_ERROR, f"Something unexpected went wrong ({kind}).") from None

    def _answers(self) -> "Answers":
        with self._lock:
            if self._made is None:
                from obsidian_rag.transports.mcp.answers import (  # noqa: PLC0415  (see the module)
                    Answers,
                )

                self._made = Answers(self._config)
            return self._made
