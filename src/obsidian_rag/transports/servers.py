"""Starts the servers, HTTP and MCP, for the command line; each is loaded only when it is wanted."""

from dataclasses import dataclass

from obsidian_rag.config import Config


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """How long a daemon stays; without `idle_exit_s` as the settings say."""

    idle_exit_s: float | None = None
    parent_pid: int | None = None


def serve_http(config: Config, options: ServeOptions) -> int:
    """Be the daemon until told to stop; returns the exit code."""
    from obsidian_rag.transports.http import serve

    return serve(config, options.idle_exit_s, options.parent_pid)


def serve_mcp(config: Config) -> int:
    """Speak MCP on stdin and stdout until the client goes."""
    from obsidian_rag.transports.mcp import speak

    return speak(config)
