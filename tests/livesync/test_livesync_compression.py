"""Compressed chunks: what the real library wrote is read, and no chunk grows without limit."""

import base64
import zlib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.livesync.vectors import VECTORS

from obsidian_rag.errors import LivesyncUnreadable
from obsidian_rag.livesync.codec.chunk_ids import length16
from obsidian_rag.livesync.codec.compression import compress, expand, is_compressed

MARKER = "\x0eLZ\x1d"
Case = dict[str, Any]


def deflated(raw: bytes) -> str:
    deflater = zlib.compressobj(wbits=-15)
    return base64.b64encode(deflater.compress(raw) + deflater.flush()).decode()


@pytest.mark.parametrize("case", VECTORS["compression"])
def test_what_the_real_library_compressed_is_read(case: Case) -> None:
    assert expand(case["stored"]) == case["plain"]
    assert is_compressed(case["stored"]) == case["changed"]


@pytest.mark.parametrize("case", VECTORS["compression"])
def test_a_piece_is_compressed_when_the_real_library_does(case: Case) -> None:
    stored = compress(case["plain"])
    assert (stored != case["plain"]) == case["changed"]
    # The marker says whether the piece was base64; the deflated bytes may differ.
    assert stored[:5].startswith(MARKER + "~") == case["stored"].startswith(MARKER + "~")
    assert expand(stored) == case["plain"]


@given(
    st.text() | st.text("ab", max_size=2000) | st.binary().map(base64.b64encode).map(bytes.decode)
)
@example("")
@example(MARKER)
@example(MARKER + "~")
@example(MARKER + "AA==" * 100)
@example("QQ=" + "=")
@example("QR==")
@example("QUFB" * 50 + "QR==")
def test_every_piece_comes_back(piece: str) -> None:
    stored = compress(piece)
    assert expand(stored) == piece
    assert stored == piece or length16(stored) < length16(piece) or is_compressed(piece)


@pytest.mark.parametrize("length", range(8, 40))
def test_a_piece_that_gets_no_shorter_is_stored_as_it_is(length: int) -> None:
    stored = compress("!" * length)
    assert stored == "!" * length or len(stored) < length


@given(st.text())
def test_what_is_not_compressed_is_left_alone(piece: str) -> None:
    if not is_compressed(piece):
        assert expand(piece) == piece


@pytest.mark.parametrize("kind", ["", "~"])
def test_a_chunk_may_grow_up_to_the_limit_and_no_further(kind: str) -> None:
    data = MARKER + kind + deflated(b"a" * 3000)
    assert len(expand(data, limit_bytes=3000)) >= 3000
    with pytest.raises(LivesyncUnreadable):
        expand(data, limit_bytes=2999)
    with pytest.raises(LivesyncUnreadable):
        expand(data, limit_bytes=0)


def test_a_bomb_is_refused_by_itself() -> None:
    with pytest.raises(LivesyncUnreadable):
        expand(MARKER + deflated(bytes(70 << 20)))


@pytest.mark.parametrize(
    "body",
    [
        "",
        "~",
        "A",
        "AA=A",
        "日本",
        "AAAA",
        "~!",
        deflated(b"hello" * 99)[:-8],
        deflated(b"\xff\xfe"),
    ],
)
def test_a_damaged_chunk_is_told_of(body: str) -> None:
    with pytest.raises(LivesyncUnreadable):
        expand(MARKER + body)
