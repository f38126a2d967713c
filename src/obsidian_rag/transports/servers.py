"""Starts the servers, HTTP and MCP, for the command line; each is loaded only when it is wanted."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from obsidian_rag.config import Config
from obsidian_rag.transports.limits import NO_LIMITS, Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Scope

    from obsidian_rag.engine import Engine
    from obsidian_rag.tools import Caller
    from obsidian_rag.transports.mcp.over_http import McpOverHttp


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """How long a daemon stays; without `idle_exit_s` as the settings say."""

    idle_exit_s: float | None = None
    parent_pid: int | None = None


def serve_http(config: Config, options: ServeOptions) -> int:
    """Be the daemon until told to stop; returns the exit code."""
    from obsidian_rag.transports.http import serve

    return serve(config, options.idle_exit_s, options.parent_pid, _mcp_over_http)


def _mcp_over_http(engine: "Engine", caller_of: "Callable[[Scope], Caller]") -> "McpOverHttp":
    from obsidian_rag.transports.mcp.over_http import McpOverHttp

    return McpOverHttp(engine, caller_of)


def serve_mcp(config: Config, limits: Limits = NO_LIMITS) -> int:
    """Speak MCP on stdin and stdout until the client goes; it sees what `limits` leave."""
    from obsidian_rag.transports.mcp import speak

    return speak(config, limits)
