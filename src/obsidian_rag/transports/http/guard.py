"""Decides who may send requests, before a byte of the request's body is read.

Threat: any web page can make the user's browser send requests to 127.0.0.1, and by DNS rebinding
(its own name suddenly meaning 127.0.0.1) even read the answers. Any program of another user on
this machine can connect too. So the Host must be ours, requests caused by other sites are refused,
and everything but health, schemas and the page's own files needs a token or a session: the daemon's
token, which only the owner of the data folder can read, a token that the user made for an agent,
with the rights they chose, or a signed-in session (`web.sessions`). Requests without a token have
their own rate limit, so they cannot slow those with one.
"""

import math
import secrets
import time
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from obsidian_rag.engine import Tokens
from obsidian_rag.tools import AGENT, OWNER, SCREENED, Caller
from obsidian_rag.transports.http.messages import Refusal
from obsidian_rag.transports.http.web.assets import is_page_path
from obsidian_rag.transports.http.web.sessions import CALLER, SCREEN_HEADER, Sessions, may_change
from obsidian_rag.transports.limits import LIMITS_HEADER, parse_limits_header

OPEN_PATHS = frozenset({"/healthz", "/openapi.json"})
_PAGE = "/page/"
SIGN_IN = f"{_PAGE}signin"
_AGENT_PATHS = frozenset({"/tools", "/events", "/mcp"})
_ALLOWED_FETCH_SITES = {"same-origin", "none"}


class RateLimit:
    """A token bucket: `per_second` on average, bursts of twice as many."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_second
        self._most = max(1.0, 2 * per_second)
        self._left = self._most
        self._clock = clock
        self._at = clock()

    def take(self) -> float:
        """Take a token; returns 0, or the seconds until one is free."""
        at = self._clock()
        self._left = min(self._most, self._left + (at - self._at) * self._rate)
        self._at = at
        if self._left < 1:
            return (1 - self._left) / self._rate
        self._left -= 1
        return 0


class Guard:
    """ASGI middleware; raises a Refusal instead of passing a request on."""

    def __init__(
        self,
        app: ASGIApp,
        port: int,
        token: str,
        tokens: Tokens,
        sessions: Sessions,
        per_second: float,
    ) -> None:
        self.app = app
        self._tokens = tokens
        self._sessions = sessions
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"}
        self._origins = {f"http://127.0.0.1:{port}", f"http://localhost:{port}"}
        self._token = token.encode()
        self._limit = RateLimit(per_second)
        self._limit_without_token = RateLimit(per_second)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, then pass it on."""
        headers = Headers(scope=scope)
        is_page = scope["method"] == "GET" and is_page_path(scope["path"])
        self._check_host(headers)
        # Other sites may link to the page: without a session it shows nothing.
        if not (is_page and headers.get("sec-fetch-mode") == "navigate"):
            self._check_origin(headers)
        is_open = is_page or scope["path"] in OPEN_PATHS
        if scope["path"] == SIGN_IN:
            self._check_page(headers)
            is_open = True
        elif not is_open:
            caller = self._caller(scope, headers)
            scope[CALLER] = SCREENED if caller.is_owner and SCREEN_HEADER in headers else caller
        if wait_s := (self._limit_without_token if is_open else self._limit).take():
            raise Refusal(
                429,
                "Too many requests at once.",
                "Wait a moment, or raise server.max_requests_per_s.",
                {"Retry-After": str(math.ceil(wait_s))},
            )
        await self.app(scope, receive, send)

    def _caller(self, scope: Scope, headers: Headers) -> Caller:
        """The caller: a program with a token, or else the person who signed in on the page."""
        query = scope["query_string"].decode("latin-1")
        if "authorization" in headers or not self._sessions.is_signed_in(
            headers, scope["path"], query
        ):
            caller = self._token_caller(headers, scope["path"])
            if scope["path"].startswith(_PAGE) and not caller.is_owner:
                raise Refusal(403, "The page is for the owner of the notes.", "Use the tools.")
            return caller
        if scope["method"] != "GET":
            self._check_page(headers)
        return OWNER

    def _check_page(self, headers: Headers) -> None:
        if not may_change(headers):
            raise Refusal(403, "Only the page itself may do this.", "Reload the page.")

    def _check_host(self, headers: Headers) -> None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            raise Refusal(
                421, "The Host header names another server.", "Use the address in daemon.json."
            )

    def _check_origin(self, headers: Headers) -> None:
        if not set(headers.getlist("origin")) <= self._origins or not (
            set(headers.getlist("sec-fetch-site")) <= _ALLOWED_FETCH_SITES
        ):
            raise Refusal(
                403, "Pages of other sites may not call this server.", "Ask from this machine."
            )

    def _token_caller(self, headers: Headers, path: str) -> Caller:
        """The caller named in the headers for the daemon's token, else the token's agent."""
        given = headers.getlist("authorization")
        kind, _, text = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        # Header text is Latin-1, and compare_digest accepts only ASCII in a str.
        token = text.strip().encode("latin-1")
        if kind.lower() == "bearer" and secrets.compare_digest(token, self._token):
            return _caller_of_headers(headers)
        agent = self._tokens.find(token.decode("latin-1")) if kind.lower() == "bearer" else None
        if agent is None:
            raise Refusal(
                401,
                "The token is missing, wrong or expired.",
                "Send `Authorization: Bearer TOKEN` with the token of daemon.json, or with one that"
                " `obsidian-rag token create` made.",
                {"WWW-Authenticate": "Bearer"},
            )
        if path not in _AGENT_PATHS and not path.startswith("/tools/"):
            raise Refusal(403, "An agent's token is for tools only.", "Ask the user to do it.")
        return Caller(scope=agent.scope, is_read_only=agent.is_read_only)


def _caller_of_headers(headers: Headers) -> Caller:
    """The caller that the headers ask for; the daemon's token allows any."""
    limits = headers.getlist(LIMITS_HEADER)
    if not limits:
        return OWNER if headers.get("x-obsidian-rag-caller") == "owner" else AGENT
    try:
        (header,) = limits
        return parse_limits_header(header).caller()
    except (ValueError, RecursionError):
        raise Refusal(
            400, f"{LIMITS_HEADER} cannot be understood.", "Send it once, or leave it out."
        ) from None
