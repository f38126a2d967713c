"""The routes of the door."""

from collections.abc import Callable
from functools import cached_property

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from obsidian_rag import __version__
from obsidian_rag.engine import Engine, Tokens
from obsidian_rag.tools import call, find_tool, success
from obsidian_rag.transports.http.activity import Activity
from obsidian_rag.transports.http.answers import (
    JSON,
    Refusal,
    answer,
    encoded,
    status_of,
)
from obsidian_rag.transports.http.body import BodyLimits, read_object
from obsidian_rag.transports.http.edge import Edge
from obsidian_rag.transports.http.events import Streams
from obsidian_rag.transports.http.guard import CALLER, Guard
from obsidian_rag.transports.http.mcp_path import MakeMcp, McpPath
from obsidian_rag.transports.http.openapi import openapi, tool_list
from obsidian_rag.transports.http.threads import ToolThreads
from obsidian_rag.transports.http.web import Sessions, WebPage


class Door:
    """The ASGI application of a living engine.

    `on_shutdown` is called when a client asks the daemon to stop; `make_mcp` makes what speaks MCP.
    """

    def __init__(
        self,
        engine: Engine,
        port: int,
        token: str,
        on_shutdown: Callable[[], None],
        make_mcp: MakeMcp | None = None,
    ) -> None:
        live = engine.live
        if live is None:
            raise ValueError("only a living engine has a door")
        settings = engine.config.settings.server
        self.activity = Activity()
        self.streams = Streams(live.bus)
        self.threads = ToolThreads()
        self._engine = engine
        self._health = live.health
        self._on_shutdown = on_shutdown
        sessions = Sessions(engine.config.home)
        self._page = WebPage(engine, sessions, self.threads, self.activity)
        self._mcp = McpPath(engine, make_mcp, self.activity) if make_mcp is not None else None
        guard = Middleware(
            Guard,
            port=port,
            token=token,
            tokens=Tokens(engine.config.home),
            per_second=settings.max_requests_per_s,
            sessions=sessions,
        )
        self._app = Starlette(
            routes=self._routes(),
            middleware=[Middleware(Edge), guard],
            exception_handlers={HTTPException: _unroutable},
        )
        self._app.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":  # there is nothing to guard a WebSocket with
            await self._app(scope, receive, send)

    def _routes(self) -> list[Route]:
        routes = [
            Route("/tools", self._list_tools, methods=["GET"]),
            Route("/tools/{name}", self._call_tool, methods=["POST"]),
            Route("/events", self.streams, methods=["GET"]),
            Route("/healthz", self._tell_health, methods=["GET"]),
            Route("/openapi.json", self._describe, methods=["GET"]),
            Route("/shutdown", self._stop, methods=["POST"]),
            *([Route("/mcp", self._mcp, methods=["POST"])] if self._mcp is not None else []),
            *self._page.routes(),
        ]
        for route in routes:
            (route.methods or set()).discard("HEAD")  # Starlette adds it to GET
        return routes

    def close(self) -> None:
        """Take no more work; what runs comes to its end by itself."""
        self.threads.close()
        if self._mcp is not None:
            self._mcp.close()

    async def _call_tool(self, request: Request) -> Response:
        name = request.path_params["name"]
        caller = request.scope[CALLER]
        if find_tool(name, caller) is None:
            return answer(call(self._engine, name, {}, caller), 404)
        with self.activity:
            limits = self._engine.config.settings.server
            most = BodyLimits(limits.max_body_kb * 1024, limits.read_timeout_s)
            arguments = await read_object(request.headers, request.receive, most)

            def work() -> Response:
                envelope = call(self._engine, name, arguments, caller)
                return Response(encoded(envelope), status_of(envelope), media_type=JSON)

            return await self.threads.run(work, request.receive)

    async def _list_tools(self, _: Request) -> Response:
        self.activity.note_use()
        return Response(self._tool_list, media_type=JSON)

    async def _tell_health(self, _: Request) -> Response:
        return answer({"status": self._health.state or "starting", "version": __version__})

    async def _describe(self, _: Request) -> Response:
        return Response(self._openapi, media_type=JSON)

    async def _stop(self, _: Request) -> Response:
        self._on_shutdown()
        return answer(success({"stopping": True}), 202)

    @cached_property
    def _tool_list(self) -> bytes:
        return encoded(tool_list())

    @cached_property
    def _openapi(self) -> bytes:
        return encoded(openapi())


async def _unroutable(request: Request, error: Exception) -> Response:
    """Starlette's own refusals: no such path, or not this method."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        message, hint = f"{request.method} is not possible here.", f"Use {allowed}."
    else:
        message, hint = "There is nothing at this path.", "See /openapi.json."
    return Refusal(error.status_code, message, hint, error.headers).response
