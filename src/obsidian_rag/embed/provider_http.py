"""The HTTP conversation with a model provider: consent, timeouts, retries and rate limits.

Threat: note text reaches another machine than the one that was checked and agreed to. So a client
cannot be made for an address that the settings do not allow, never follows a redirect and never
uses a proxy from the environment: text goes to the checked address or nowhere. Never logs text.
"""

import json
import random
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from obsidian_rag.config import EmbeddingSettings, SecuritySettings
from obsidian_rag.embed.network import check_endpoint
from obsidian_rag.errors import ObsidianRagError, ProviderFailed

if TYPE_CHECKING:
    import httpx

_CONNECT_TIMEOUT_S = 5.0
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 8.0
_BUSY = (429, 503)


class ProviderClient:
    """One server of a provider; connections are opened on first use.

    Raises:
        ConfigInvalid: the address is none, or consent is missing.
        SecurityViolation: an outside address while security.local_only is on.
    """

    def __init__(
        self,
        name: str,
        settings: EmbeddingSettings,
        security: SecuritySettings,
        wait: Callable[[float], None],
        unreachable: Callable[[str], ObsidianRagError],
    ) -> None:
        self.is_external = check_endpoint(settings.base_url, security, settings.external_consent)
        self.base_url = settings.base_url.rstrip("/")
        self._name = name
        self._wait = wait
        self._unreachable = unreachable
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    def post(
        self, path: str, body: dict[str, object], *, timeout_s: Callable[[], float], tries: int
    ) -> "httpx.Response":
        """Send some JSON; a server that is away or too busy is asked again, after longer pauses.

        Raises:
            ObsidianRagError: what `unreachable` makes, or ProviderFailed: it stays too busy.
        """
        # Written by us, not by httpx: ASCII escapes survive lone surrogates.
        content = json.dumps(body)
        for attempt in range(1, tries + 1):
            try:
                return self._post(path, content, timeout_s())
            except _TryAgain as problem:
                if attempt == tries:
                    raise problem.cause from problem.__cause__
                pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (attempt - 1))
                self._wait(max(pause * random.uniform(0.5, 1.5), problem.asked_s))
        raise AssertionError("tries is at least one")

    def get(self, path: str, timeout_s: float) -> "httpx.Response":
        """Ask once.

        Raises:
            ObsidianRagError: what `unreachable` makes.
        """
        import httpx

        try:
            return self._open().get(path, timeout=timeout_s)
        except httpx.HTTPError as error:
            raise self._unreachable(self.base_url) from error

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
        headers = {"Content-Type": "application/json"}
        try:
            response = self._open().post(path, content=content, headers=headers, timeout=timeout)
        except httpx.HTTPError as error:
            raise _TryAgain(self._unreachable(self.base_url)) from error
        if response.status_code in _BUSY:
            busy = ProviderFailed(f"{self._name} is too busy to embed.", "Try again in a minute.")
            raise _TryAgain(busy, _asked_pause_s(response))
        return response


class _TryAgain(Exception):
    def __init__(self, cause: ObsidianRagError, asked_s: float = 0.0) -> None:
        super().__init__(cause.message)
        self.cause = cause
        self.asked_s = asked_s


def _asked_pause_s(response: "httpx.Response") -> float:
    """How long a provider that limits its rate wants us to wait; a person may be waiting too."""
    seconds = response.headers.get("Retry-After", "")
    return min(float(seconds), _LONGEST_PAUSE_S) if seconds.isdecimal() else 0.0
