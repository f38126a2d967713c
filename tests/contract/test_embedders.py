"""What every embedder promises, over every embedder."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.embed.embedding_doubles import fake_ollama, tiny_model
from tests.embed.provider_doubles import fake_gemini, fake_openai

from obsidian_rag.config import EmbeddingSettings, SecuritySettings
from obsidian_rag.embed import Embedder, make_embedder
from obsidian_rag.errors import ConfigInvalid

TEXTS = [
    "The dog and the puppy",
    "money of the bank",
    "# Überschrift\n\n- 日本語 и русский 🎉",
    "river " * 2000,
    "x",
]
ODD = ["", "   ", "\n\t", "\u200b", "�", "∰⟁⧉", "\x00\x07", "🜁🜂🜃", "\ud800"]


def build(settings: dict[str, object], home: Path) -> Embedder:
    return make_embedder(
        EmbeddingSettings.model_validate(settings), SecuritySettings.model_validate({}), home
    )


@pytest.fixture(params=["builtin", "hash", "onnx", "ollama", "openai", "gemini"], scope="module")
def embedder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Embedder]:
    tmp_path = tmp_path_factory.mktemp("home")
    settings: dict[str, object] = {"provider": request.param}
    with fake_ollama() as server, fake_openai() as openai, fake_gemini() as gemini:
        if request.param == "onnx":
            settings["model"] = str(tiny_model(tmp_path / "tiny", max_tokens=64))
        if request.param == "ollama":
            settings |= {"model": "tiny", "base_url": server.url}
        if request.param == "openai":
            settings |= {"model": "tiny", "base_url": openai.url}
        if request.param == "gemini":
            settings |= {"model": "gemini-embedding-001", "base_url": gemini.url}
        made = build(settings, tmp_path)
        yield made
        made.close()
        assert openai.violations == gemini.violations == []


def test_rows_are_unit_float32_of_the_promised_width(embedder: Embedder) -> None:
    rows = embedder.embed_documents(TEXTS)
    assert rows.shape == (len(TEXTS), embedder.dimensions)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_odd_texts_get_finite_unit_vectors(embedder: Embedder) -> None:
    for rows in (embedder.embed_documents(ODD), np.stack([embedder.embed_query(t) for t in ODD])):
        assert np.isfinite(rows).all()
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_blank_texts_all_get_one_vector(embedder: Embedder) -> None:
    first, *others = embedder.embed_documents(["", " ", "\n\t"])
    assert all(np.array_equal(first, row) for row in (*others, embedder.embed_query("")))


def test_a_text_has_the_same_vector_in_any_batch(embedder: Embedder) -> None:
    texts = [*TEXTS, *(f"filler number {number}" for number in range(300)), *ODD]
    rows = embedder.embed_documents(texts)
    again = embedder.embed_documents(texts[::-1])[::-1]
    assert np.array_equal(rows, again)
    for position in (0, 1, 2, 3, 4, 150, len(texts) - 1):
        assert np.array_equal(embedder.embed_documents([texts[position]])[0], rows[position])


def test_query_and_document_of_the_same_words_are_close(embedder: Embedder) -> None:
    query = embedder.embed_query("the dog and the puppy")
    same, other = embedder.embed_documents(["the dog and the puppy", "bank money river"]) @ query
    assert same > 0.95
    assert same > other


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert embedder.embed_documents([]).shape == (0, embedder.dimensions)


def test_description_is_stable(embedder: Embedder, request: pytest.FixtureRequest) -> None:
    assert embedder.provider in request.node.name
    assert embedder.model
    assert embedder.is_external is False
    assert embedder.max_tokens is None or embedder.max_tokens > 0
    assert embedder.fingerprint == embedder.fingerprint
    embedder.probe()


def test_different_models_have_different_fingerprints(tmp_path: Path) -> None:
    made: list[dict[str, object]] = [
        {"provider": "builtin"},
        {"provider": "hash"},
        {"provider": "hash", "dimensions": 512},
        {"provider": "ollama"},
        {"provider": "ollama", "model": "nomic-embed-text"},
        {"provider": "openai", "base_url": "http://localhost:1", "model": "nomic-embed-text"},
        {"provider": "openai", "base_url": "http://localhost:1", "dimensions": 512},
        {"provider": "gemini", "base_url": "http://localhost:1"},
        {"provider": "gemini", "base_url": "http://localhost:1", "dimensions": 1536},
        {"provider": "onnx", "model": str(tiny_model(tmp_path / "one"))},
        {"provider": "onnx", "model": str(tiny_model(tmp_path / "two", seed=1))},
    ]
    prints = [build(settings, tmp_path).fingerprint for settings in made]
    assert len(set(prints)) == len(made)


@pytest.mark.parametrize(
    "settings",
    [
        {"provider": "builtin", "dimensions": 1024},
        {"provider": "onnx"},
        {"provider": "onnx", "model": "missing"},
        {"provider": "ollama", "base_url": "localhost"},
        {"provider": "openai", "base_url": "localhost"},
        {"provider": "gemini", "base_url": "http://localhost:1", "model": "a/b"},
    ],
)
def test_impossible_settings_are_refused_at_once(
    tmp_path: Path, settings: dict[str, object]
) -> None:
    with pytest.raises(ConfigInvalid):
        build(settings, tmp_path)
