"""The golden vectors: what the real LiveSync library answered, and the files it was asked about."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

VECTORS: dict[str, Any] = json.loads(
    Path(__file__).with_name("vectors.json").read_text(encoding="utf-8")
)

_WORDS = ["lorem", "ipsum", "dolor", "sit", "amet", "日本語", "émoji😀", "#tag", "[[link]]"]
_WORDS += ["- item", "```", "1234567890"]


def _random_bytes(seed: int, size: int) -> bytes:
    """The `lcg` generator that the vectors describe."""
    state, made = seed, bytearray()
    for _ in range(size):
        state = (state * 1664525 + 1013904223) % 2**32
        made.append(state >> 24)
    return bytes(made)


def _random_lines(seed: int, count: int) -> str:
    """The `text` generator that the vectors describe."""
    state, lines = seed, []

    def following() -> int:
        nonlocal state
        state = (state * 1664525 + 1013904223) % 2**32
        return state >> 16

    for _ in range(count):
        lines.append(" ".join(_WORDS[following() % 12] for _ in range(following() % 14)))
    return "".join(f"{line}\n" for line in lines)


# The seeds and sizes were found by trying: each file has the SHA-256 that the vectors give.
_FILES: dict[str, Callable[[], bytes]] = {
    "empty.md": lambda: b"",
    "short.md": lambda: b"hello\n",
    "noeol.md": lambda: b"hello",
    "mid.md": lambda: _random_lines(1, 60).encode(),
    "big.md": lambda: _random_lines(2, 3000).encode(),
    "mid.txt": lambda: _random_lines(3, 100).encode(),
    "mid.csv": lambda: _random_lines(4, 400).encode(),
    "huge.md": lambda: _random_lines(9, 70_000).encode(),
    "onelong.md": lambda: b"x" * 5000,
    "bom.md": lambda: b"\xef\xbb\xbf" + _random_lines(6, 40).encode(),
    "crlf.md": lambda: _random_lines(7, 40).replace("\n", "\r\n").encode(),
    "emoji.md": lambda: "😀".encode() * 1500,
    "empty.png": lambda: b"",
    "small.png": lambda: _random_bytes(1, 1000),
    "mid.png": lambda: _random_bytes(2, 300_000),
    "big.bin": lambda: _random_bytes(3, 3_000_000),
    "zero.bin": lambda: bytes(700_000),
    "doc.pdf": lambda: _random_bytes(4, 900_000),
    "data.json": lambda: json.dumps(
        [{"i": i, "v": f"x{i}"} for i in range(4000)], separators=(",", ":")
    ).encode(),
}


@functools.cache
def file_of(name: str) -> bytes:
    """The content of a file that the splitter was asked about."""
    return _FILES[name]()
