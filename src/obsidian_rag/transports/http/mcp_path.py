"""`POST /mcp`: where the door lets MCP speak. What speaks is made with the first request."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from obsidian_rag.engine import Engine
from obsidian_rag.tools import Caller
from obsidian_rag.transports.http.activity import Activity
from obsidian_rag.transports.http.body import BodyLimits, read_bytes
from obsidian_rag.transports.http.guard import CALLER


class McpApp(Protocol):
    """An ASGI application that speaks MCP."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def close(self) -> None: ...


# It is slow to load and belongs to another room, so the door is told how to make it.
MakeMcp = Callable[[Engine, Callable[[Scope], Caller]], McpApp]


class McpPath:
    """Reads the request within the door's limits, and hands it on."""

    def __init__(self, engine: Engine, make: MakeMcp, activity: Activity) -> None:
        self._engine = engine
        self._make = make
        self._activity = activity
        self._making = asyncio.Lock()
        self._made: McpApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        with self._activity:
            limits = BodyLimits.of(self._engine.config.settings.server)
            content = await read_bytes(Headers(scope=scope), receive, limits)
            app = await self._app()
            await app(scope, _again(content, receive), send)

    def close(self) -> None:
        """Let go of what was made."""
        if self._made is not None:
            self._made.close()

    async def _app(self) -> McpApp:
        async with self._making:
            if self._made is None:
                self._made = await asyncio.to_thread(self._make, self._engine, _caller)
            return self._made


def _caller(scope: Scope) -> Caller:
    caller: Caller = scope[CALLER]
    return caller


def _again(content: bytes, receive: Receive) -> Receive:
    """The body that was read already, then whatever the client does next."""
    is_given = False

    async def told() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": content, "more_body": False}

    return told
