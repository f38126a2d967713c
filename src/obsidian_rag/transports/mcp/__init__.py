"""The MCP door: tools, notes as resources, and prompts.

On stdin and stdout it is a `bridge` to the daemon, or a `server` of its own without a daemon; over
HTTP it is part of the daemon's door (`over_http.McpOverHttp`).
"""

__all__: list[str] = []
