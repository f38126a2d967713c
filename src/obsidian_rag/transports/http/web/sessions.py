"""Who is signed in on the page: one-time codes, and sessions that outlive the daemon.

Threat: cookies ignore the port, so every server on 127.0.0.1 is sent ours, and a page of any of
them can make the browser send requests that carry it. The cookie alone therefore changes nothing:
`may_change` asks for our own origin and a header that foreign pages cannot send. A code is worth
something once and for two minutes; on disk there are only hashes.
"""

import contextlib
import hashlib
import json
import secrets
import time
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from starlette.datastructures import Headers

from obsidian_rag.config import write_atomically

PAGE_HEADER = "x-obsidian-rag-page"
_FILE = "sessions.json"
_CODE_S = 120
_SESSION_S = 90 * 24 * 3600
_MOST_CODES = 32
_MOST_SESSIONS = 32


class Sessions:
    """The codes that were given out and the sessions they became; for one thread."""

    def __init__(self, home: Path, clock: Callable[[], float] = time.time) -> None:
        self._file = home / _FILE
        self._clock = clock
        # Two data folders may be served at once, and both cookies go to both ports.
        self.cookie = f"obsidian_rag_{_hashed(str(home))[:12]}"
        self._codes: dict[str, float] = {}
        self._sessions = _read(self._file)

    def new_code(self) -> str:
        """A code that opens one session within two minutes."""
        while len(self._codes) >= _MOST_CODES:
            self._codes.pop(next(iter(self._codes)))
        code = secrets.token_urlsafe(32)
        self._codes[_hashed(code)] = self._clock() + _CODE_S
        return code

    def sign_in(self, code: str) -> str | None:
        """The header that sets the cookie of a new session; None if the code is not good."""
        good_until = self._codes.pop(_hashed(code), 0.0)
        if good_until < self._clock():
            return None
        session = secrets.token_urlsafe(32)
        now = self._clock()
        kept = {name: until for name, until in self._sessions.items() if until > now}
        newest = sorted(kept.items(), key=lambda one: one[1])[-(_MOST_SESSIONS - 1) :]
        self._sessions = {**dict(newest), _hashed(session): now + _SESSION_S}
        self._save()
        return f"{self.cookie}={session}; Max-Age={_SESSION_S}; {_ATTRIBUTES}"

    def sign_out(self, headers: Headers) -> str:
        """End the session of a request; the header that removes its cookie."""
        if self._sessions.pop(_hashed(self._given(headers)), None) is not None:
            self._save()
        return f"{self.cookie}=; Max-Age=0; {_ATTRIBUTES}"

    def knows(self, headers: Headers) -> bool:
        """Whether a request comes with the cookie of a session."""
        return self._sessions.get(_hashed(self._given(headers)), 0.0) > self._clock()

    def _given(self, headers: Headers) -> str:
        for text in headers.getlist("cookie"):
            with contextlib.suppress(CookieError):
                if found := SimpleCookie(text).get(self.cookie):
                    return found.value
        return ""

    def _save(self) -> None:
        with contextlib.suppress(OSError):  # a full disk signs nobody out before the next start
            write_atomically(self._file, json.dumps(self._sessions) + "\n")


def may_change(headers: Headers) -> bool:
    """Whether a request that changes something was sent by a script of our own page."""
    return (
        headers.get("origin") == f"http://{headers.get('host')}"
        and headers.get("sec-fetch-site", "same-origin") == "same-origin"
        and headers.get(PAGE_HEADER) == "1"
    )


_ATTRIBUTES = "Path=/; HttpOnly; SameSite=Strict"


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _read(file: Path) -> dict[str, float]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, Mapping):
        return {}
    return {str(name): float(until) for name, until in found.items() if isinstance(until, float)}
