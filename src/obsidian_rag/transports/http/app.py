"""The routes of the door."""

from collections.abc import Callable
from functools import cached_property

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from obsidian_rag import __version__
from obsidian_rag.engine import Engine
from obsidian_rag.tools import call, find_tool
from obsidian_rag.transports.http.answers import (
    JSON,
    Refusal,
    answer,
    encoded,
    status_of,
)
from obsidian_rag.transports.http.body import BodyLimits, read_object
from obsidian_rag.transports.http.guard import CALLER
from obsidian_rag.transports.http.guarded import GuardedDoor
from obsidian_rag.transports.http.mcp_path import MakeMcp, McpPath
from obsidian_rag.transports.http.openapi import openapi, tool_list
from obsidian_rag.transports.http.web import WebPage


class Door(GuardedDoor):
    """The ASGI application of a living engine; `make_mcp` makes what speaks MCP."""

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
        super().__init__(engine.config, live.bus, port, token, on_shutdown)
        self._engine = engine
        self._health = live.health
        self._page = WebPage(engine, self.sessions, self.threads, self.activity)
        self._mcp = McpPath(engine, make_mcp, self.activity) if make_mcp is not None else None
        self.answer_at(self._routes(), {HTTPException: _unroutable})

    def _routes(self) -> list[Route]:
        routes = [
            Route("/tools", self._list_tools, methods=["GET"]),
            Route("/tools/{name}", self._call_tool, methods=["POST"]),
            Route("/events", self.streams, methods=["GET"]),
            Route("/healthz", self._tell_health, methods=["GET"]),
            Route("/openapi.json", self._describe, methods=["GET"]),
            *([Route("/mcp", self._mcp, methods=["POST"])] if self._mcp is not None else []),
            *self._page.routes(),
        ]
        for route in routes:
            (route.methods or set()).discard("HEAD")  # Starlette adds it to GET
        return routes

    def close(self) -> None:
        """Take no more work; what runs comes to its end by itself."""
        super().close()
        if self._mcp is not None:
            self._mcp.close()

    async def _call_tool(self, request: Request) -> Response:
        name = request.path_params["name"]
        caller = request.scope[CALLER]
        if find_tool(name, caller) is None:
            return answer(call(self._engine, name, {}, caller), 404)
        with self.activity:
            limits = BodyLimits.of(self._engine.config.settings.server)
            arguments = await read_object(request.headers, request.receive, limits)

            def work() -> Response:
                envelope = call(self._engine, name, arguments, caller)
                return answer(envelope, status_of(envelope))

            return await self.threads.run(work, request.receive)

    async def _list_tools(self, _: Request) -> Response:
        self.activity.note_use()
        return Response(self._tool_list, media_type=JSON)

    async def _tell_health(self, _: Request) -> Response:
        return answer({"status": self._health.state or "starting", "version": __version__})

    async def _describe(self, _: Request) -> Response:
        return Response(self._openapi, media_type=JSON)

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
