"""Where LiveSync cuts a file into chunks: `v3-rabin-karp`, on the bytes of the file.

A rolling hash decides, so that most edits move only the cuts near them, and all devices cut alike.

The hash h of LiveSync is not reset at a cut, and what earlier pieces left in it is never taken
out again. So after n bytes of a piece that began with h = c it is w + c·31ⁿ (mod 2³²), where w is
the hash of the last 48 bytes alone. No cut falls into a piece's first 48 bytes. Therefore w can be
had for a whole stretch at once, from sums of byte·31⁻ⁱ, and c is added afterwards.
"""

import functools
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from obsidian_rag.livesync.codec.path_ids import splits_as_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WINDOW = 48
_PRIME = 31
_MODULUS = 1 << 32
_WEIGHTS = [pow(_PRIME, _WINDOW - 1 - i, _MODULUS) for i in range(_WINDOW)]
# Large enough to forget what a call of numpy costs, small enough for the processor's cache.
_STRETCH = 1 << 15
_TEXT_LIMIT = 4 << 20
_MOST_TEXT_PIECES = 500
_PIECE_BYTES = 102_400
_LEAST_CEILING = 30_720


@dataclass(frozen=True, slots=True)
class _Lengths:
    average: int
    least: int
    most: int


def split(
    data: bytes, path: str, *, is_text: bool, custom_chunk_size: int, minimum_chunk_size: int
) -> list[bytes]:
    """The pieces of a file, in order, none empty; text is never cut inside a character."""
    is_plain = is_text or splits_as_text(path)
    lengths = _lengths(len(data), is_plain, custom_chunk_size, minimum_chunk_size)
    if len(data) <= lengths.least:
        return [data] if data else []
    cutter = _Cutter(data, lengths, is_text)
    pieces = []
    start = carried = 0
    while (end := cutter.end_of_piece(start, carried)) < len(data):
        pieces.append(data[start:end])
        carried = _carry(data[end - _WINDOW : end], carried, end - start)
        start = end
    return [*pieces, data[start:]]


def _lengths(size: int, is_plain: bool, custom_chunk_size: int, minimum: int) -> _Lengths:
    if is_plain and size < _TEXT_LIMIT:
        unit = 64
        while size > unit * 4 * _MOST_TEXT_PIECES:
            unit += 32
        average, most, least = unit * 4, unit * 16, unit * 2
    else:
        average, most, least = 1 << 20, 4 << 20, 256 << 10
    most = min(most, max(_PIECE_BYTES * (custom_chunk_size + 1), _LEAST_CEILING))
    least = min(max(least, minimum), most)
    return _Lengths(average=min(max(average, least), most), least=least, most=most)


def _carry(window: bytes, carried: int, length: int) -> int:
    """The hash after a piece, of which `window` is the end."""
    own: int = sum(map(operator.mul, window, _WEIGHTS))
    return (own + carried * pow(_PRIME, length, _MODULUS)) % _MODULUS


class _Cutter:
    """Finds the ends of the pieces of one file, looking ahead one stretch at a time."""

    def __init__(self, data: bytes, lengths: _Lengths, is_text: bool) -> None:
        import numpy as np  # noqa: PLC0415  (heavy, and the smallest notes do not need it)

        self._np = np
        self._data = data
        self._view = np.frombuffer(data, np.uint8)
        self._lengths = lengths
        self._is_text = is_text
        self._stretch = range(0)
        self._windows = np.empty(0, np.uint32)

    def end_of_piece(self, start: int, carried: int) -> int:
        """Where the piece ends that begins at `start`, when the hash stands at `carried`."""
        end = min(start + self._lengths.most, len(self._data))
        for first in range(start + self._lengths.least, end, _STRETCH):
            factor = carried * pow(_PRIME, first - start, _MODULUS) % _MODULUS
            for hit in self._hits(first, min(first + _STRETCH, end), factor):
                if not self._is_inside_character(first + hit):
                    return first + hit
        while self._is_inside_character(end):
            end += 1
        return end

    def _hits(self, first: int, stop: int, factor: int) -> list[int]:
        """How far after `first` the hash asks for an end, up to `stop`."""
        if stop > self._stretch.stop:
            self._stretch = range(first, min(first + _STRETCH, len(self._data)))
            self._windows = self._window_hashes(self._stretch)
        windows = self._windows[first - self._stretch.start : stop - self._stretch.start]
        hashes = windows + _tables()[0][: stop - first] * self._np.uint32(factor)
        hits: list[int] = (hashes % self._lengths.average == 1).nonzero()[0].tolist()
        return hits

    def _window_hashes(self, ends: range) -> "NDArray[np.uint32]":
        """The hash of the 48 bytes before each of these ends."""
        powers, inverses = _tables()
        window = self._view[ends.start - _WINDOW : ends.stop - 1]
        sums = self._np.zeros(len(window) + 1, self._np.uint32)
        self._np.cumsum(window * inverses[: len(window)], dtype=self._np.uint32, out=sums[1:])
        return (sums[_WINDOW:] - sums[:-_WINDOW]) * powers[_WINDOW - 1 : len(window)]

    def _is_inside_character(self, end: int) -> bool:
        return self._is_text and end < len(self._data) and self._data[end] & 0xC0 == 0x80


@functools.cache
def _tables() -> "tuple[NDArray[np.uint32], NDArray[np.uint32]]":
    """The powers of 31 and of its inverse, modulo 2³²."""
    import numpy as np  # noqa: PLC0415  (loaded by now)

    tables = []
    for factor in (_PRIME, pow(_PRIME, -1, _MODULUS)):
        factors = np.full(_STRETCH + _WINDOW, factor, np.uint32)
        factors[0] = 1
        tables.append(np.cumprod(factors, dtype=np.uint32))
    return tables[0], tables[1]
