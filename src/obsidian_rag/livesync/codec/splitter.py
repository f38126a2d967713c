"""Cut a file into chunks where LiveSync does: `v3-rabin-karp`, on the bytes of the file.

A rolling hash decides, so that an edit moves only nearby cuts, and all devices cut alike.

LiveSync's hash h is not reset at a cut, and what earlier pieces left in it is never removed. So
after n bytes of a piece that began with h = c it is w + c·31ⁿ (mod 2³²), where w is
the hash of the last 48 bytes alone. No cut falls into a piece's first 48 bytes. Therefore w can be
computed for a whole stretch at once, from sums of byte·31⁻ⁱ, and c is added afterwards.
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
# Large enough to amortise numpy's call overhead, small enough for the CPU cache.
_STRETCH_BYTES = 1 << 15
_MAX_TEXT_BYTES = 4 << 20
_MAX_TEXT_PIECES = 500
_PIECE_BYTES = 102_400
_MIN_CEILING_BYTES = 30_720


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
        carried = _next_carried(data[end - _WINDOW : end], carried, end - start)
        start = end
    return [*pieces, data[start:]]


def _lengths(size: int, is_plain: bool, custom_chunk_size: int, minimum: int) -> _Lengths:
    if is_plain and size < _MAX_TEXT_BYTES:
        unit = 64
        while size > unit * 4 * _MAX_TEXT_PIECES:
            unit += 32
        average, most, least = unit * 4, unit * 16, unit * 2
    else:
        average, most, least = 1 << 20, 4 << 20, 256 << 10
    most = min(most, max(_PIECE_BYTES * (custom_chunk_size + 1), _MIN_CEILING_BYTES))
    least = min(max(least, minimum), most)
    return _Lengths(average=min(max(average, least), most), least=least, most=most)


def _next_carried(window: bytes, carried: int, length: int) -> int:
    """The hash after a piece, of which `window` is the end."""
    own: int = sum(map(operator.mul, window, _WEIGHTS))
    return (own + carried * pow(_PRIME, length, _MODULUS)) % _MODULUS


class _Cutter:
    """Finds the ends of one file's pieces, hashing one stretch at a time."""

    def __init__(self, data: bytes, lengths: _Lengths, is_text: bool) -> None:
        import numpy as np  # noqa: PLC0415  (heavy, and not needed for the smallest notes)

        self._np = np
        self._data = data
        self._view = np.frombuffer(data, np.uint8)
        self._lengths = lengths
        self._is_text = is_text
        self._stretch = range(0)
        self._windows = np.empty(0, np.uint32)

    def end_of_piece(self, start: int, carried: int) -> int:
        """The end of the piece that begins at `start` with the hash at `carried`."""
        end = min(start + self._lengths.most, len(self._data))
        for first in range(start + self._lengths.least, end, _STRETCH_BYTES):
            factor = carried * pow(_PRIME, first - start, _MODULUS) % _MODULUS
            for hit in self._find_ends(first, min(first + _STRETCH_BYTES, end), factor):
                if not self._is_inside_character(first + hit):
                    return first + hit
        while self._is_inside_character(end):
            end += 1
        return end

    def _find_ends(self, first: int, stop: int, factor: int) -> list[int]:
        """The offsets from `first`, below `stop`, where the hash marks an end."""
        if stop > self._stretch.stop:
            self._stretch = range(first, min(first + _STRETCH_BYTES, len(self._data)))
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
    import numpy as np  # noqa: PLC0415  (already loaded)

    tables = []
    for factor in (_PRIME, pow(_PRIME, -1, _MODULUS)):
        factors = np.full(_STRETCH_BYTES + _WINDOW, factor, np.uint32)
        factors[0] = 1
        tables.append(np.cumprod(factors, dtype=np.uint32))
    return tables[0], tables[1]
