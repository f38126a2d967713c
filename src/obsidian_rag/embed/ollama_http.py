"""The HTTP conversation with an Ollama server: timeouts, retries, and what answers mean.

Never follows a redirect and never uses a proxy from the environment: note text goes to the
checked address or nowhere. Never logs text.
"""

import json
import random
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.embed.isolate import InputRefused
from obsidian_rag.embed.ollama_models import same_model
from obsidian_rag.errors import ObsidianRagError, OllamaUnreachable, ProviderFailed

if TYPE_CHECKING:
    import httpx

_CONNECT_TIMEOUT_S = 5.0
_COLD_TIMEOUT_S = 120.0
_PROBE_TIMEOUT_S = 3.0
# Ollama forgets a model after five idle minutes; the next request loads it again.
_COLD_AFTER_S = 240.0
_LONGEST_PAUSE_S = 8.0
_BUSY = (429, 503)
_REFUSED = (400, 413, 500)
_LOG_HINT = "Look at Ollama's log; updating Ollama or the model may help."


class OllamaServer:
    """One server and one model; connections are opened on first use."""

    def __init__(
        self, base_url: str, model: str, timeout_s: float, wait: Callable[[float], None]
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._model = model
        self._timeout_s = timeout_s
        self._wait = wait
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None
        self._last_answer: float | None = None

    def embed(self, texts: list[str], tries: int) -> NDArray[np.float32]:
        """One row per text, as the server made them.

        Raises:
            InputRefused: something in the batch is refused.
            OllamaUnreachable, ProviderFailed: the server cannot be used.
        """
        # Written by us, not by httpx: ASCII escapes survive lone surrogates.
        body = json.dumps({"model": self._model, "input": texts, "truncate": False})
        for attempt in range(1, tries + 1):
            try:
                return self._rows(self._post(body), len(texts))
            except _TryAgain as problem:
                if attempt == tries:
                    raise problem.cause from problem.__cause__
                pause = min(_LONGEST_PAUSE_S, 0.5 * 2 ** (attempt - 1))
                self._wait(pause * random.uniform(0.5, 1.5))
        raise AssertionError("tries is at least one")

    def probe(self) -> None:
        """Check that the server answers and has the model, without loading it."""
        import httpx

        try:
            self._json(self._open().get("/api/version", timeout=_PROBE_TIMEOUT_S))
            tags = self._json(self._open().get("/api/tags", timeout=_PROBE_TIMEOUT_S))
        except httpx.HTTPError as error:
            raise self._unreachable() from error
        models = tags.get("models")
        names = [
            str(entry.get("name") or entry.get("model"))
            for entry in (models if isinstance(models, list) else [])
            if isinstance(entry, dict)
        ]
        if not any(same_model(self._model, name) for name in names):
            raise self._missing_model()

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
                    base_url=self._base_url, follow_redirects=False, trust_env=False
                )
            return self._client

    def _post(self, body: str) -> "httpx.Response":
        import httpx

        timeout = httpx.Timeout(self._patience_s(), connect=_CONNECT_TIMEOUT_S)
        headers = {"Content-Type": "application/json"}
        try:
            response = self._open().post(
                "/api/embed", content=body, headers=headers, timeout=timeout
            )
        except httpx.HTTPError as error:
            raise _TryAgain(self._unreachable()) from error
        if response.status_code in _BUSY:
            raise _TryAgain(
                ProviderFailed("Ollama is too busy to embed.", "Try again in a minute.")
            )
        return response

    def _patience_s(self) -> float:
        last = self._last_answer
        is_cold = last is None or time.monotonic() - last > _COLD_AFTER_S
        return max(self._timeout_s, _COLD_TIMEOUT_S) if is_cold else self._timeout_s

    def _rows(self, response: "httpx.Response", count: int) -> NDArray[np.float32]:
        if response.status_code == 404:
            raise self._missing_model()
        if response.status_code in _REFUSED:
            reason = _reason(response)
            raise InputRefused(reason, is_too_long="context length" in reason)
        rows = self._json(response).get("embeddings")
        if not isinstance(rows, list) or len(rows) != count:
            raise ProviderFailed("Ollama answered with the wrong number of vectors.", _LOG_HINT)
        try:
            matrix = np.asarray(rows, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise ProviderFailed("Ollama answered with malformed vectors.", _LOG_HINT) from error
        if matrix.ndim != 2 or matrix.shape[1] == 0:
            raise ProviderFailed("Ollama answered with malformed vectors.", _LOG_HINT)
        self._last_answer = time.monotonic()
        if not np.isfinite(matrix).all():
            raise InputRefused("the model made a vector that is not a number", is_too_long=False)
        return matrix

    def _json(self, response: "httpx.Response") -> dict[str, object]:
        answer = _answer(response)
        if response.status_code == 200 and isinstance(answer, dict):
            return answer
        raise ProviderFailed(
            f"{self._base_url} does not answer like Ollama ({_reason(response)}).", _LOG_HINT
        )

    def _unreachable(self) -> OllamaUnreachable:
        return OllamaUnreachable(
            f"Ollama does not answer at {self._base_url}.",
            "Start it with `ollama serve`, or set embedding.base_url.",
        )

    def _missing_model(self) -> ProviderFailed:
        return ProviderFailed(
            f"Ollama does not have the model '{self._model}'.", f"Run `ollama pull {self._model}`."
        )


class _TryAgain(Exception):
    def __init__(self, cause: ObsidianRagError) -> None:
        super().__init__(cause.message)
        self.cause = cause


def _answer(response: "httpx.Response") -> object:
    try:
        return response.json()
    except ValueError:
        return None


def _reason(response: "httpx.Response") -> str:
    answer = _answer(response)
    said = answer.get("error") if isinstance(answer, dict) else None
    status = f"HTTP {response.status_code}"
    return f"{status}: {said[:200]}" if isinstance(said, str) else status
