"""The base of the HTTP doors, with or without an engine: guard, threads, streams, shutdown."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from obsidian_rag.config import Config
from obsidian_rag.engine import Bus, Tokens
from obsidian_rag.errors import Status
from obsidian_rag.tools import success
from obsidian_rag.transports.http.answers import SAFE_HEADERS, Refusal, answer
from obsidian_rag.transports.http.events import Streams
from obsidian_rag.transports.http.guard import Guard
from obsidian_rag.transports.http.threads import Activity, ToolThreads
from obsidian_rag.transports.http.web.sessions import Sessions

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


def refusal_page(scope: Scope, refusal: Refusal) -> Response | None:
    """A page for a person who opened the address in a browser without a token, or None."""
    wants_page = "text/html" in Headers(scope=scope).get("accept", "")
    if refusal.status != 401 or scope["method"] != "GET" or not wants_page:
        return None
    return HTMLResponse(_PAGE, refusal.status, refusal.headers)


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
            page = refusal_page(scope, refusal)
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
        """The engine's health, for refusals; there is none without an engine."""
        return "unavailable"

    def answer_at(self, routes: Sequence[Route], handlers: Mapping[Any, Any] | None = None) -> None:
        """Start to serve these routes, and the one that stops the daemon."""
        own = Route("/shutdown", self._stop, methods=["POST"])
        middleware = [Middleware(Edge, health=self.health), self._guard]
        self._app = Starlette(
            routes=[*routes, own], middleware=middleware, exception_handlers=handlers
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
