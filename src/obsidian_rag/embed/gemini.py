"""Embedding by Google's Gemini API."""

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.config import EmbeddingSettings, SecuritySettings
from obsidian_rag.embed.api_key import ApiKey
from obsidian_rag.embed.isolate import Batches, InputRefused
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

_NAME = re.compile(r"(?:models/)?([A-Za-z0-9][\w.-]*)")
# As wide as need be: 3,072 numbers find little more, and take four times the room.
_WIDTH = 768
# The second model takes the task as a prefix, all others as a field.
_SECOND = "gemini-embedding-2"
_SECOND_MODEL = KnownModel(_WIDTH, 8192, "task: search result | query: ", "title: none | text: ")
_OTHER_MODEL = KnownModel(_WIDTH, 2048)
# Google takes 100 texts at once; the least plan has 30,000 tokens a minute.
_BATCHES = Batches(texts=100, size=80_000)
_DOCUMENT_TRIES = 6
_DOCUMENT_PAUSE_S = 30.0
_QUERY_TRIES = 2
_QUERY_PAUSE_S = 4.0
_PROBE_TIMEOUT_S = 3.0
_HINT = "Correct embedding.base_url, or leave it out."


class GeminiEmbedder(ServedEmbedder):
    """Vectors of one Gemini model."""

    provider = "gemini"

    def __init__(
        self,
        settings: EmbeddingSettings,
        security: SecuritySettings,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        found = _NAME.fullmatch(settings.model or "")
        if found is None:
            raise ConfigInvalid(
                f"embedding.model is no Gemini model: '{settings.model}'.",
                f"Leave it out, or set it to one such as {_SECOND}.",
            )
        model = found[1]
        known = _SECOND_MODEL if model.startswith(_SECOND) else _OTHER_MODEL
        width = settings.dimensions or _WIDTH
        server = GeminiServer(settings, security, model, width, wait)
        super().__init__(model, known, width, server, _BATCHES)


class GeminiServer:
    """Google's server and one model; see ProviderClient for which may be asked."""

    def __init__(
        self,
        settings: EmbeddingSettings,
        security: SecuritySettings,
        model: str,
        width: int,
        wait: Callable[[float], None],
    ) -> None:
        variable = settings.api_key_env
        key = ApiKey(variable, "x-goog-api-key") if variable else None
        served = Served("Gemini", _unreachable, key, _is_passing)
        self._client = ProviderClient(served, settings, security, wait)
        self._model = f"models/{model}"
        self._has_tasks = not model.startswith(_SECOND)
        self._width = width
        self._timeout_s = settings.timeout_s

    @property
    def is_external(self) -> bool:
        """Whether the server lies outside this machine."""
        return self._client.is_external

    def embed(self, texts: list[str], *, is_query: bool) -> NDArray[np.float32]:
        """One row per text, as the server made them: not always of length one.

        Raises:
            InputRefused: something in the batch is refused.
            ProviderFailed: the server cannot be used.
        """
        response = self._client.post(
            f"/{self._model}:batchEmbedContents",
            {"requests": [self._request(text, is_query=is_query) for text in texts]},
            timeout_s=lambda: self._timeout_s,
            tries=_QUERY_TRIES if is_query else _DOCUMENT_TRIES,
            longest_pause_s=_QUERY_PAUSE_S if is_query else _DOCUMENT_PAUSE_S,
        )
        self._check(response)
        answer = json_of(response)
        found = answer.get("embeddings") if isinstance(answer, dict) else None
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            raise ProviderFailed("Gemini answered with malformed vectors.", _HINT)
        return matrix_of([item.get("values") for item in found], len(texts), "Gemini", _HINT)

    def probe(self) -> None:
        """Only look for the key: a look every half minute must not tell when somebody works."""
        self._client.key_headers()
        if not self._client.is_external:
            self._check(self._client.get(f"/{self._model}", _PROBE_TIMEOUT_S))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _request(self, text: str, *, is_query: bool) -> dict[str, object]:
        request: dict[str, object] = {
            "model": self._model,
            "content": {"parts": [{"text": encodable(text)}]},
            "outputDimensionality": self._width,
        }
        if self._has_tasks:
            request["taskType"] = "RETRIEVAL_QUERY" if is_query else "RETRIEVAL_DOCUMENT"
        return request

    def _check(self, response: "httpx.Response") -> None:
        """Say what is wrong with an answer that has no vectors."""
        status = response.status_code
        if status == 200:
            return
        if status in (401, 403) or _is_bad_key(response):
            raise self._client.no_access(response)
        if status == 404:
            raise ProviderFailed(
                f"Gemini has no embedding model '{self._model}' (HTTP 404).",
                f"Leave embedding.model out, or set it to one such as {_SECOND}.",
            )
        if status in (400, 413):
            raise InputRefused(reason_of(response), is_too_long=False)
        raise ProviderFailed(f"Gemini failed ({reason_of(response)}).", _HINT)


def _is_bad_key(response: "httpx.Response") -> bool:
    """Google says 400 to a wrong key, and why in a detail."""
    details = error_of(response).get("details")
    return response.status_code == 400 and any(
        isinstance(detail, dict) and str(detail.get("reason", "")).startswith("API_KEY")
        for detail in (details if isinstance(details, list) else ())
    )


def _is_passing(response: "httpx.Response") -> bool:
    return response.status_code == 429 or response.status_code >= 500


def _unreachable(base_url: str) -> ProviderFailed:
    return ProviderFailed(
        f"Gemini does not answer at {base_url}.", "Check your connection to the internet."
    )
