"""The transformer that adds meaning vectors to an index of static ones."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Literal

from obsidian_rag.config import Settings
from obsidian_rag.embed.choice import choose
from obsidian_rag.embed.model_folder import ModelFolder, read_model_folder
from obsidian_rag.embed.onnx import OnnxEmbedder

# Fast, but they capture little meaning; every other provider is a transformer.
STATIC_PROVIDERS = ("builtin", "hash")
# Further windows of a text add little, and each costs as much as the first.
_DEFAULT_MAX_WINDOWS = 2
_MAX_THREADS = 2


class TransformerEmbedder(OnnxEmbedder):
    """A model with limited windows and threads, to run in the background."""

    provider = "transformer"

    def __init__(self, folder: ModelFolder) -> None:
        windows = folder.max_windows or _DEFAULT_MAX_WINDOWS
        super().__init__(replace(folder, max_windows=windows), threads=background_threads())


def make_meaning_embedder(settings: Settings, home: Path) -> TransformerEmbedder | None:
    """The transformer for meaning vectors, if installed and enabled; loads nothing.

    None when no model is installed, `meaning.enabled` is off, or `embedding.provider` is a
    transformer itself.

    Raises:
        ConfigInvalid: the model's folder cannot be used.
    """
    if not settings.meaning.enabled or _provider(settings) not in STATIC_PROVIDERS:
        return None
    folder = home / "models" / settings.meaning.model
    return TransformerEmbedder(read_model_folder(folder)) if folder.is_dir() else None


def model_use(settings: Settings, name: str) -> Literal["embedding", "meaning"] | None:
    """What the settings use this installed model for: all vectors, or meaning vectors."""
    if settings.embedding.provider == "onnx":
        return "embedding" if settings.embedding.model == name else None
    if _provider(settings) not in STATIC_PROVIDERS or not settings.meaning.enabled:
        return None
    return "meaning" if settings.meaning.model == name else None


def _provider(settings: Settings) -> str:
    return choose(settings.embedding, settings.model).settings.provider


def background_threads() -> int:
    """At most two; the process that uses them runs at low priority."""
    return min(_MAX_THREADS, os.cpu_count() or 1)
