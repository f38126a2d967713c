"""Who may ask at all: checked before a byte of the request's body is read.

Threat: any web page can make the user's browser send requests to 127.0.0.1, and by DNS rebinding
(its own name suddenly meaning 127.0.0.1) even read the answers. Any program of another user on
this machine can connect too. So the Host must be ours, a request that a foreign page caused is
refused, and everything but health and schemas needs the token, which only the owner of the data
folder can read. Rates are limited per kind of caller: who has no token cannot slow who has one.
"""

import math
import secrets
import time
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from obsidian_rag.transports.http.answers import Refusal

OPEN_PATHS = frozenset({"/healthz", "/openapi.json"})
_FRIENDLY_SITES = {"same-origin", "none"}


class Pace:
    """A token bucket: so many per second, twice as many at once."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_second
        self._most = max(1.0, 2 * per_second)
        self._left = self._most
        self._clock = clock
        self._at = clock()

    def take(self) -> float:
        """0 if one may pass now, else the seconds until one may."""
        at = self._clock()
        self._left = min(self._most, self._left + (at - self._at) * self._rate)
        self._at = at
        if self._left < 1:
            return (1 - self._left) / self._rate
        self._left -= 1
        return 0


class Guard:
    """ASGI middleware; raises a Refusal instead of passing a request on."""

    def __init__(self, app: ASGIApp, port: int, token: str, per_second: float) -> None:
        self.app = app
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"}
        self._origins = {f"http://127.0.0.1:{port}", f"http://localhost:{port}"}
        self._token = token.encode()
        self._pace = Pace(per_second)
        self._pace_without_token = Pace(per_second)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, then pass on."""
        headers = Headers(scope=scope)
        self._check_place(headers)
        is_open = scope["path"] in OPEN_PATHS
        if not is_open:
            self._check_token(headers)
        if wait_s := (self._pace_without_token if is_open else self._pace).take():
            raise Refusal(
                429,
                "Too many requests at once.",
                "Wait a moment, or raise server.max_requests_per_s.",
                {"Retry-After": str(math.ceil(wait_s))},
            )
        await self.app(scope, receive, send)

    def _check_place(self, headers: Headers) -> None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            raise Refusal(
                403, "The Host header names another server.", "Use the address in daemon.json."
            )
        if not set(headers.getlist("origin")) <= self._origins or not (
            set(headers.getlist("sec-fetch-site")) <= _FRIENDLY_SITES
        ):
            raise Refusal(
                403, "Pages of other sites may not call this server.", "Ask from this machine."
            )

    def _check_token(self, headers: Headers) -> None:
        given = headers.getlist("authorization")
        kind, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        # Header text is Latin-1; compare_digest takes no str that is not ASCII.
        if kind.lower() != "bearer" or not secrets.compare_digest(
            token.strip().encode("latin-1"), self._token
        ):
            raise Refusal(
                401,
                "The token is missing or wrong.",
                "Send `Authorization: Bearer TOKEN` with the token of daemon.json.",
                {"WWW-Authenticate": "Bearer"},
            )
