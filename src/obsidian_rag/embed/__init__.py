"""Turn text into unit vectors: built-in model, ONNX models, local or remote servers, or hashing.

Heavy libraries are imported on first use. Nothing here reads notes or decides what is private.
"""

from pathlib import Path
from typing import assert_never

from obsidian_rag.config import EmbeddingSettings, ModelSettings, SecuritySettings
from obsidian_rag.embed.builtin import BuiltinEmbedder
from obsidian_rag.embed.choice import SERVED, Choice, choose, make_meaning_embedder, model_use
from obsidian_rag.embed.embedder import Embedder, InputsRejected
from obsidian_rag.embed.gemini import GeminiEmbedder
from obsidian_rag.embed.hashing import HashEmbedder
from obsidian_rag.embed.models import (
    ModelInfo,
    add_model,
    get_model,
    installed_model,
    list_models,
    remove_model,
)
from obsidian_rag.embed.ollama import OllamaEmbedder
from obsidian_rag.embed.openai import OpenAIEmbedder
from obsidian_rag.embed.transformer import make_onnx_embedder
from obsidian_rag.errors import ConfigInvalid

__all__ = [
    "SERVED",
    "Choice",
    "Embedder",
    "InputsRejected",
    "ModelInfo",
    "add_model",
    "choose",
    "get_model",
    "installed_model",
    "list_models",
    "make_embedder",
    "make_meaning_embedder",
    "model_use",
    "remove_model",
]


def make_embedder(
    settings: EmbeddingSettings,
    security: SecuritySettings,
    home: Path,
    model: ModelSettings | None = None,
) -> Embedder:
    """The embedder that the settings name; nothing is loaded or connected yet.

    `model` is the chat model, for `same_as_model`.

    Raises:
        ConfigInvalid: the settings do not fit the provider.
        SecurityViolation: the server is outside this machine while security.local_only is on.
    """
    chosen = choose(settings, model or ModelSettings.model_validate({})).settings
    match chosen.provider:
        case "builtin":
            return _builtin(chosen)
        case "hash":
            return HashEmbedder(chosen.dimensions)
        case "onnx":
            return make_onnx_embedder(chosen, home)
        case "ollama":
            return OllamaEmbedder(chosen, security)
        case "openai":
            return OpenAIEmbedder(chosen, security)
        case "gemini":
            return GeminiEmbedder(chosen, security)
        case "same_as_model":
            raise AssertionError("`choose` resolves it")
        case _:
            assert_never(chosen.provider)


def _builtin(settings: EmbeddingSettings) -> BuiltinEmbedder:
    embedder = BuiltinEmbedder()
    if settings.dimensions not in (None, embedder.dimensions):
        raise ConfigInvalid(
            f"The built-in model makes vectors of width {embedder.dimensions}, "
            f"but embedding.dimensions is {settings.dimensions}.",
            "Remove embedding.dimensions, or choose another embedding.provider.",
        )
    return embedder
