"""Which embedder the settings mean: addresses, models and keys that they leave out are filled in.

Threat: the key for one server is sent to another. So the usual variable is read only where the
provider's own address is used, and the chat model's only together with the chat model's address.
"""

from dataclasses import dataclass

from obsidian_rag.config import EmbeddingSettings, ModelSettings
from obsidian_rag.embed.builtin import is_installed
from obsidian_rag.embed.ollama_models import DEFAULT_MODEL


@dataclass(frozen=True, slots=True)
class Choice:
    """Settings that name an embedder and leave nothing open; `notice` says if it is a stopgap."""

    settings: EmbeddingSettings
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class _Family:
    base_url: str
    model: str
    api_key_env: str | None = None


_FAMILIES = {
    "ollama": _Family("http://localhost:11434", DEFAULT_MODEL),
    "openai": _Family("https://api.openai.com/v1", "text-embedding-3-small", "OPENAI_API_KEY"),
    "gemini": _Family(
        "https://generativelanguage.googleapis.com/v1beta", "gemini-embedding-2", "GEMINI_API_KEY"
    ),
}
# They have a server, which is asked for each vector.
SERVED = tuple(_FAMILIES)


def choose(embedding: EmbeddingSettings, model: ModelSettings) -> Choice:
    """The embedder that the settings mean; nothing is connected or loaded."""
    if embedding.provider != "same_as_model":
        return Choice(_filled(embedding))
    if model.provider in _FAMILIES:
        of_model: dict[str, object] = {"provider": model.provider}
        if embedding.base_url is None:
            key = embedding.api_key_env or model.api_key_env
            of_model |= {"base_url": model.base_url, "api_key_env": key}
        return Choice(_filled(embedding.model_copy(update=of_model)))
    stopgap = "builtin" if is_installed() else "hash"
    why = f"{model.provider} makes none" if model.provider else "model.provider is not set"
    return Choice(
        EmbeddingSettings(provider=stopgap, timeout_s=embedding.timeout_s),
        f"{stopgap} makes the vectors: embedding.provider is same_as_model, and {why}.",
    )


def _filled(settings: EmbeddingSettings) -> EmbeddingSettings:
    family = _FAMILIES.get(settings.provider)
    if family is None:
        return settings
    key = settings.api_key_env or (family.api_key_env if settings.base_url is None else None)
    return settings.model_copy(
        update={
            "base_url": settings.base_url or family.base_url,
            "model": settings.model or family.model,
            "api_key_env": key,
        }
    )
