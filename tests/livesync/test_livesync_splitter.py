"""Cutting files: exactly where the real library cuts, and never inside a character."""

import base64
import hashlib
import random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.livesync.vectors import VECTORS, file_of

from obsidian_rag.livesync.codec.chunk_ids import ChunkIds, length16
from obsidian_rag.livesync.codec.splitter import split

Case = dict[str, Any]
CASES: list[Case] = VECTORS["splitter"]["cases"]
V3 = [case for case in CASES if case["version"] == "v3-rabin-karp"]
WINDOW = 48


def name_of(case: Case) -> str:
    return f"{case['file']}-{case['version']}-{case['customChunkSize']}"


def sha256(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def pieces_of(case: Case) -> list[bytes]:
    return split(
        file_of(case["file"]),
        case["file"],
        is_text=case["kind"] == "text",
        custom_chunk_size=case["customChunkSize"],
        minimum_chunk_size=case["minimumChunkSize"],
    )


def stored(case: Case) -> list[str]:
    if case["file"] == "bom.md":
        # That version of the library lost the byte order mark of a longer first piece.
        return [piece.decode().removeprefix("\ufeff") for piece in pieces_of(case)]
    if case["kind"] == "text":
        return [piece.decode() for piece in pieces_of(case)]
    return [base64.b64encode(piece).decode() for piece in pieces_of(case)]


@pytest.mark.parametrize("case", V3, ids=name_of)
def test_the_pieces_are_those_of_the_real_library(case: Case) -> None:
    pieces = stored(case)
    assert len(pieces) == case["pieceCount"]
    assert [length16(piece) for piece in pieces[:40]] == case["pieceLengths"][:40]
    told = "|".join(f"{length16(piece)}:{piece}" for piece in pieces)
    assert sha256(told) == case["piecesSha256"]


@pytest.mark.parametrize("case", V3, ids=name_of)
def test_the_ids_of_the_pieces_are_those_of_the_real_library(case: Case) -> None:
    ids = [ChunkIds("xxhash64", None).id_of(piece) for piece in stored(case)]
    assert ids[: len(case["firstIds"])] == case["firstIds"]
    assert sha256(",".join(ids)) == case["idsSha256"]


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_pieces_of_any_vault_join_to_the_file(case: Case) -> None:
    joined = b"".join(pieces_of(case))
    assert len(joined) == case["size"]
    assert sha256(joined) == case["sha256"]
    assert all(pieces_of(case))


def split_slowly(data: bytes, average: int, least: int, most: int, is_text: bool) -> list[bytes]:
    """The rolling hash byte by byte, as the specification tells it."""
    out_factor = pow(31, WINDOW - 1, 2**32)
    pieces, start, hashed = [], 0, 0
    for position, byte in enumerate(data):
        if position >= start + WINDOW:
            hashed -= data[position - WINDOW] * out_factor
        hashed = (hashed * 31 + byte) % 2**32
        length = position + 1 - start
        if (length >= least and hashed % average == 1) or length >= most:
            following = data[position + 1 : position + 2]
            if not (is_text and following and following[0] & 0xC0 == 0x80):
                pieces.append(data[start : position + 1])
                start = position + 1
    return [*pieces, data[start:]] if data[start:] else pieces


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    letters = draw(st.sampled_from(["ab", "ab \n", "aé日😀", "日本語", "😀", "x"]))
    count = draw(st.integers(0, 4000))
    chosen = random.Random(draw(st.integers(0, 2**32))).choices(letters, k=count)
    return "".join(chosen).encode()


@given(data=texts(), minimum=st.integers(0, 1500))
def test_text_is_cut_where_the_slow_way_cuts(data: bytes, minimum: int) -> None:
    # Notes below 128 kB: an average of 256, at most 1024, and at least what the settings say.
    least = min(max(128, minimum), 1024)
    expected = split_slowly(data, max(256, least), least, 1024, is_text=True)
    assert (
        split(data, "a.md", is_text=True, custom_chunk_size=0, minimum_chunk_size=minimum)
        == expected
    )


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(100_000, 400_000))
@example(seed=1, size=128_000)
@example(seed=1, size=128_002)
def test_larger_text_has_larger_pieces_cut_where_the_slow_way_cuts(seed: int, size: int) -> None:
    data = random.Random(seed).randbytes(size // 2).hex().encode()
    unit = 64
    while len(data) / (unit * 4) > 500:
        unit += 32
    expected = split_slowly(data, unit * 4, unit * 2, unit * 16, is_text=True)
    assert (
        split(data, "a.csv", is_text=True, custom_chunk_size=60, minimum_chunk_size=20) == expected
    )


@pytest.mark.parametrize("custom", [-1, 0, 2, 9, 60])
@pytest.mark.parametrize("size", [262_143, 262_144, 262_145, 1_500_000])
def test_binary_is_cut_where_the_slow_way_cuts(custom: int, size: int) -> None:
    data = random.Random(size).randbytes(size)
    most = min(4 << 20, max(102_400 * (custom + 1), 30_720))
    least = min(256 << 10, most)
    expected = split_slowly(data, min(1 << 20, most), least, most, is_text=False)
    assert (
        split(data, "a.bin", is_text=False, custom_chunk_size=custom, minimum_chunk_size=20)
        == expected
    )


@pytest.mark.parametrize("size", [(4 << 20) - 1, 4 << 20])
def test_text_of_four_megabytes_is_cut_like_a_binary_but_between_characters(size: int) -> None:
    data = ("日" * (size // 3)).encode() + b"x" * (size % 3)
    pieces = split(data, "a.md", is_text=True, custom_chunk_size=0, minimum_chunk_size=20)
    assert (max(map(len, pieces)) > 30_720 * 3) == (size == 4 << 20)
    assert "".join(piece.decode() for piece in pieces).encode() == data


@given(data=texts(), minimum=st.integers(-5, 2000), custom=st.integers(-5, 100))
def test_no_piece_of_text_ends_inside_a_character(data: bytes, minimum: int, custom: int) -> None:
    pieces = split(data, "a.md", is_text=True, custom_chunk_size=custom, minimum_chunk_size=minimum)
    assert "".join(piece.decode() for piece in pieces).encode() == data
    assert all(pieces)
    assert all(len(piece) <= 1024 + 3 for piece in pieces)


@given(st.binary(max_size=3000))
def test_what_is_no_text_at_all_is_still_joined_to_the_same_bytes(data: bytes) -> None:
    for is_text in (True, False):
        pieces = split(data, "a.md", is_text=is_text, custom_chunk_size=0, minimum_chunk_size=20)
        assert b"".join(pieces) == data


@pytest.mark.parametrize(("path", "longest"), [("a.md", 1024), ("a.canvas", 1024), ("a.js", 9000)])
def test_a_name_can_ask_for_small_pieces(path: str, longest: int) -> None:
    pieces = split(bytes(9000), path, is_text=False, custom_chunk_size=0, minimum_chunk_size=20)
    assert max(map(len, pieces)) == longest


def test_a_byte_order_mark_is_kept() -> None:
    data = file_of("bom.md")
    pieces = split(data, "bom.md", is_text=True, custom_chunk_size=0, minimum_chunk_size=20)
    assert pieces[0].startswith(b"\xef\xbb\xbf")


def test_an_edit_changes_few_pieces_of_a_note() -> None:
    before = file_of("big.md")[:100_000].decode(errors="ignore").encode()
    after = b"A new first line.\n" + before
    kept = set(split(before, "a.md", is_text=True, custom_chunk_size=0, minimum_chunk_size=20))
    pieces = split(after, "a.md", is_text=True, custom_chunk_size=0, minimum_chunk_size=20)
    assert sum(piece not in kept for piece in pieces) <= 5
