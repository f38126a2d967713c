"""Embedding by an Ollama server."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from obsidian_rag.config import EmbeddingSettings, SecuritySettings
from obsidian_rag.embed.isolate import Batches, InputRefused
from obsidian_rag.embed.provider_http import ProviderClient, Server, json_of
from obsidian_rag.embed.served import PROBE_TIMEOUT_S, KnownModel, Patience, ServedEmbedder
from obsidian_rag.errors import OllamaUnreachable, ProviderFailed

if TYPE_CHECKING:
    import httpx


DEFAULT_MODEL = "mxbai-embed-large"
_PASSAGES = "Represent this sentence for searching relevant passages: "
_UNKNOWN = KnownModel(None, 512)
_KNOWN = {
    "mxbai-embed-large": KnownModel(1024, 512, _PASSAGES),
    "snowflake-arctic-embed": KnownModel(1024, 512, _PASSAGES),
    "nomic-embed-text": KnownModel(768, 2048, "search_query: ", "search_document: "),
    "embeddinggemma": KnownModel(
        768, 2048, "task: search result | query: ", "title: none | text: "
    ),
    "all-minilm": KnownModel(384, 256),
    "bge-m3": KnownModel(1024, 8192),
}
_BATCHES = Batches(texts=64)
_COLD_TIMEOUT_S = 120.0
# Ollama unloads a model after five idle minutes; the next request loads it again.
_COLD_AFTER_S = 240.0
_REFUSED_STATUSES = (400, 413, 500)


def known_model(name: str) -> KnownModel:
    """What we know about a model; no width if a tag may have chosen another size."""
    family, _, tag = name.partition(":")
    known = _KNOWN.get(family, _UNKNOWN)
    return known if tag in ("", "latest") else replace(known, dimensions=None)


def model_inside(name: str) -> KnownModel:
    """What we know about a model by a part of its name, as other servers call it."""
    lower = name.lower()
    for family, known in _KNOWN.items():
        if family in lower:
            return replace(known, dimensions=None)
    return _UNKNOWN


def same_model(one: str, other: str) -> bool:
    """Whether two names mean the same model: no tag means `latest`."""
    return untagged(one) == untagged(other)


def untagged(name: str) -> str:
    """The name without the default tag."""
    return name.removesuffix(":latest")


class OllamaEmbedder(ServedEmbedder):
    """Vectors of one Ollama model, with the prefixes that it was trained with."""

    provider = "ollama"
    hint = "Look at Ollama's log; updating Ollama or the model may help."
    takes_key = False
    patience = Patience(4, 8.0)
    query_patience = Patience(2, 8.0)

    def __init__(
        self,
        settings: EmbeddingSettings,
        security: SecuritySettings,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        model = settings.model or DEFAULT_MODEL
        client = ProviderClient(Server("Ollama", _unreachable), settings, security, wait)
        super().__init__(model, known_model(model), settings.dimensions, client, _BATCHES)
        self._last_answer: float | None = None

    @property
    def model_identity(self) -> str:
        """The model's name without the default tag."""
        return untagged(self.model)

    def probe(self) -> None:
        """Check that the server answers and has the model, without loading it."""
        self._json(self._client.get("/api/version", PROBE_TIMEOUT_S))
        tags = self._json(self._client.get("/api/tags", PROBE_TIMEOUT_S))
        models = tags.get("models")
        names = [
            str(entry.get("name") or entry.get("model"))
            for entry in (models if isinstance(models, list) else [])
            if isinstance(entry, dict)
        ]
        if not any(same_model(self.model, name) for name in names):
            raise self._missing_model()

    def _request(self, texts: list[str], *, is_query: bool) -> tuple[str, dict[str, object]]:
        return "/api/embed", {"model": self.model, "input": texts, "truncate": False}

    def _timeout_s(self) -> float:
        last = self._last_answer
        is_cold = last is None or time.monotonic() - last > _COLD_AFTER_S
        usual = self._client.timeout_s
        return max(usual, _COLD_TIMEOUT_S) if is_cold else usual

    def _rows(self, response: "httpx.Response") -> object:
        rows = self._json(response).get("embeddings")
        self._last_answer = time.monotonic()
        return rows

    def _check_provider(self, response: "httpx.Response") -> None:
        if response.status_code in _REFUSED_STATUSES:
            reason = _reason(response)
            raise InputRefused(reason, is_too_long="context length" in reason)
        self._json(response)

    def _json(self, response: "httpx.Response") -> dict[str, object]:
        answer = json_of(response)
        if response.status_code == 200 and isinstance(answer, dict):
            return answer
        raise ProviderFailed(
            f"{self._client.base_url} does not answer like Ollama ({_reason(response)}).", self.hint
        )

    def _missing_model(self) -> ProviderFailed:
        return ProviderFailed(
            f"Ollama does not have the model '{self.model}'.", f"Run `ollama pull {self.model}`."
        )


def _unreachable(base_url: str) -> OllamaUnreachable:
    return OllamaUnreachable(
        f"Ollama does not answer at {base_url}.",
        "Start it with `ollama serve`, or set embedding.base_url.",
    )


def _reason(response: "httpx.Response") -> str:
    answer = json_of(response)
    message = answer.get("error") if isinstance(answer, dict) else None
    status = f"HTTP {response.status_code}"
    return f"{status}: {message[:200]}" if isinstance(message, str) else status
