"""mcp: let an agent on this machine ask the vault, over stdin and stdout."""

import contextlib
from typing import Annotated

import typer

from obsidian_rag.config import load
from obsidian_rag.transports.lazy import engine
from obsidian_rag.transports.limits import Limits
from obsidian_rag.transports.servers import bridge, serve_mcp


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
    no_daemon: Annotated[
        bool, typer.Option("--no-daemon", help="Neither use a daemon nor start one")
    ] = False,
) -> int:
    """Answer an agent over MCP, on stdin and stdout

    For Claude Code, Claude Desktop, OpenClaw and others. The client starts it; run by hand, it
    waits for messages until Ctrl-D. With --vault or --folder, the agent sees nothing else. It
    asks the daemon, and starts one if none runs, which ends ten minutes after the last agent.

    Example:  claude mcp add obsidian-rag -- obsidian-rag mcp --folder Projects --read-only
    """
    limits = Limits(tuple(vault) if vault else None, tuple(folder) if folder else None, read_only)
    if not no_daemon and (code := bridge(limits)) is not None:
        return code
    config = load()
    if limits.vaults or limits.folders:
        with contextlib.closing(engine.Engine(config)) as opened:
            limits = limits.resolve(opened)
    return serve_mcp(config, limits)
