"""Feature hashing: stable over releases, close for shared words."""

import numpy as np
import pytest

from obsidian_rag.embed.hashing import HashEmbedder


def test_vectors_never_change() -> None:
    vector = HashEmbedder(8).embed_query("Hello world")
    assert (vector * np.sqrt(10)).round(4).tolist() == [0, 0, -2, 1, 0, -1, 2, 0]


@pytest.mark.parametrize("width", [8, 256, 1000])
def test_width_is_chosen(width: int) -> None:
    embedder = HashEmbedder(width)
    assert embedder.dimensions == embedder.embed_query("abc").shape[0] == width


def test_case_does_not_matter() -> None:
    embedder = HashEmbedder()
    assert np.array_equal(embedder.embed_query("STRASSE Über"), embedder.embed_query("straße über"))


def test_shared_words_and_spellings_are_close() -> None:
    embedder = HashEmbedder()
    query = embedder.embed_query("backup server")
    same, inflected, other = (
        embedder.embed_documents(["server backup plan", "backups of servers", "red wine"]) @ query
    )
    assert same > inflected > other


def test_forgetting_words_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # The limit is only worth testing when small.
    monkeypatch.setattr("obsidian_rag.embed.hashing._MAX_CACHED_WORDS", 2)
    text = "one two three four five one two three"
    assert np.array_equal(
        HashEmbedder().embed_query(text), HashEmbedder().embed_documents([text])[0]
    )
