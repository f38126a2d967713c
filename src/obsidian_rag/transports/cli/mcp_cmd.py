"""mcp: let an agent on this machine ask the vault, over stdin and stdout."""

import contextlib
from typing import Annotated

import typer

from obsidian_rag.config import load
from obsidian_rag.transports.lazy import engine
from obsidian_rag.transports.limits import Limits
from obsidian_rag.transports.servers import serve_mcp


def mcp(
    vault: Annotated[
        list[str] | None,
        typer.Option("--vault", help="Only this vault, by name or link id; may be repeated"),
    ] = None,
    folder: Annotated[
        list[str] | None,
        typer.Option("--folder", help="Only notes in this folder; may be repeated"),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Refuse every tool that changes something")
    ] = False,
) -> int:
    """Answer an agent over MCP, on stdin and stdout

    For Claude Code, Claude Desktop, OpenClaw and others. The client starts it; run by hand, it
    waits for messages until Ctrl-D. With --vault or --folder, the agent sees nothing else.

    Example:  claude mcp add obsidian-rag -- obsidian-rag mcp --folder Projects --read-only
    """
    config = load()
    limits = Limits(tuple(vault) if vault else None, tuple(folder) if folder else None, read_only)
    if limits.vaults or limits.folders:
        with contextlib.closing(engine.Engine(config)) as opened:
            scope = opened.vaults.scope_of(limits.vaults, limits.folders)
        limits = Limits(scope.vaults, scope.folders, read_only)
    return serve_mcp(config, limits)
