"""The daemon's HTTP application: its routes and handlers."""

from collections.abc import Callable, Mapping
from functools import cached_property

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from obsidian_rag import __version__
from obsidian_rag.engine import Engine, Live
from obsidian_rag.errors import InvalidArgument, ObsidianRagError, Status
from obsidian_rag.tools import OWNER, call, failure, find_tool, success
from obsidian_rag.transports.http.answers import (
    JSON,
    Refusal,
    answer,
    encoded,
    status_of,
)
from obsidian_rag.transports.http.body import BodyLimits, read_object
from obsidian_rag.transports.http.guarded import GuardedDoor
from obsidian_rag.transports.http.mcp_path import MakeMcp, McpPath
from obsidian_rag.transports.http.openapi import openapi, tool_list
from obsidian_rag.transports.http.web import WebPage
from obsidian_rag.transports.http.web.sessions import CALLER
from obsidian_rag.transports.limits import limits_told

# What a command prints, for the process that asks; None if it has to run the command itself.
AnswerCommand = Callable[[Engine, Mapping[str, object]], dict[str, object] | None]


class Door(GuardedDoor):
    """The ASGI application of a living engine.

    `make_mcp` makes what speaks MCP; `answer_command` is what the command line wants answered.
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
        self.answer_at(self._routes(), {HTTPException: _refuse_route})

    def _routes(self) -> list[Route]:
        routes = [
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
        for route in routes:
            (route.methods or set()).discard("HEAD")  # Starlette adds it to GET
        return routes

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
            limits = BodyLimits.of(self._engine.config.settings.server)
            arguments = await read_object(request.headers, request.receive, limits)

            def work() -> Response:
                envelope = call(self._engine, name, arguments, caller)
                return answer(envelope, status_of(envelope))

            return await self.threads.run(work, request.receive)

    async def _run_command(self, request: Request) -> Response:
        """Run a command and return its output; only for the owner's own command line."""
        if request.scope[CALLER] != OWNER or "authorization" not in request.headers:
            raise Refusal(403, "Only a command of the owner may ask this.", "Ask the tools.")
        with self.activity:
            limits = BodyLimits.of(self._engine.config.settings.server)
            asked = await read_object(request.headers, request.receive, limits)

            def work() -> dict[str, object] | None:
                return self._answer_command(self._engine, asked) if self._answer_command else None

            said = await self.threads.run(work, request.receive)
        if said is None:
            raise Refusal(409, "This command has to run in a process of its own.", "Run it there.")
        return answer(said)

    async def _resolve_limits(self, request: Request) -> Response:
        """Resolve the limits that the user typed for an agent."""
        if not request.scope[CALLER].is_owner:
            raise Refusal(403, "Only the user sets limits.", "Use `obsidian-rag mcp --folder`.")
        body = BodyLimits.of(self._engine.config.settings.server)
        asked = await read_object(request.headers, request.receive, body)

        def work() -> Response:
            try:
                return answer(success(limits_told(asked).known_to(self._engine).told))
            except ValueError as error:
                return answer(failure(InvalidArgument(f"{error}.")), 400)
            except ObsidianRagError as error:
                return answer(failure(error), error.http_status)

        return await self.threads.run(work, request.receive)

    async def _list_tools(self, _: Request) -> Response:
        self.activity.note_use()
        return Response(self._tool_list, media_type=JSON)

    async def _get_health(self, _: Request) -> Response:
        return answer({"status": self._live.health.state or "starting", "version": __version__})

    async def _describe(self, _: Request) -> Response:
        return Response(self._openapi, media_type=JSON)

    @cached_property
    def _tool_list(self) -> bytes:
        return encoded(tool_list())

    @cached_property
    def _openapi(self) -> bytes:
        return encoded(openapi())


async def _refuse_route(request: Request, error: Exception) -> Response:
    """Turn Starlette's own refusals into ours: unknown path or wrong method."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        message, hint = f"{request.method} is not possible here.", f"Use {allowed}."
    else:
        message, hint = "There is nothing at this path.", "See /openapi.json."
    raise Refusal(error.status_code, message, hint, error.headers)
