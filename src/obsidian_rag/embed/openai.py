"""Embedding by OpenAI or a compatible server: LM Studio, llama.cpp, vLLM."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from obsidian_rag.config import EmbeddingSettings, SecuritySettings
from obsidian_rag.embed.embedder import encodable
from obsidian_rag.embed.isolate import Batches, InputRefused
from obsidian_rag.embed.ollama import model_inside
from obsidian_rag.embed.provider_http import ApiKey, ProviderClient, Server, error_of, reason_of
from obsidian_rag.embed.served import PROBE_TIMEOUT_S, KnownModel, ServedEmbedder, items_of
from obsidian_rag.errors import ConfigInvalid, ProviderFailed

if TYPE_CHECKING:
    import httpx

_KNOWN = {
    "text-embedding-3-small": KnownModel(1536, 8191),
    "text-embedding-3-large": KnownModel(3072, 8191),
    "text-embedding-ada-002": KnownModel(1536, 8191),
}
# OpenAI accepts 2,048 texts and 300,000 tokens per request.
BATCHES_OUTSIDE = Batches(texts=256, size=280_000)
# Without a GPU, a batch of this size takes seconds.
_LOCAL_BATCHES = Batches(texts=32, size=64_000)
_REFUSED_STATUSES = (400, 413, 422, 500)
# How OpenAI, vLLM and llama.cpp report a text that is too long.
_TOO_LONG = ("context length", "context size", "too large", "too long", "tokens per request")
_NO_QUOTA = "insufficient_quota"


class OpenAIEmbedder(ServedEmbedder):
    """Vectors of one model of an OpenAI-compatible server."""

    provider = "openai"
    hint = "Check embedding.base_url: most addresses end in /v1."

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
        variable = settings.api_key_env
        key = ApiKey(variable, "Authorization", "Bearer ") if variable else None
        self._name = f"The server at {settings.base_url}"
        server = Server(self._name, _unreachable, key, _is_temporary)
        client = ProviderClient(server, settings, security, wait)
        batches = BATCHES_OUTSIDE if client.is_external else _LOCAL_BATCHES
        super().__init__(model, known, settings.dimensions, client, batches)
        self._asked_width = settings.dimensions

    def probe(self) -> None:
        """Contact a local server; for an external one, only check that the key is set.

        Probing every half minute must not show a provider when the user is working.
        """
        if self.is_external:
            self._client.key_headers()
            return
        response = self._client.get("/models", PROBE_TIMEOUT_S)
        if response.status_code in (401, 403):
            raise self._client.no_access(response)

    def _request(self, texts: list[str], *, is_query: bool) -> tuple[str, dict[str, object]]:
        body: dict[str, object] = {
            "model": self.model,
            "input": [encodable(text) for text in texts],
            "encoding_format": "float",
        }
        if self._asked_width is not None:
            body["dimensions"] = self._asked_width
        return "/embeddings", body

    def _missing_model(self) -> ProviderFailed:
        return ProviderFailed(
            f"{self._name} has no model '{self.model}', or no /embeddings (HTTP 404).",
            f"Set embedding.model to a model that it has. {self.hint}",
        )

    def _check_provider(self, response: "httpx.Response") -> None:
        if response.status_code == 429:
            raise ProviderFailed(
                f"{self._name} reports that your quota is used up.",
                "Check your plan and its limits there; search goes on by words.",
            )
        message = _message(response)
        if self._asked_width is not None and ("dimension" in message or "matryoshka" in message):
            raise ProviderFailed(
                f"The model '{self.model}' has no vectors of width {self._asked_width}"
                f" ({reason_of(response)}).",
                "Run `obsidian-rag config unset embedding.dimensions`, or choose another model.",
            )
        if response.status_code in _REFUSED_STATUSES:
            raise InputRefused(reason_of(response), is_too_long=_is_too_long(response))

    def _rows(self, response: "httpx.Response") -> list[object]:
        """The vectors sorted by `index`: servers may send them in another order."""
        data = items_of(response, "data")
        if data is None:
            raise ProviderFailed(f"{self._name} does not answer like an embeddings API.", self.hint)
        places = [item.get("index", position) for position, item in enumerate(data)]
        if sorted(map(str, places)) != sorted(map(str, range(len(data)))):
            raise ProviderFailed(
                f"{self._name} answered with the wrong number of vectors.", self.hint
            )
        rows = dict(zip(places, (item.get("embedding") for item in data), strict=True))
        return [rows[place] for place in range(len(data))]


def _unreachable(base_url: str) -> ProviderFailed:
    return ProviderFailed(
        f"The embedding server does not answer at {base_url}.",
        "Start it, or correct embedding.base_url.",
    )


def _is_temporary(response: "httpx.Response") -> bool:
    """Busy, or a server error; not one caused by the texts or by a used-up quota."""
    if response.status_code == 429:
        error = error_of(response)
        return _NO_QUOTA not in (error.get("code"), error.get("type"))
    return response.status_code >= 500 and not _is_too_long(response)


def _is_too_long(response: "httpx.Response") -> bool:
    message = _message(response)
    return any(words in message for words in _TOO_LONG)


def _message(response: "httpx.Response") -> str:
    return str(error_of(response).get("message", "")).lower()
