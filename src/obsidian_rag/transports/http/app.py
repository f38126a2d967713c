"""The daemon's HTTP application: its routes and handlers, behind the guard."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from obsidian_rag import __version__
from obsidian_rag.config import Config
from obsidian_rag.engine import Bus, Engine, Live, Tokens
from obsidian_rag.errors import InvalidArgument, ObsidianRagError, Status
from obsidian_rag.tools import OWNER, Caller, Envelope, call, failure, find_tool, success
from obsidian_rag.transports.http.events import Streams
from obsidian_rag.transports.http.guard import Guard
from obsidian_rag.transports.http.messages import (
    JSON,
    SAFE_HEADERS,
    BodyLimits,
    Refusal,
    answer,
    answer_envelope,
    encode,
    read_bytes,
    read_object,
)
from obsidian_rag.transports.http.openapi import openapi, tool_list
from obsidian_rag.transports.http.threads import Activity, ToolThreads
from obsidian_rag.transports.http.web import WebPage
from obsidian_rag.transports.http.web.sessions import CALLER, Sessions
from obsidian_rag.transports.limits import CLIENT_HEADER, parse_limits

# What a command prints, for the process that asks; None if it has to run the command itself.
AnswerCommand = Callable[[Engine, Mapping[str, object]], dict[str, object] | None]
# Makes the MCP application, which ends with the event. Passed in, because MCP is slow to import and
# belongs to another door.
MakeMcp = Callable[[Engine, Callable[[Scope], Caller], asyncio.Event], ASGIApp]
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>obsidian-rag</title>
<h1>obsidian-rag is running</h1>
<p>This address is for programs. To see your notes in this browser, type in a terminal:</p>
<pre>obsidian-rag open</pre>
<p>To ask from the terminal instead: <code>obsidian-rag search "your question"</code></p>
</html>
"""
_log = logging.getLogger(__name__)


class Edge:
    """The outermost middleware: safe headers on every response, envelopes for failures."""

    def __init__(self, app: ASGIApp, health: Callable[[], Status]) -> None:
        self.app = app
        self._health = health

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and answer if that fails."""
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
            page = _refusal_page(scope, refusal)
            await (page or refusal.response(self._health()))(scope, receive, send_safely)
        except ClientDisconnect:
            pass
        except asyncio.CancelledError:  # the daemon no longer waits for open requests
            if not is_started:
                stopped = Refusal(503, "The daemon has stopped.", "Try again.")
                await stopped.response("unavailable")(scope, receive, send_safely)
            raise
        except Exception:
            _log.exception("%s %r failed", scope["method"], scope["path"])
            if is_started:
                raise
            failed = Refusal(500, "Something unexpected went wrong.", "Look at logs/daemon.log.")
            await failed.response(self._health())(scope, receive, send_safely)


class GuardedDoor:
    """An ASGI application; `on_shutdown` is called when a client asks the daemon to stop."""

    def __init__(
        self, config: Config, bus: Bus, port: int, token: str, on_shutdown: Callable[[], None]
    ) -> None:
        self.activity = Activity()
        self.streams = Streams(bus)
        self.threads = ToolThreads()
        self.sessions = Sessions(config.home)
        self._on_shutdown = on_shutdown
        self._guard = Middleware(
            Guard,
            port=port,
            token=token,
            tokens=Tokens(config.home),
            sessions=self.sessions,
            per_second=config.settings.server.max_requests_per_s,
        )
        self._app: Starlette | None = None

    def health(self) -> Status:
        """The engine's health, for refusals; unavailable without an engine."""
        return "unavailable"

    def serve(self, routes: Sequence[BaseRoute]) -> None:
        """Start to serve these routes, and the one that stops the daemon."""
        for route in routes:
            if isinstance(route, Route) and route.methods:
                route.methods.discard("HEAD")  # Starlette adds it to GET
        self._app = Starlette(
            routes=[*routes, Route("/shutdown", self._stop, methods=["POST"])],
            middleware=[Middleware(Edge, health=self.health), self._guard],
            exception_handlers={HTTPException: _refuse_route},
        )
        self._app.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        # WebSockets are ignored: the guard cannot check them.
        if scope["type"] == "http" and self._app is not None:
            await self._app(scope, receive, send)

    def close(self) -> None:
        """Accept no more work; running work finishes by itself."""
        self.threads.close()

    async def _stop(self, _: Request) -> Response:
        self._on_shutdown()
        return answer(success({"stopping": True}), 202)


class Door(GuardedDoor):
    """The ASGI application of a living engine.

    `make_mcp` makes the MCP application, `answer_command` runs a command for another process.
    """

    def __init__(
        self,
        engine: Engine,
        port: int,
        token: str,
        on_shutdown: Callable[[], None],
        make_mcp: MakeMcp | None = None,
        answer_command: AnswerCommand | None = None,
    ) -> None:
        if not isinstance(engine.live, Live):
            raise ValueError("only a daemon's engine has a door")
        super().__init__(engine.config, engine.live.bus, port, token, on_shutdown)
        self._engine = engine
        self._live = engine.live
        self._answer_command = answer_command
        self._page = WebPage(engine, self.sessions, self.threads, self.activity)
        self._mcp = McpPath(engine, make_mcp, self.activity) if make_mcp is not None else None
        self.serve(self._routes())

    def _routes(self) -> list[BaseRoute]:
        return [
            Route("/tools", self._list_tools, methods=["GET"]),
            Route("/tools/{name}", self._call_tool, methods=["POST"]),
            Route("/events", self.streams, methods=["GET"]),
            Route("/limits", self._resolve_limits, methods=["POST"]),
            Route("/healthz", self._get_health, methods=["GET"]),
            Route("/openapi.json", self._describe, methods=["GET"]),
            Route("/command", self._run_command, methods=["POST"]),
            *([Route("/mcp", self._mcp, methods=["POST"])] if self._mcp is not None else []),
            *self._page.routes(),
        ]

    def health(self) -> Status:
        """The last known state; "unavailable" until the first check."""
        return self._live.health.state or "unavailable"

    def close(self) -> None:
        """Accept no more work; running work finishes by itself."""
        super().close()
        if self._mcp is not None:
            self._mcp.close()

    async def _call_tool(self, request: Request) -> Response:
        name = request.path_params["name"]
        caller = request.scope[CALLER]
        if find_tool(name, caller) is None:
            return answer(call(self._engine, name, {}, caller), 404)
        with self.activity:
            arguments = await self._read_body(request)

            work = partial(call, self._engine, name, arguments, caller)
            return answer_envelope(await self.threads.run(work, request.receive))

    async def _run_command(self, request: Request) -> Response:
        """Run a command and return its output; only for the owner's own command line."""
        if request.scope[CALLER] != OWNER or "authorization" not in request.headers:
            raise Refusal(403, "Only the owner's commands may do this.", "Use the tools.")
        with self.activity:
            asked = await self._read_body(request)

            def work() -> dict[str, object] | None:
                return self._answer_command(self._engine, asked) if self._answer_command else None

            output = await self.threads.run(work, request.receive)
        if output is None:
            raise Refusal(409, "This command has to run in a process of its own.", "Run it there.")
        return answer(output)

    async def _resolve_limits(self, request: Request) -> Response:
        """Resolve the limits that the user typed for an agent."""
        if not request.scope[CALLER].is_owner:
            raise Refusal(403, "Only the user may set limits.", "Use `obsidian-rag mcp --folder`.")
        asked = await self._read_body(request)

        def work() -> Envelope:
            try:
                return success(parse_limits(asked).resolve(self._engine).fields)
            except ValueError as error:
                return failure(InvalidArgument(f"{error}."))
            except ObsidianRagError as error:
                return failure(error)

        return answer_envelope(await self.threads.run(work, request.receive))

    async def _read_body(self, request: Request) -> dict[str, object]:
        limits = BodyLimits.of(self._engine.config.settings.server)
        return await read_object(request.headers, request.receive, limits)

    async def _list_tools(self, _: Request) -> Response:
        self.activity.note_use()
        return Response(self._tool_list, media_type=JSON)

    async def _get_health(self, _: Request) -> Response:
        return answer({"status": self._live.health.state or "starting", "version": __version__})

    async def _describe(self, _: Request) -> Response:
        return Response(self._openapi, media_type=JSON)

    @cached_property
    def _tool_list(self) -> bytes:
        return encode(tool_list())

    @cached_property
    def _openapi(self) -> bytes:
        return encode(openapi())


async def _refuse_route(request: Request, error: Exception) -> Response:
    """Turn Starlette's own refusals into ours: unknown path or wrong method."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        message, hint = f"{request.method} is not possible here.", f"Use {allowed}."
    else:
        message, hint = "There is nothing at this path.", "See /openapi.json."
    raise Refusal(error.status_code, message, hint, error.headers)


class McpPath:
    """`POST /mcp`: reads a request within the door's limits, and passes it to the MCP application.

    The MCP application is created with the first request.
    """

    def __init__(self, engine: Engine, make: MakeMcp, activity: Activity) -> None:
        self._engine = engine
        self._make = make
        self._activity = activity
        self._making = asyncio.Lock()
        self._over = asyncio.Event()
        self._mcp: ASGIApp | None = None

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
        """End the MCP application if it was created."""
        self._over.set()

    async def _app(self) -> ASGIApp:
        async with self._making:
            if self._mcp is None:
                make = partial(self._make, self._engine, _caller, self._over)
                self._mcp = await asyncio.to_thread(make)
            return self._mcp


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


def _refusal_page(scope: Scope, refusal: Refusal) -> Response | None:
    """A page for a person who opened the address in a browser without a token, or None."""
    wants_page = "text/html" in Headers(scope=scope).get("accept", "")
    if refusal.status != 401 or scope["method"] != "GET" or not wants_page:
        return None
    return HTMLResponse(_PAGE, refusal.status, refusal.headers)
