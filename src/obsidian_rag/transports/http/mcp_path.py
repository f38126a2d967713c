"""`POST /mcp`: MCP over HTTP. The MCP application is created with the first request."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from obsidian_rag.engine import Engine
from obsidian_rag.tools import Caller
from obsidian_rag.transports.http.body import BodyLimits, read_bytes
from obsidian_rag.transports.http.threads import Activity
from obsidian_rag.transports.http.web.sessions import CALLER
from obsidian_rag.transports.limits import CLIENT_HEADER


class McpApp(Protocol):
    """An ASGI application that speaks MCP."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def close(self) -> None: ...


# Passed in, because MCP is slow to import and belongs to another room.
MakeMcp = Callable[[Engine, Callable[[Scope], Caller]], McpApp]


class McpPath:
    """Reads a request within the door's limits, and passes it to the MCP application."""

    def __init__(self, engine: Engine, make: MakeMcp, activity: Activity) -> None:
        self._engine = engine
        self._make = make
        self._activity = activity
        self._making = asyncio.Lock()
        self._mcp_app: McpApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = Headers(scope=scope)
        with self._activity:
            if (client := headers.get(CLIENT_HEADER, "")).isdecimal():
                self._activity.note_client(int(client))
            limits = BodyLimits.of(self._engine.config.settings.server)
            content = await read_bytes(headers, receive, limits)
            app = await self._app()
            await app(scope, _replay_body(content, receive), send)

    def close(self) -> None:
        """Close the MCP application if it was created."""
        if self._mcp_app is not None:
            self._mcp_app.close()

    async def _app(self) -> McpApp:
        async with self._making:
            if self._mcp_app is None:
                self._mcp_app = await asyncio.to_thread(self._make, self._engine, _caller)
            return self._mcp_app


def _caller(scope: Scope) -> Caller:
    caller: Caller = scope[CALLER]
    return caller


def _replay_body(content: bytes, receive: Receive) -> Receive:
    """Replay the body that was already read, then continue with the client's messages."""
    is_replayed = False

    async def replay() -> Message:
        nonlocal is_replayed
        if is_replayed:
            return await receive()
        is_replayed = True
        return {"type": "http.request", "body": content, "more_body": False}

    return replay
