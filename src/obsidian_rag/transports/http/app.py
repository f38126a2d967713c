"""The routes of the door, and its outer edge where whatever happens becomes an envelope."""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import cached_property

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from obsidian_rag import __version__
from obsidian_rag.engine import Engine
from obsidian_rag.tools import TOOLS, call, success
from obsidian_rag.transports.http.answers import (
    JSON,
    SAFE_HEADERS,
    Refusal,
    answer,
    encoded,
    status_of,
)
from obsidian_rag.transports.http.body import BodyLimits, read_object
from obsidian_rag.transports.http.browser import refusal_page
from obsidian_rag.transports.http.events import Streams
from obsidian_rag.transports.http.guard import Guard
from obsidian_rag.transports.http.openapi import openapi, tool_list
from obsidian_rag.transports.http.threads import ToolThreads

_log = logging.getLogger(__name__)


class Activity:
    """When the door was last used; whoever only listens or looks at health does not use it."""

    def __init__(self) -> None:
        self._under_way = 0
        self._at = time.monotonic()

    def __enter__(self) -> None:
        self._under_way += 1

    def __exit__(self, *_: object) -> None:
        self._under_way -= 1
        self.note_use()

    def note_use(self) -> None:
        """Count as used now."""
        self._at = time.monotonic()

    @property
    def idle_s(self) -> float:
        """How long nobody has used it."""
        return 0 if self._under_way else time.monotonic() - self._at


class Door:
    """The ASGI application of a living engine.

    `on_shutdown` is called when a client asks the daemon to stop.
    """

    def __init__(
        self, engine: Engine, port: int, token: str, on_shutdown: Callable[[], None]
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
        guard = Middleware(
            Guard,
            port=port,
            token=token,
            per_second=settings.max_requests_per_s,
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
        ]
        for route in routes:
            (route.methods or set()).discard("HEAD")  # Starlette adds it to GET
        return routes

    async def _call_tool(self, request: Request) -> Response:
        name = request.path_params["name"]
        is_owner = request.headers.get("x-obsidian-rag-caller") == "owner"
        if name not in TOOLS:
            return answer(call(self._engine, name, {}), 404)
        with self.activity:
            limits = self._engine.config.settings.server
            most = BodyLimits(limits.max_body_kb * 1024, limits.read_timeout_s)
            arguments = await read_object(request.headers, request.receive, most)

            def work() -> Response:
                envelope = call(self._engine, name, arguments, is_owner=is_owner)
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


class Edge:
    """ASGI middleware around all others: safe headers on every response, envelopes for failures."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and answer for what fails."""
        is_started = False

        async def send_safely(message: Message) -> None:
            nonlocal is_started
            if message["type"] == "http.response.start":
                is_started = True
                headers = MutableHeaders(scope=message)
                for name, value in SAFE_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self.app(scope, receive, send_safely)
        except Refusal as refusal:
            page = refusal_page(scope, refusal)
            await (page or refusal.response)(scope, receive, send_safely)
        except ClientDisconnect:
            pass
        except asyncio.CancelledError:  # the daemon waits no longer for requests under way
            if not is_started:
                stopped = Refusal(503, "The daemon has stopped.", "Try again.")
                await stopped.response(scope, receive, send_safely)
            raise
        except Exception:
            _log.exception("%s %r failed", scope["method"], scope["path"])
            if is_started:
                raise
            failed = Refusal(500, "Something unexpected went wrong.", "Look at logs/daemon.log.")
            await failed.response(scope, receive, send_safely)


async def _unroutable(request: Request, error: Exception) -> Response:
    """Starlette's own refusals: no such path, or not this method."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        message, hint = f"{request.method} is not possible here.", f"Use {allowed}."
    else:
        message, hint = "There is nothing at this path.", "See /openapi.json."
    return Refusal(error.status_code, message, hint, error.headers).response
