"""Embedding by a local Ollama server."""

import time
from collections.abc import Callable

from obsidian_rag.config import EmbeddingSettings, SecuritySettings
from obsidian_rag.embed.isolate import Batches
from obsidian_rag.embed.ollama_http import OllamaServer
from obsidian_rag.embed.ollama_models import DEFAULT_MODEL, known_model, untagged
from obsidian_rag.embed.served import ServedEmbedder

_BATCHES = Batches(texts=64)


class OllamaEmbedder(ServedEmbedder):
    """Vectors of one Ollama model, with the prefixes it was trained with."""

    provider = "ollama"

    def __init__(
        self,
        settings: EmbeddingSettings,
        security: SecuritySettings,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        model = settings.model or DEFAULT_MODEL
        server = OllamaServer(settings, security, model, wait)
        super().__init__(model, known_model(model), settings.dimensions, server, _BATCHES)

    @property
    def model_identity(self) -> str:
        """The model's name without the tag that adds nothing."""
        return untagged(self.model)
