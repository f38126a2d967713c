"""The official MCP client at `obsidian-rag mcp`, and at what answers it without a daemon."""

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

import anyio
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp_types import CallToolResult, ErrorData, TextContent
from tests.transports.command_line import COMMAND
from tests.waiting import PATIENCE_S

from obsidian_rag.tools import AGENT
from obsidian_rag.transports.mcp.answers import Answers, open_engine
from obsidian_rag.transports.mcp.handlers import Handlers

SERVER = [*COMMAND, "mcp"]
ALONE = "--no-daemon"
T = TypeVar("T")
Mode = Literal["legacy", "auto"]


def talk(
    session: Callable[[Client], Awaitable[T]], said: Path, *flags: str, mode: Mode = "legacy"
) -> T:
    """Start a server, do `session` with it, and end it as a client does: by closing its stdin.

    `legacy` shakes hands (`initialize`); `auto` speaks the newest protocol. What the server
    writes to stderr goes to the file `said`.
    """

    async def main() -> T:
        server = StdioServerParameters(
            command=SERVER[0], args=[*SERVER[1:], *flags], env=dict(os.environ)
        )
        with anyio.fail_after(PATIENCE_S), said.open("w") as log:
            async with Client(
                stdio_client(server, errlog=log), mode=mode, read_timeout_seconds=PATIENCE_S
            ) as client:
                return await session(client)

    return anyio.run(main)


def talk_in_process(session: Callable[[Client], Awaitable[T]]) -> T:
    """Do `session` with what a server without a daemon answers, in this process."""

    async def main() -> T:
        server = Handlers(lambda _: Answers(open_engine, AGENT)).server()
        with anyio.fail_after(PATIENCE_S):
            async with Client(server, mode="legacy", read_timeout_seconds=PATIENCE_S) as client:
                return await session(client)

    return anyio.run(main)


def envelope_of(result: CallToolResult) -> Any:
    """The envelope, which programs and models get alike."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert json.loads(block.text) == result.structured_content
    return result.structured_content


async def failure_of(request: Awaitable[object]) -> ErrorData:
    """The protocol error that a request ends in."""
    try:
        await request
    except MCPError as error:
        return error.error
    raise AssertionError("the request was answered")
