"""What every door has, with or without an engine: guarded routes, threads, streams, and an end."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from obsidian_rag.config import Config
from obsidian_rag.engine import Bus, Tokens
from obsidian_rag.tools import success
from obsidian_rag.transports.http.activity import Activity
from obsidian_rag.transports.http.answers import answer
from obsidian_rag.transports.http.edge import Edge
from obsidian_rag.transports.http.events import Streams
from obsidian_rag.transports.http.guard import Guard
from obsidian_rag.transports.http.threads import ToolThreads
from obsidian_rag.transports.http.web.sessions import Sessions


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

    def answer_at(self, routes: Sequence[Route], handlers: Mapping[Any, Any] | None = None) -> None:
        """Answer at these routes from now on, and at the one that ends the daemon."""
        own = Route("/shutdown", self._stop, methods=["POST"])
        middleware = [Middleware(Edge), self._guard]
        self._app = Starlette(
            routes=[*routes, own], middleware=middleware, exception_handlers=handlers
        )
        self._app.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        # There is nothing to guard a WebSocket with.
        if scope["type"] == "http" and self._app is not None:
            await self._app(scope, receive, send)

    def close(self) -> None:
        """Take no more work; what runs comes to its end by itself."""
        self.threads.close()

    async def _stop(self, _: Request) -> Response:
        self._on_shutdown()
        return answer(success({"stopping": True}), 202)
