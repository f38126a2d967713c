"""Starts the HTTP and MCP servers for the command line; each is imported only when it is used."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from obsidian_rag.transports.limits import NO_LIMITS, Limits
from obsidian_rag.transports.mcp.bridge import bridge as bridge
from obsidian_rag.transports.mcp.bridge import parse_flags

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from starlette.types import ASGIApp, Scope

    from obsidian_rag.config import Config
    from obsidian_rag.engine import Engine
    from obsidian_rag.tools import Caller


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """How long a daemon stays; `idle_exit_s` overrides the setting.

    With `while_used`, as for an agent, it stays while it is used, and a user's own replaces it.
    """

    idle_exit_s: float | None = None
    parent_pid: int | None = None
    while_used: bool = False


def serve_http(config: "Config", options: ServeOptions) -> int:
    """Run the daemon until it is stopped; returns the exit code."""
    from obsidian_rag.transports.cli.answering import answer_command
    from obsidian_rag.transports.http import serve

    return serve(config, options, _mcp_over_http, answer_command)


def _mcp_over_http(
    engine: "Engine", caller_of: "Callable[[Scope], Caller]", over: "asyncio.Event"
) -> "ASGIApp":
    from obsidian_rag.transports.mcp.over_http import McpOverHttp

    return McpOverHttp(engine, caller_of, over)


def mcp_at_once(arguments: list[str]) -> int | None:
    """Run the `mcp` bridge without heavy imports; None if the full command line is needed."""
    limits = parse_flags(arguments)
    if limits is None:
        return None
    code = bridge(limits)
    if code is None:
        sys.argv.append("--no-daemon")  # the bridge tried, and has reported why it failed
    return code


def serve_mcp(config: "Config", limits: Limits = NO_LIMITS) -> int:
    """Serve MCP on stdin and stdout until the client disconnects, without a daemon.

    The client sees only what `limits` allow.
    """
    from obsidian_rag.transports.mcp.server import speak

    return speak(config, limits)
