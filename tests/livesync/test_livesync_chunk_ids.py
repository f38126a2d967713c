"""Chunk ids: those of the real library, for every algorithm, plain and encrypted."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.livesync.vectors import VECTORS

from obsidian_rag.livesync.codec.chunk_ids import (
    ChunkIds,
    HashedPassphrase,
    length16,
    mix,
    mixed_hash,
)

Case = dict[str, Any]
HASHES = VECTORS["chunk_hash"]


def result_name(case: Case) -> str:
    secret = repr(case["passphrase"]) if case["encrypt"] else "plain"
    return f"{case['hashAlg'] or 'legacy'}-{case['key']}-{secret}"


@pytest.mark.parametrize("case", VECTORS["mixedHash"])
def test_both_halves_of_the_mixed_hash_are_those_of_the_real_library(case: Case) -> None:
    assert mixed_hash(case["str"], case["seed"]) == (case["murmur"], case["fnv1a"])


@pytest.mark.parametrize("case", VECTORS["fallbackMixedHashEach"])
def test_the_mixed_hash_as_text_is_that_of_the_real_library(case: Case) -> None:
    assert mix(case["str"]) == case["hash"]


@pytest.mark.parametrize("case", HASHES["passphrase_intermediates"])
def test_a_passphrase_is_hashed_as_in_the_real_library(case: Case) -> None:
    hashed = HashedPassphrase(case["passphrase"])
    assert (hashed.text, hashed.number) == (case["hashedPassphrase"], case["hashedPassphrase32"])


@pytest.mark.parametrize("case", HASHES["results"], ids=result_name)
def test_the_id_of_a_chunk_is_that_of_the_real_library(case: Case) -> None:
    ids = ChunkIds(case["hashAlg"], case["passphrase"] if case["encrypt"] else None)
    assert ids.id_of(HASHES["strings"][case["key"]]) == case["chunk_id"]


def test_a_passphrase_cut_inside_a_character_still_makes_ids() -> None:
    assert ChunkIds("xxhash64", "a😀").id_of("x").startswith("h:+")


@given(piece=st.text(max_size=40), passphrase=st.none() | st.text(max_size=8))
def test_an_algorithm_we_do_not_know_is_taken_for_xxhash32(
    piece: str, passphrase: str | None
) -> None:
    known, unknown = ChunkIds("xxhash32", passphrase), ChunkIds("sha256", passphrase)
    assert known.id_of(piece) == unknown.id_of(piece)


@given(st.text())
def test_length_is_counted_in_utf16(text: str) -> None:
    assert length16(text) == sum(2 if ord(letter) > 0xFFFF else 1 for letter in text)


@pytest.mark.parametrize("algorithm", ["xxhash64", "xxhash32", "", "mixed-purejs", "sha1"])
@given(one=st.text(max_size=30), other=st.text(max_size=30))
def test_different_pieces_have_different_ids(algorithm: str, one: str, other: str) -> None:
    ids = ChunkIds(algorithm, "secret")
    assert (ids.id_of(one) == ids.id_of(other)) == (one == other)


def test_what_makes_ids_does_not_show_the_passphrase() -> None:
    assert "correct horse" not in repr(ChunkIds("xxhash64", "correct horse").__dict__)
