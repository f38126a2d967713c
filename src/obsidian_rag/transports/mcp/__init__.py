"""The MCP door: tools, notes and the protocol of asking, on stdin and stdout.

Over HTTP it is part of the daemon's door: `over_http`.
"""

from obsidian_rag.transports.mcp.server import speak

__all__ = ["speak"]
