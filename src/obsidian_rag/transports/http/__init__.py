"""The HTTP door: tools, events and health for this machine, on 127.0.0.1 only."""

from obsidian_rag.transports.http.server import serve

__all__ = ["serve"]
