"""Which embedder the settings mean: the one of all vectors, and the one of meaning vectors.

Threat: the key for one server is sent to another. So the default key variable is used only with the
provider's own address, and the chat model's key only with the chat model's address.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from obsidian_rag.config import EmbeddingSettings, ModelSettings, Settings
from obsidian_rag.embed.builtin import is_installed
from obsidian_rag.embed.model_folder import read_model_folder
from obsidian_rag.embed.ollama import DEFAULT_MODEL
from obsidian_rag.embed.transformer import BackgroundEmbedder

# Fast, but they capture little meaning; every other provider is a transformer.
_STATIC_PROVIDERS = ("builtin", "hash")


@dataclass(frozen=True, slots=True)
class Choice:
    """Complete embedding settings; `notice` explains a fallback."""

    settings: EmbeddingSettings
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class _Defaults:
    base_url: str
    model: str
    api_key_env: str | None = None


_DEFAULTS = {
    "ollama": _Defaults("http://localhost:11434", DEFAULT_MODEL),
    "openai": _Defaults("https://api.openai.com/v1", "text-embedding-3-small", "OPENAI_API_KEY"),
    "gemini": _Defaults(
        "https://generativelanguage.googleapis.com/v1beta", "gemini-embedding-2", "GEMINI_API_KEY"
    ),
}
# Providers with a server.
SERVED = tuple(_DEFAULTS)


def choose(embedding: EmbeddingSettings, model: ModelSettings) -> Choice:
    """Resolve the settings to one embedder; nothing is connected or loaded."""
    if embedding.provider != "same_as_model":
        return Choice(_fill_defaults(embedding))
    if model.provider in _DEFAULTS:
        of_model: dict[str, object] = {"provider": model.provider}
        if embedding.base_url is None:
            key = embedding.api_key_env or model.api_key_env
            of_model |= {"base_url": model.base_url, "api_key_env": key}
        return Choice(_fill_defaults(embedding.model_copy(update=of_model)))
    fallback = "builtin" if is_installed() else "hash"
    why = f"{model.provider} makes none" if model.provider else "model.provider is not set"
    return Choice(
        EmbeddingSettings(provider=fallback, timeout_s=embedding.timeout_s),
        f"{fallback} makes the vectors: embedding.provider is same_as_model, and {why}.",
    )


def _fill_defaults(settings: EmbeddingSettings) -> EmbeddingSettings:
    defaults = _DEFAULTS.get(settings.provider)
    if defaults is None:
        return settings
    key = settings.api_key_env or (defaults.api_key_env if settings.base_url is None else None)
    return settings.model_copy(
        update={
            "base_url": settings.base_url or defaults.base_url,
            "model": settings.model or defaults.model,
            "api_key_env": key,
        }
    )


def make_meaning_embedder(settings: Settings, home: Path) -> BackgroundEmbedder | None:
    """The transformer for meaning vectors, if installed and enabled; loads nothing.

    None when no model is installed, `meaning.enabled` is off, or `embedding.provider` is a
    transformer itself.

    Raises:
        ConfigInvalid: the model's folder cannot be used.
    """
    if not settings.meaning.enabled or _provider(settings) not in _STATIC_PROVIDERS:
        return None
    folder = home / "models" / settings.meaning.model
    return BackgroundEmbedder(read_model_folder(folder)) if folder.is_dir() else None


def model_use(settings: Settings, name: str) -> Literal["embedding", "meaning"] | None:
    """What the settings use this installed model for: all vectors, or meaning vectors."""
    if settings.embedding.provider == "onnx":
        return "embedding" if settings.embedding.model == name else None
    if _provider(settings) not in _STATIC_PROVIDERS or not settings.meaning.enabled:
        return None
    return "meaning" if settings.meaning.model == name else None


def _provider(settings: Settings) -> str:
    return choose(settings.embedding, settings.model).settings.provider
