"""MCP over HTTP, behind the daemon's door: each request by itself, answered as one of an agent.

The door has checked the token and set the caller. Nothing is kept between two requests, so there
is no session to steal, to lose or to end.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from obsidian_rag.engine import Engine
from obsidian_rag.tools import AGENT, Caller
from obsidian_rag.transports.mcp.answers import Answers
from obsidian_rag.transports.mcp.handlers import Handlers

if TYPE_CHECKING:
    from starlette.requests import Request


class McpOverHttp:
    """An ASGI application for MCP; started by the first request, stopped by the event `over`.

    A caller over MCP is always an agent, even with the owner's token.
    """

    def __init__(
        self, engine: Engine, caller_of: Callable[[Scope], Caller], over: asyncio.Event
    ) -> None:
        def answers(context: Any) -> Answers:
            request: Request = context.request
            caller = caller_of(request.scope)
            agent = AGENT if caller.is_owner else caller
            return Answers(lambda: contextlib.nullcontext(engine), agent)

        self._manager = StreamableHTTPSessionManager(
            Handlers(answers).server(), json_response=True, stateless=True
        )
        self._starting = asyncio.Lock()
        self._over = over
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        async with self._starting:
            if self._task is None:
                running = asyncio.Event()
                self._task = asyncio.create_task(self._run(running))
                await running.wait()
        await self._manager.handle_request(scope, receive, send)

    async def _run(self, running: asyncio.Event) -> None:
        # Entered and left in the same task, as its task group requires.
        async with self._manager.run():
            running.set()
            await self._over.wait()
