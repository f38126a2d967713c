"""mcp: let an agent on this machine ask the vault, over stdin and stdout."""

from obsidian_rag.config import load
from obsidian_rag.transports.servers import serve_mcp


def mcp() -> int:
    """Answer an agent over MCP, on stdin and stdout

    For Claude Code, Claude Desktop, OpenClaw and others. The client starts it; run by hand, it
    waits for messages until Ctrl-D.

    Example:  claude mcp add obsidian-rag -- obsidian-rag mcp
    """
    return serve_mcp(load())
