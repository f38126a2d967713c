"""The built-in model: the same vectors as wordllama's own code, found faster."""

import importlib
import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from obsidian_rag.embed import builtin
from obsidian_rag.embed.builtin import BuiltinEmbedder, WordPieces

TEXTS = [
    "Why is the sky blue?",
    "# Heading\n\n- a list\n  - indented   with  spaces\n\ttab\r\n",
    "Grüße aus Köln, naïve café; 日本語のテキスト и русский текст 🎉🚀",
    "literal ▁ signs ▁▁ and    runs ▁ of spaces   ",
    "markers <s> in </s> the <unk> text",
    "\n\n\n",
    "x",
    "https://example.com/a/very/long/path?with=query&and=more#fragment " * 40,
    "word " * 3000,
]


@pytest.fixture(scope="module")
def embedder() -> BuiltinEmbedder:
    return BuiltinEmbedder()


@pytest.fixture(scope="module")
def pieces() -> WordPieces:
    return WordPieces(builtin._files()[1])


def wordllama_vectors(texts: list[str]) -> NDArray[np.float32]:
    wordllama = importlib.import_module("wordllama")
    model = wordllama.WordLlama.load(
        cache_dir=Path(str(wordllama.__file__)).parent, disable_download=True
    )
    rows: NDArray[np.float32] = model.embed(texts, norm=True)
    return rows


def test_vectors_equal_those_of_wordllama(embedder: BuiltinEmbedder) -> None:
    # wordllama's import configures the root logger; put it back for the other tests.
    root = logging.getLogger()
    before = root.level, root.handlers[:]
    try:
        texts = [text for text in TEXTS if text.strip()]
        difference = embedder.embed_documents(texts) - wordllama_vectors(texts)
    finally:
        root.setLevel(before[0])
        root.handlers[:] = before[1]
    assert np.abs(difference).max() < 1e-5


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_equal_those_of_the_plain_tokenizer(pieces: WordPieces, text: str) -> None:
    assert next(pieces.tokens([text])).tolist() == pieces.plain_tokens(text)


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("ab .,\n\t▁<s>/é字🎉\r-#([_") | st.characters(codec="utf-8")))
def test_tokens_equal_those_of_the_plain_tokenizer_for_any_text(
    pieces: WordPieces, text: str
) -> None:
    assert next(pieces.tokens([text])).tolist() == pieces.plain_tokens(text)


def test_forgetting_words_changes_nothing(
    pieces: WordPieces, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The limit is only worth testing when small.
    monkeypatch.setattr("obsidian_rag.embed.builtin._MAX_CACHED_WORDS", 3)
    for text in TEXTS:
        assert next(pieces.tokens([text])).tolist() == pieces.plain_tokens(text)


def test_meaning_is_found(embedder: BuiltinEmbedder) -> None:
    query = embedder.embed_query("how do dogs behave")
    near, far = embedder.embed_documents(["the puppy barks", "quarterly tax report"]) @ query
    assert near > far


def test_closed_model_can_be_used_again(embedder: BuiltinEmbedder) -> None:
    before = embedder.embed_query("abc")
    embedder.close()
    assert np.array_equal(embedder.embed_query("abc"), before)


def test_nothing_heavy_is_imported_and_no_logger_is_touched() -> None:
    program = """
import logging, sys
import obsidian_rag.embed
heavy = {"httpx", "tokenizers", "wordllama", "onnxruntime", "requests"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
from obsidian_rag.embed.builtin import BuiltinEmbedder
BuiltinEmbedder().embed_query("abc")
assert not {"httpx", "wordllama", "requests"} & set(sys.modules)
assert not logging.getLogger().handlers
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_few_texts_and_many_get_the_same_vectors() -> None:
    texts = [
        f"the {word} by the river"
        for word in ["one", "two", "three", "four", "five", "six", "seven"]
    ]
    many = texts * 3
    alone = np.stack([BuiltinEmbedder().embed_query(text) for text in texts])
    together = BuiltinEmbedder().embed_documents(many)[: len(texts)]
    assert np.array_equal(alone, together)
