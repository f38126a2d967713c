"""The MCP door: the tools, the notes and the protocol of asking, on stdin and stdout."""

from obsidian_rag.transports.mcp.server import speak

__all__ = ["speak"]
