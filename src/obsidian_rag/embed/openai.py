"""Embedding by OpenAI, or by any server that speaks its API: LM Studio, llama.cpp, vLLM."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.config import EmbeddingSettings, SecuritySettings
from obsidian_rag.embed.api_key import ApiKey
from obsidian_rag.embed.isolate import Batches, InputRefused
from obsidian_rag.embed.ollama_models import model_inside
from obsidian_rag.embed.provider_http import (
    ProviderClient,
    Served,
    error_of,
    json_of,
    reason_of,
)
from obsidian_rag.embed.served import KnownModel, ServedEmbedder, matrix_of
from obsidian_rag.embed.vectors import encodable
from obsidian_rag.errors import ConfigInvalid, ProviderFailed

if TYPE_CHECKING:
    import httpx

_KNOWN = {
    "text-embedding-3-small": KnownModel(1536, 8191),
    "text-embedding-3-large": KnownModel(3072, 8191),
    "text-embedding-ada-002": KnownModel(1536, 8191),
}
# OpenAI takes 2,048 texts and 300,000 tokens at once.
BATCHES_OUTSIDE = Batches(texts=256, size=280_000)
# A machine without a graphics card needs seconds for so many.
_BATCHES_HERE = Batches(texts=32, size=64_000)
_DOCUMENT_TRIES = 6
_DOCUMENT_PAUSE_S = 30.0
_QUERY_TRIES = 2
_QUERY_PAUSE_S = 4.0
_PROBE_TIMEOUT_S = 3.0
_REFUSED = (400, 413, 422, 500)
# As OpenAI, vLLM and llama.cpp say that a text is too long.
_TOO_LONG = ("context length", "context size", "too large", "too long", "tokens per request")
_NO_QUOTA = "insufficient_quota"


class OpenAIEmbedder(ServedEmbedder):
    """Vectors of one model of an OpenAI-compatible server."""

    provider = "openai"

    def __init__(
        self,
        settings: EmbeddingSettings,
        security: SecuritySettings,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        model = settings.model
        if not model:
            raise ConfigInvalid("embedding.model is not set.", "Set it to an embedding model.")
        known = _KNOWN.get(model) or model_inside(model)
        server = OpenAIServer(settings, security, model, wait)
        batches = BATCHES_OUTSIDE if server.is_external else _BATCHES_HERE
        super().__init__(model, known, settings.dimensions, server, batches)


class OpenAIServer:
    """One server and one model; see ProviderClient for which may be asked."""

    def __init__(
        self,
        settings: EmbeddingSettings,
        security: SecuritySettings,
        model: str,
        wait: Callable[[float], None],
    ) -> None:
        variable = settings.api_key_env
        key = ApiKey(variable, "Authorization", "Bearer ") if variable else None
        self._name = f"The server at {settings.base_url}"
        served = Served(self._name, self._unreachable, key, _is_passing)
        self._client = ProviderClient(served, settings, security, wait)
        self._model = model
        self._dimensions = settings.dimensions
        self._timeout_s = settings.timeout_s

    @property
    def is_external(self) -> bool:
        """Whether the server lies outside this machine."""
        return self._client.is_external

    def embed(self, texts: list[str], *, is_query: bool) -> NDArray[np.float32]:
        """One row per text, as the server made them.

        Raises:
            InputRefused: something in the batch is refused.
            ProviderFailed: the server cannot be used.
        """
        body: dict[str, object] = {
            "model": self._model,
            "input": [encodable(text) for text in texts],
            "encoding_format": "float",
        }
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        response = self._client.post(
            "/embeddings",
            body,
            timeout_s=lambda: self._timeout_s,
            tries=_QUERY_TRIES if is_query else _DOCUMENT_TRIES,
            longest_pause_s=_QUERY_PAUSE_S if is_query else _DOCUMENT_PAUSE_S,
        )
        self._check(response)
        return matrix_of(self._in_order(response), len(texts), self._name, self._hint)

    def probe(self) -> None:
        """Ask a server on this machine whether it is there; of one outside, only look for the key.

        A look every half minute must not tell a provider when somebody works.
        """
        if self._client.is_external:
            self._client.key_headers()
            return
        response = self._client.get("/models", _PROBE_TIMEOUT_S)
        if response.status_code in (401, 403):
            raise self._client.no_access(response)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _check(self, response: "httpx.Response") -> None:
        """Say what is wrong with an answer that has no vectors."""
        status = response.status_code
        if status == 200:
            return
        if status in (401, 403):
            raise self._client.no_access(response)
        if status == 404:
            raise ProviderFailed(
                f"{self._name} has no model '{self._model}', or no /embeddings (HTTP 404).",
                f"Set embedding.model to a model that it has. {self._hint}",
            )
        if status == 429:
            raise ProviderFailed(
                f"{self._name} says that your quota is used up.",
                "Check your plan and its limits there; search goes on by words.",
            )
        said = str(error_of(response).get("message", "")).lower()
        if self._dimensions is not None and ("dimension" in said or "matryoshka" in said):
            raise ProviderFailed(
                f"The model '{self._model}' has no vectors of width {self._dimensions}"
                f" ({reason_of(response)}).",
                "Run `obsidian-rag config unset embedding.dimensions`, or choose another model.",
            )
        if status in _REFUSED:
            raise InputRefused(reason_of(response), is_too_long=_is_too_long(said))
        raise ProviderFailed(f"{self._name} failed ({reason_of(response)}).", self._hint)

    def _in_order(self, response: "httpx.Response") -> list[object]:
        """The vectors by their `index`, which need not be their order."""
        answer = json_of(response)
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
            raise ProviderFailed(
                f"{self._name} does not answer like an embeddings API.", self._hint
            )
        places = [item.get("index", position) for position, item in enumerate(data)]
        if sorted(map(str, places)) != sorted(map(str, range(len(data)))):
            raise ProviderFailed(
                f"{self._name} answered with the wrong number of vectors.", self._hint
            )
        rows = dict(zip(places, (item.get("embedding") for item in data), strict=True))
        return [rows[place] for place in range(len(data))]

    @property
    def _hint(self) -> str:
        return "Check embedding.base_url: most addresses end in /v1."

    def _unreachable(self, base_url: str) -> ProviderFailed:
        return ProviderFailed(
            f"The embedding server does not answer at {base_url}.",
            "Start it, or correct embedding.base_url.",
        )


def _is_passing(response: "httpx.Response") -> bool:
    """Busy, or a failure of its own; not one that the texts are to blame for, nor a bill."""
    error = error_of(response)
    if response.status_code == 429:
        return _NO_QUOTA not in (error.get("code"), error.get("type"))
    said = str(error.get("message", "")).lower()
    return response.status_code >= 500 and not _is_too_long(said)


def _is_too_long(said: str) -> bool:
    return any(words in said for words in _TOO_LONG)
