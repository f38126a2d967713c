"""Embedding by Google's Gemini API."""

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from obsidian_rag.config import EmbeddingSettings, SecuritySettings
from obsidian_rag.embed.embedder import encodable
from obsidian_rag.embed.isolate import Batches, InputRefused
from obsidian_rag.embed.provider_http import ApiKey, ProviderClient, Server, error_of, reason_of
from obsidian_rag.embed.served import PROBE_TIMEOUT_S, KnownModel, ServedEmbedder, items_of
from obsidian_rag.errors import ConfigInvalid, ProviderFailed

if TYPE_CHECKING:
    import httpx

_NAME = re.compile(r"(?:models/)?([A-Za-z0-9][\w.-]*)")
# Wide enough: 3,072 numbers find little more and take four times the space.
_WIDTH = 768
# The second model expects the task as a prefix, all others as a field.
_SECOND_MODEL_NAME = "gemini-embedding-2"
_SECOND_MODEL = KnownModel(_WIDTH, 8192, "task: search result | query: ", "title: none | text: ")
_OTHER_MODEL = KnownModel(_WIDTH, 2048)
# Google accepts 100 texts per request; the smallest plan has 30,000 tokens a minute.
_BATCHES = Batches(texts=100, size=80_000)


class GeminiEmbedder(ServedEmbedder):
    """Vectors of one Gemini model."""

    provider = "gemini"
    hint = "Correct embedding.base_url, or leave it out."

    def __init__(
        self,
        settings: EmbeddingSettings,
        security: SecuritySettings,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        found = _NAME.fullmatch(settings.model or "")
        if found is None:
            raise ConfigInvalid(
                f"embedding.model is not a Gemini model: '{settings.model}'.",
                f"Leave it out, or set it to one such as {_SECOND_MODEL_NAME}.",
            )
        model = found[1]
        self._has_tasks = not model.startswith(_SECOND_MODEL_NAME)
        self._place = f"models/{model}"
        self._asked_width = settings.dimensions or _WIDTH
        variable = settings.api_key_env
        key = ApiKey(variable, "x-goog-api-key") if variable else None
        server = Server("Gemini", _unreachable, key, _is_temporary)
        client = ProviderClient(server, settings, security, wait)
        known = _OTHER_MODEL if self._has_tasks else _SECOND_MODEL
        super().__init__(model, known, self._asked_width, client, _BATCHES)

    def probe(self) -> None:
        """Only check that the key is set: polling must not show Google when the user is working."""
        self._client.key_headers()
        if not self.is_external:
            self._check(self._client.get(f"/{self._place}", PROBE_TIMEOUT_S))

    def _request(self, texts: list[str], *, is_query: bool) -> tuple[str, dict[str, object]]:
        task = "RETRIEVAL_QUERY" if is_query else "RETRIEVAL_DOCUMENT"
        requests = [
            {
                "model": self._place,
                "content": {"parts": [{"text": encodable(text)}]},
                "outputDimensionality": self._asked_width,
                **({"taskType": task} if self._has_tasks else {}),
            }
            for text in texts
        ]
        return f"/{self._place}:batchEmbedContents", {"requests": requests}

    def _rows(self, response: "httpx.Response") -> list[object]:
        found = items_of(response, "embeddings")
        if found is None:
            raise ProviderFailed("Gemini answered with malformed vectors.", self.hint)
        return [item.get("values") for item in found]

    def _missing_model(self) -> ProviderFailed:
        return ProviderFailed(
            f"Gemini has no embedding model '{self._place}' (HTTP 404).",
            f"Leave embedding.model out, or set it to one such as {_SECOND_MODEL_NAME}.",
        )

    def _check_provider(self, response: "httpx.Response") -> None:
        if _is_bad_key(response):
            raise self._client.no_access(response)
        if response.status_code in (400, 413):
            raise InputRefused(reason_of(response), is_too_long=False)


def _is_bad_key(response: "httpx.Response") -> bool:
    """Google answers a wrong key with 400 and gives the reason in a detail."""
    details = error_of(response).get("details")
    return response.status_code == 400 and any(
        isinstance(detail, dict) and str(detail.get("reason", "")).startswith("API_KEY")
        for detail in (details if isinstance(details, list) else ())
    )


def _is_temporary(response: "httpx.Response") -> bool:
    return response.status_code == 429 or response.status_code >= 500


def _unreachable(base_url: str) -> ProviderFailed:
    return ProviderFailed(
        f"Gemini does not answer at {base_url}.", "Check your connection to the internet."
    )
