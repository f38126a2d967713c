"""HTTP client for model providers: consent, keys, timeouts, retries and rate limits.

Threat: note text reaches a machine other than the one that was checked and agreed to. So a client
cannot be created for an address that the settings do not allow, never follows redirects and never
uses a proxy from the environment: text goes to the checked address or nowhere. It never logs text,
and quotes only error codes and types: an error message could contain text, or part of the key.
"""

import json
import os
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from obsidian_rag.config import EmbeddingSettings, SecuritySettings, check_address, is_loopback
from obsidian_rag.errors import ConfigInvalid, ObsidianRagError, ProviderFailed, SecurityViolation

if TYPE_CHECKING:
    import httpx


_FIX = "Set embedding.base_url to an address like http://localhost:11434."


def check_endpoint(url: str, security: SecuritySettings, consent: bool) -> bool:
    """Check that `url` may be used, and return whether it is outside this machine.

    Raises:
        ConfigInvalid: not a plain http(s) address, or consent is missing.
        SecurityViolation: an outside address while security.local_only is on.
    """
    host = check_address(url, "embedding.base_url", _FIX)
    if is_loopback(host):
        return False
    if security.local_only:
        raise SecurityViolation(
            f"The embedding server {host} is not on this machine, and security.local_only is on.",
            "Use a server on localhost, or set security.local_only to false.",
            is_about_call=False,
        )
    if not consent:
        raise ConfigInvalid(
            f"The embedding server {host} is not on this machine.",
            "If your notes may go there, set embedding.external_consent to true.",
        )
    return True


@dataclass(frozen=True, slots=True)
class ApiKey:
    """The environment variable that holds a key, and the header that sends it."""

    variable: str
    header: str
    before: str = ""

    def headers(self) -> dict[str, str]:
        """The header with the key.

        Raises:
            ProviderFailed: the variable is not set, or does not contain a valid key.
        """
        key = os.environ.get(self.variable, "").strip()
        if not key:
            raise ProviderFailed(
                f"The environment variable {self.variable} is not set; it must contain the key.",
                f"Set {self.variable} where obsidian-rag runs, then restart its daemon.",
            )
        if not key.isascii() or not key.isprintable():
            raise ProviderFailed(
                f"The environment variable {self.variable} does not contain a valid key.",
                f"Set {self.variable} to the key alone.",
            )
        return {self.header: self.before + key}


_CONNECT_TIMEOUT_S = 5.0
_FIRST_PAUSE_S = 0.5
_BUSY_STATUSES = (429, 503)
_CODE = re.compile(r"[A-Za-z][\w.-]{0,60}")
_DELAY_S = re.compile(r"(\d+(?:\.\d+)?)s")


def is_busy(response: "httpx.Response") -> bool:
    """Whether the server asks to try again later."""
    return response.status_code in _BUSY_STATUSES


@dataclass(frozen=True, slots=True)
class Server:
    """What differs between providers: name, key, errors, and which failures to retry."""

    name: str
    unreachable: Callable[[str], ObsidianRagError]
    key: ApiKey | None = None
    is_temporary: "Callable[[httpx.Response], bool]" = is_busy


class ProviderClient:
    """One server of a provider; connections are opened on first use.

    Raises:
        ConfigInvalid: the address is not valid, or consent is missing.
        SecurityViolation: an outside address while security.local_only is on.
    """

    def __init__(
        self,
        server: Server,
        settings: EmbeddingSettings,
        security: SecuritySettings,
        wait: Callable[[float], None],
    ) -> None:
        base_url = settings.base_url or ""
        self.is_external = check_endpoint(base_url, security, settings.external_consent)
        self.base_url = base_url.rstrip("/")
        self.server = server
        self.timeout_s = settings.timeout_s
        self._wait = wait
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    def post(
        self,
        path: str,
        body: Mapping[str, object],
        *,
        timeout_s: Callable[[], float],
        tries: int,
        longest_pause_s: float,
    ) -> "httpx.Response":
        """Send JSON; retry with growing pauses if the server is unreachable or busy.

        Raises:
            ObsidianRagError: the error that `unreachable` makes.
            ProviderFailed: the server stays too busy, or there is no key.
        """
        # Not encoded by httpx: json.dumps escapes lone surrogates as ASCII.
        content = json.dumps(body)
        for attempt in range(1, tries + 1):
            try:
                return self._post(path, content, timeout_s())
            except _Retry as problem:
                if attempt == tries:
                    raise problem.cause from problem.__cause__
                pause = min(longest_pause_s, _FIRST_PAUSE_S * 2 ** (attempt - 1))
                asked_s = min(problem.asked_s, longest_pause_s)
                self._wait(max(pause * random.uniform(0.5, 1.5), asked_s))
        raise AssertionError("tries is at least one")

    def get(self, path: str, timeout_s: float) -> "httpx.Response":
        """Send one request, without retries.

        Raises:
            ObsidianRagError: the error that `unreachable` makes.
            ProviderFailed: there is no key.
        """
        import httpx

        headers = self.key_headers()
        try:
            return self._open().get(path, headers=headers, timeout=timeout_s)
        except httpx.HTTPError as error:
            raise self.server.unreachable(self.base_url) from error

    def key_headers(self) -> dict[str, str]:
        """The header with the key, if the provider has one.

        Raises:
            ProviderFailed: the key is missing.
        """
        return self.server.key.headers() if self.server.key is not None else {}

    def no_access(self, response: "httpx.Response") -> ProviderFailed:
        """The error for a request that the server does not authorise."""
        name, status = self.server.name, f"HTTP {response.status_code}"
        if self.server.key is None:
            return ProviderFailed(
                f"{name} requires a key ({status}).",
                "Set embedding.api_key_env to the name of the environment variable that holds it.",
            )
        variable = self.server.key.variable
        return ProviderFailed(
            f"{name} rejects the key in {variable} ({status}).",
            f"Set {variable} to a key that allows embedding, then restart the daemon.",
        )

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _open(self) -> "httpx.Client":
        import httpx

        with self._lock:
            if self._client is None:
                self._client = httpx.Client(
                    base_url=self.base_url, follow_redirects=False, trust_env=False
                )
            return self._client

    def _post(self, path: str, content: str, timeout_s: float) -> "httpx.Response":
        import httpx

        timeout = httpx.Timeout(timeout_s, connect=_CONNECT_TIMEOUT_S)
        headers = {"Content-Type": "application/json", **self.key_headers()}
        try:
            response = self._open().post(path, content=content, headers=headers, timeout=timeout)
        except httpx.HTTPError as error:
            raise _Retry(self.server.unreachable(self.base_url)) from error
        if self.server.is_temporary(response):
            busy = f"{self.server.name} is too busy to embed (HTTP {response.status_code})."
            raise _Retry(
                ProviderFailed(busy, "Try again in a minute."), _requested_pause_s(response)
            )
        return response


class _Retry(Exception):
    def __init__(self, cause: ObsidianRagError, asked_s: float = 0.0) -> None:
        super().__init__(cause.message)
        self.cause = cause
        self.asked_s = asked_s


def json_of(response: "httpx.Response") -> object:
    """The JSON of a response; None if it is not JSON."""
    try:
        return response.json()
    except ValueError:
        return None


def error_of(response: "httpx.Response") -> Mapping[str, object]:
    """The `error` object of a response, as OpenAI and Google send it; empty if there is none."""
    answer = json_of(response)
    # Google sometimes wraps the response to a batch in a list.
    if isinstance(answer, list) and answer:
        answer = answer[0]
    if not isinstance(answer, dict):
        return {}
    error = answer.get("error", answer)
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, dict) else {}


def reason_of(response: "httpx.Response") -> str:
    """The status and the error code, if there is one; never the error message."""
    status = f"HTTP {response.status_code}"
    error = error_of(response)
    codes = (error.get(name) for name in ("code", "status", "type"))
    known = (code for code in codes if isinstance(code, str) and _CODE.fullmatch(code))
    code = next(known, None)
    return f"{status}: {code}" if code else status


def _requested_pause_s(response: "httpx.Response") -> float:
    """The pause that a rate-limiting provider asks for, in a header or in Google's details."""
    header = response.headers.get("Retry-After", "")
    if header.isdecimal():
        return float(header)
    if header:
        try:
            return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
        except ValueError:
            return 0.0
    details = error_of(response).get("details")
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and (found := _DELAY_S.fullmatch(delay)):
            return float(found[1])
    return 0.0
