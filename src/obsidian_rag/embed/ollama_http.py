"""What an Ollama server is asked, and what its answers mean."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.config import EmbeddingSettings, SecuritySettings
from obsidian_rag.embed.isolate import InputRefused
from obsidian_rag.embed.ollama_models import same_model
from obsidian_rag.embed.provider_http import ProviderClient
from obsidian_rag.errors import OllamaUnreachable, ProviderFailed

if TYPE_CHECKING:
    import httpx

_COLD_TIMEOUT_S = 120.0
_PROBE_TIMEOUT_S = 3.0
# Ollama forgets a model after five idle minutes; the next request loads it again.
_COLD_AFTER_S = 240.0
_REFUSED = (400, 413, 500)
_LOG_HINT = "Look at Ollama's log; updating Ollama or the model may help."


class OllamaServer:
    """One server and one model; see ProviderClient for which may be asked."""

    def __init__(
        self,
        settings: EmbeddingSettings,
        security: SecuritySettings,
        model: str,
        wait: Callable[[float], None],
    ) -> None:
        self._client = ProviderClient("Ollama", settings, security, wait, _unreachable)
        self._model = model
        self._timeout_s = settings.timeout_s
        self._last_answer: float | None = None

    @property
    def is_external(self) -> bool:
        """Whether the server lies outside this machine."""
        return self._client.is_external

    def embed(self, texts: list[str], tries: int) -> NDArray[np.float32]:
        """One row per text, as the server made them.

        Raises:
            InputRefused: something in the batch is refused.
            OllamaUnreachable, ProviderFailed: the server cannot be used.
        """
        body: dict[str, object] = {"model": self._model, "input": texts, "truncate": False}
        response = self._client.post("/api/embed", body, timeout_s=self._patience_s, tries=tries)
        return self._rows(response, len(texts))

    def probe(self) -> None:
        """Check that the server answers and has the model, without loading it."""
        self._json(self._client.get("/api/version", _PROBE_TIMEOUT_S))
        tags = self._json(self._client.get("/api/tags", _PROBE_TIMEOUT_S))
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
        self._client.close()

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
            f"{self._client.base_url} does not answer like Ollama ({_reason(response)}).", _LOG_HINT
        )

    def _missing_model(self) -> ProviderFailed:
        return ProviderFailed(
            f"Ollama does not have the model '{self._model}'.", f"Run `ollama pull {self._model}`."
        )


def _unreachable(base_url: str) -> OllamaUnreachable:
    return OllamaUnreachable(
        f"Ollama does not answer at {base_url}.",
        "Start it with `ollama serve`, or set embedding.base_url.",
    )


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
