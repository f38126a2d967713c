"""A real Ollama, when there is one: OLLAMA_HOST names it."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from obsidian_rag.config import EmbeddingSettings, SecuritySettings
from obsidian_rag.embed.ollama import OllamaEmbedder
from obsidian_rag.errors import ObsidianRagError, ProviderFailed

GOLDEN = Path(__file__).parents[3] / "shared" / "ollama" / "golden.json"
QUESTION = "Why is the sky blue?"


def golden() -> dict[str, list[float]]:
    if not GOLDEN.is_file():
        return {}
    vectors: dict[str, list[float]] = json.loads(GOLDEN.read_text())
    return vectors


def real_ollama(model: str) -> OllamaEmbedder:
    host = os.environ.get("OLLAMA_HOST")
    if not host:
        pytest.skip("OLLAMA_HOST is not set")
    url = host if "://" in host else f"http://{host}"
    settings = EmbeddingSettings.model_validate(
        {"provider": "ollama", "base_url": url, "model": model, "external_consent": True}
    )
    embedder = OllamaEmbedder(settings, SecuritySettings.model_validate({"local_only": False}))
    try:
        embedder.probe()
    except ProviderFailed as error:
        pytest.skip(error.message)
    except ObsidianRagError as error:
        pytest.skip(f"OLLAMA_HOST does not answer: {error.message}")
    return embedder


@pytest.mark.parametrize("model", sorted(golden()) or ["mxbai-embed-large:latest"])
def test_vectors_are_those_of_ollamas_own_tests(model: str) -> None:
    embedder = real_ollama(model)
    if model not in golden():
        pytest.skip(f"{GOLDEN} is not there")
    prefix = embedder._known.document_prefix
    if prefix:
        pytest.skip(f"our documents for {model} start with '{prefix}', the golden text does not")
    row = embedder.embed_documents([QUESTION])[0]
    expected = np.asarray(golden()[model], dtype=np.float32)
    assert float(row @ expected) / float(np.linalg.norm(expected)) >= 0.999


def test_a_text_over_the_context_is_embedded_whole() -> None:
    embedder = real_ollama("mxbai-embed-large")
    rows = embedder.embed_documents([QUESTION, "the sky is blue because of scattering " * 400])
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
