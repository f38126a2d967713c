"""Sign-in for the page: one-time codes, and sessions that survive a restart of the daemon.

Threat: cookies ignore the port, so the browser sends ours to every server on 127.0.0.1, and a page
of any of them can make the browser send us requests with it. So the cookie alone is not enough: a
session has a second half, the proof, which the page keeps in its local storage. Local storage
belongs to one origin, port included, and the browser never sends it by itself. `may_change` also
requires our own origin. Requests for pictures and the event stream cannot have a header: the
address of a picture is signed, that of the stream contains the proof. A code is valid once and for
two minutes; only hashes are stored on disk.
"""

import contextlib
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from starlette.datastructures import Headers

from obsidian_rag.config import write_atomically

# Its value is the proof; before sign-in any value will do.
PAGE_HEADER = "x-obsidian-rag-page"
# Sent while the privacy screen of the page is on.
SCREEN_HEADER = "x-obsidian-rag-screen"
# The key of the caller in the ASGI scope of a request.
CALLER = "obsidian_rag.caller"
_FILE = "sessions.json"
_FILES = "/page/file"
_STREAM = "/events"
_PROOF = "proof"
_KEY = "key"
_CODE_S = 120
_SESSION_S = 90 * 24 * 3600
_MAX_CODES = 32
_MAX_SESSIONS = 32


class Sessions:
    """One-time codes and the sessions opened with them; for one thread."""

    def __init__(self, home: Path, clock: Callable[[], float] = time.time) -> None:
        self._file = home / _FILE
        self._clock = clock
        # Two data folders may be served at once, and the browser sends both cookies to both ports.
        self.cookie = f"obsidian_rag_{_hash(str(home))[:12]}"
        self._codes: dict[str, float] = {}
        # By the hash of the cookie: when the session expires, and the hash of its proof.
        self._sessions = _read(self._file)
        self._signing = secrets.token_bytes(32)

    def new_code(self) -> str:
        """A code that opens one session within two minutes."""
        while len(self._codes) >= _MAX_CODES:
            self._codes.pop(next(iter(self._codes)))
        code = secrets.token_urlsafe(32)
        self._codes[_hash(code)] = self._clock() + _CODE_S
        return code

    def sign_in(self, code: str) -> tuple[str, str] | None:
        """Open a session; returns the header that sets its cookie, and its proof.

        None if the code is invalid.
        """
        good_until = self._codes.pop(_hash(code), 0.0)
        if good_until < self._clock():
            return None
        session, proof = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        now = self._clock()
        kept = {name: one for name, one in self._sessions.items() if one[0] > now}
        newest = sorted(kept.items(), key=lambda one: one[1])[-(_MAX_SESSIONS - 1) :]
        self._sessions = {**dict(newest), _hash(session): (now + _SESSION_S, _hash(proof))}
        self._save()
        return f"{self.cookie}={session}; Max-Age={_SESSION_S}; {_ATTRIBUTES}", proof

    def sign_out(self, headers: Headers) -> str:
        """End the session of a request; returns the header that removes its cookie."""
        if self._sessions.pop(_hash(self._cookie_value(headers)), None) is not None:
            self._save()
        return f"{self.cookie}=; Max-Age=0; {_ATTRIBUTES}"

    def is_signed_in(self, headers: Headers, path: str, query: str) -> bool:
        """Whether a request has both halves of a session."""
        until, proof = self._sessions.get(_hash(self._cookie_value(headers)), (0.0, ""))
        if until <= self._clock():
            return False
        shown = headers.get(PAGE_HEADER, "")
        if path == _STREAM:
            shown = query.removeprefix(f"{_PROOF}=")
        elif path == _FILES and PAGE_HEADER not in headers:
            asked, _, key = query.rpartition(f"&{_KEY}=")
            return secrets.compare_digest(self._signature(asked), key.encode())
        return secrets.compare_digest(_hash(shown), proof)

    def sign(self, query: str) -> str:
        """Sign the query of a file's address, so that the cookie alone is enough to get it."""
        return f"{query}&{_KEY}={self._signature(query).decode()}"

    def _signature(self, query: str) -> bytes:
        return hmac.new(self._signing, query.encode(), hashlib.sha256).hexdigest().encode()

    def _cookie_value(self, headers: Headers) -> str:
        for text in headers.getlist("cookie"):
            with contextlib.suppress(CookieError):
                if found := SimpleCookie(text).get(self.cookie):
                    return found.value
        return ""

    def _save(self) -> None:
        with contextlib.suppress(OSError):  # with a full disk, sessions last until the next start
            write_atomically(self._file, json.dumps(self._sessions) + "\n")


def may_change(headers: Headers) -> bool:
    """Whether a request that changes something was sent by a script of our own page."""
    return (
        headers.get("origin") == f"http://{headers.get('host')}"
        and headers.get("sec-fetch-site", "same-origin") == "same-origin"
        and PAGE_HEADER in headers
    )


_ATTRIBUTES = "Path=/; HttpOnly; SameSite=Strict"


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _read(file: Path) -> dict[str, tuple[float, str]]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, Mapping):
        return {}
    return {
        str(name): (float(one[0]), str(one[1]))
        for name, one in found.items()
        if isinstance(one, list) and len(one) == 2 and isinstance(one[0], int | float)
    }
