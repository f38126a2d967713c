"""The HTTP conversation with a model provider: consent, keys, timeouts, retries and rate limits.

Threat: note text reaches another machine than the one that was checked and agreed to. So a client
cannot be made for an address that the settings do not allow, never follows a redirect and never
uses a proxy from the environment: text goes to the checked address or nowhere. Never logs text,
and quotes of an answer only a code or a type: a sentence could hold text, or a piece of the key.
"""

import json
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from obsidian_rag.config import EmbeddingSettings, SecuritySettings
from obsidian_rag.embed.api_key import ApiKey
from obsidian_rag.embed.network import check_endpoint
from obsidian_rag.errors import ObsidianRagError, ProviderFailed

if TYPE_CHECKING:
    import httpx

_CONNECT_TIMEOUT_S = 5.0
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 8.0
_BUSY = (429, 503)
_CODE = re.compile(r"[A-Za-z][\w.-]{0,60}")
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")


def is_busy(response: "httpx.Response") -> bool:
    """Whether a server says that it would answer later."""
    return response.status_code in _BUSY


@dataclass(frozen=True, slots=True)
class Served:
    """What is peculiar to a provider: its name, its key, and what its answers mean."""

    name: str
    unreachable: Callable[[str], ObsidianRagError]
    key: ApiKey | None = None
    is_passing: "Callable[[httpx.Response], bool]" = is_busy


class ProviderClient:
    """One server of a provider; connections are opened on first use.

    Raises:
        ConfigInvalid: the address is none, or consent is missing.
        SecurityViolation: an outside address while security.local_only is on.
    """

    def __init__(
        self,
        served: Served,
        settings: EmbeddingSettings,
        security: SecuritySettings,
        wait: Callable[[float], None],
    ) -> None:
        base_url = settings.base_url or ""
        self.is_external = check_endpoint(base_url, security, settings.external_consent)
        self.base_url = base_url.rstrip("/")
        self.served = served
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
        longest_pause_s: float = _LONGEST_PAUSE_S,
    ) -> "httpx.Response":
        """Send some JSON; a server that is away or too busy is asked again, after longer pauses.

        Raises:
            ObsidianRagError: what `unreachable` makes, or ProviderFailed: it stays too busy, or
                there is no key.
        """
        # Written by us, not by httpx: ASCII escapes survive lone surrogates.
        content = json.dumps(body)
        for attempt in range(1, tries + 1):
            try:
                return self._post(path, content, timeout_s())
            except _TryAgain as problem:
                if attempt == tries:
                    raise problem.cause from problem.__cause__
                pause = min(longest_pause_s, _FIRST_PAUSE_S * 2 ** (attempt - 1))
                asked_s = min(problem.asked_s, longest_pause_s)
                self._wait(max(pause * random.uniform(0.5, 1.5), asked_s))
        raise AssertionError("tries is at least one")

    def get(self, path: str, timeout_s: float) -> "httpx.Response":
        """Ask once.

        Raises:
            ObsidianRagError: what `unreachable` makes, or ProviderFailed: there is no key.
        """
        import httpx

        headers = self.key_headers()
        try:
            return self._open().get(path, headers=headers, timeout=timeout_s)
        except httpx.HTTPError as error:
            raise self.served.unreachable(self.base_url) from error

    def key_headers(self) -> dict[str, str]:
        """The header with the key, if the server wants one.

        Raises:
            ProviderFailed: there is no key where there should be one.
        """
        return self.served.key.headers() if self.served.key is not None else {}

    def no_access(self, response: "httpx.Response") -> ProviderFailed:
        """What to say to the user when the server refuses who we are."""
        name, status = self.served.name, f"HTTP {response.status_code}"
        if self.served.key is None:
            return ProviderFailed(
                f"{name} wants a key ({status}).",
                "Set embedding.api_key_env to the name of the environment variable that holds it.",
            )
        variable = self.served.key.variable
        return ProviderFailed(
            f"{name} refuses the key in {variable} ({status}).",
            f"Set {variable} to a key that may embed, then start the daemon anew.",
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
            raise _TryAgain(self.served.unreachable(self.base_url)) from error
        if self.served.is_passing(response):
            busy = f"{self.served.name} is too busy to embed (HTTP {response.status_code})."
            raise _TryAgain(
                ProviderFailed(busy, "Try again in a minute."), _asked_pause_s(response)
            )
        return response


class _TryAgain(Exception):
    def __init__(self, cause: ObsidianRagError, asked_s: float = 0.0) -> None:
        super().__init__(cause.message)
        self.cause = cause
        self.asked_s = asked_s


def json_of(response: "httpx.Response") -> object:
    """What an answer holds; None if that is not JSON."""
    try:
        return response.json()
    except ValueError:
        return None


def error_of(response: "httpx.Response") -> Mapping[str, object]:
    """The `error` of an answer, as OpenAI and Google tell it; empty if it tells none."""
    answer = json_of(response)
    # Google wraps the answer to a batch in a list now and then.
    if isinstance(answer, list) and answer:
        answer = answer[0]
    if not isinstance(answer, dict):
        return {}
    error = answer.get("error", answer)
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, dict) else {}


def reason_of(response: "httpx.Response") -> str:
    """The status and, where it tells one, the code of an error; never a sentence of it."""
    status = f"HTTP {response.status_code}"
    error = error_of(response)
    codes = (error.get(name) for name in ("code", "status", "type"))
    known = (code for code in codes if isinstance(code, str) and _CODE.fullmatch(code))
    code = next(known, None)
    return f"{status}: {code}" if code else status


def _asked_pause_s(response: "httpx.Response") -> float:
    """How long a provider that limits its rate wants us to wait: a header, or Google's detail."""
    said = response.headers.get("Retry-After", "")
    if said.isdecimal():
        return float(said)
    if said:
        try:
            return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
        except ValueError:
            return 0.0
    details = error_of(response).get("details")
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and (found := _DELAY.fullmatch(delay)):
            return float(found[1])
    return 0.0
