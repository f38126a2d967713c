"""The outer edge of the door, where whatever happens becomes an envelope."""

import asyncio
import logging

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from obsidian_rag.transports.http.answers import SAFE_HEADERS, Refusal
from obsidian_rag.transports.http.browser import refusal_page

_log = logging.getLogger(__name__)


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
