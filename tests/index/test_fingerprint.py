"""Whose change it is when an index does not fit: the user's, or that of the program."""

import json

import pytest

from obsidian_rag.errors import EmbeddingMismatch, IndexIncomplete
from obsidian_rag.index.fingerprint import check_fingerprint, has_same_vectors, is_outdated

NOW = {
    "schema": 4,
    "chunker": 2,
    "chunks": "500/100/2000/no-code",
    "embedder": "builtin:l2_supercat:256:aa:bb:r1",
}
OLLAMA = {**NOW, "embedder": "ollama:nomic:v1.5:768:cc"}
BY_THE_PROGRAM = [
    ({**NOW, "schema": 3}, NOW),
    ({**NOW, "chunker": 1, "schema": 3}, NOW),
    ({**NOW, "embedder": "builtin:l2_supercat:256:aa:bb:r0"}, NOW),
    ({**NOW, "embedder": "builtin:other:128:dd"}, NOW),
    ({**OLLAMA, "schema": 3}, OLLAMA),
    ({"format": 0}, NOW),
]
BY_THE_USER = [
    (OLLAMA, NOW),
    (NOW, OLLAMA),
    ({**OLLAMA, "embedder": "ollama:nomic:v1.5:768:dd"}, OLLAMA),
    ({**OLLAMA, "embedder": "ollama:minilm:384:dd", "schema": 3}, OLLAMA),
    ({**NOW, "embedder": "hash:64"}, {**NOW, "embedder": "hash:256"}),
    ({**NOW, "chunks": "300/100/2000/no-code", "schema": 3}, NOW),
    ({**NOW, "chunks": "500/100/2000/code"}, NOW),
]


@pytest.mark.parametrize(("made", "wanted"), BY_THE_PROGRAM)
def test_an_index_of_another_program_is_outdated(
    made: dict[str, object], wanted: dict[str, object]
) -> None:
    assert is_outdated(json.dumps(made), json.dumps(wanted))
    with pytest.raises(IndexIncomplete, match="another version"):
        check_fingerprint(json.dumps(made), json.dumps(wanted))


@pytest.mark.parametrize(("made", "wanted"), BY_THE_USER)
def test_other_settings_are_the_users_own(
    made: dict[str, object], wanted: dict[str, object]
) -> None:
    assert not is_outdated(json.dumps(made), json.dumps(wanted))
    with pytest.raises(EmbeddingMismatch, match="was built with"):
        check_fingerprint(json.dumps(made), json.dumps(wanted))


def test_an_index_that_fits_is_neither() -> None:
    assert not is_outdated(None, json.dumps(NOW))
    assert not is_outdated(json.dumps(NOW), json.dumps(NOW))
    check_fingerprint(json.dumps(NOW), json.dumps(NOW))


def test_what_is_no_fingerprint_is_outdated() -> None:
    assert is_outdated("version 1", json.dumps(NOW))


def test_vectors_of_one_embedder_can_be_compared_whatever_else_changed() -> None:
    assert has_same_vectors(json.dumps({**NOW, "schema": 3}), json.dumps(NOW))
    assert not has_same_vectors(json.dumps(OLLAMA), json.dumps(NOW))
