"""mcp: let an agent on this machine ask the vault, over stdin and stdout."""

from obsidian_rag.config import load
from obsidian_rag.transports.doors import open_mcp


def mcp() -> int:
    """Answer an agent over MCP, on stdin and stdout

    For Claude Code, Claude Desktop, OpenClaw and others. The client starts it; run by hand, it
    waits for messages until Ctrl-D.

    Example:  claude mcp add obsidian-rag -- obsidian-rag mcp
    """
    return open_mcp(load())
