"""Packs the terms and vectors of a note into its row; rounding for order-independent sums."""

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.errors import IndexCorrupted

_INT8_MAX = 127


class VectorKind(StrEnum):
    """What kind of model made a vector; the value is its column."""

    STATIC = "vector"
    MEANING = "meaning"

    @property
    def word(self) -> str:
        """The word shown to users."""
        return "static" if self is VectorKind.STATIC else "meaning"

    def pack(self, vector: NDArray[np.floating]) -> bytes | None:
        """The bytes of the normalised vector; None if it has no direction."""
        length = float(np.linalg.norm(vector))
        if not 0 < length < np.inf:
            return None
        if self is VectorKind.STATIC:
            halves: NDArray[np.float16] = (vector / length).astype(np.float16)
            return halves.tobytes()
        # One byte per number is precise enough for a direction; the length is one anyway.
        step = float(np.abs(vector).max()) / _INT8_MAX
        numbers: NDArray[np.int8] = np.rint(vector / step).astype(np.int8)
        return numbers.tobytes()

    def unpack(self, data: bytes) -> NDArray[np.float32]:
        """A packed vector; an empty one if there are no bytes.

        Raises:
            ValueError: these bytes are not a vector.
        """
        if self is VectorKind.STATIC or not data:
            vector = np.frombuffer(data, np.float16).astype(np.float32)
        else:
            vector = np.frombuffer(data, np.int8).astype(np.float32)
            vector /= float(np.linalg.norm(vector)) or np.nan
        if not np.isfinite(vector).all():
            raise ValueError("a vector contains an invalid number")
        return vector


_FLOAT_DIGITS, _FLOAT32_DIGITS = 52, 23


def exact(values: NDArray[np.floating], addends: int = 1) -> NDArray[np.float64]:
    """The values, rounded just enough that sums of up to `addends` of them are exact."""
    highest = float(np.abs(values).max(initial=0)) * addends
    return _round_to_steps(np.asarray(values, dtype=np.float64), highest, _FLOAT_DIGITS)


def exact_factors(values: NDArray[np.float32], most: int) -> NDArray[np.float32]:
    """The values, rounded: float32 sums of their products with numbers up to `most` are exact."""
    highest = most * float(np.abs(values).sum(dtype=np.float64))
    return _round_to_steps(values.astype(np.float64), highest, _FLOAT32_DIGITS).astype(np.float32)


def _round_to_steps(
    values: NDArray[np.float64], highest: float, digits: int
) -> NDArray[np.float64]:
    if highest == 0:
        return values
    if not math.isfinite(highest):
        # No note can have such a count or weight: the file is damaged.
        text = "relations.db is damaged: it contains an invalid number."
        raise IndexCorrupted(text, "Run `obsidian-rag sync`.")
    step = 2.0 ** (digits - math.ceil(math.log2(highest)))
    rounded: NDArray[np.float64] = np.rint(values * step) / step
    return rounded


BETWEEN_PHRASES = -1
T = TypeVar("T", bound=np.integer)


@dataclass(frozen=True, slots=True)
class Places:
    """The terms of one note in order, and the line of each."""

    terms: NDArray[np.int32]
    lines: NDArray[np.int32]


def count_distinct(sequence: NDArray[T]) -> tuple[NDArray[T], NDArray[np.intp]]:
    """The distinct numbers, sorted, and their counts.

    `np.unique` does the same but is slower.
    """
    if not len(sequence):
        return sequence, np.empty(0, dtype=np.intp)
    ordered = np.sort(sequence)
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    return ordered[starts], np.append(starts[1:], len(ordered)) - starts


def pack(terms: NDArray[np.int32], lines: NDArray[np.int32]) -> bytes:
    """The terms of a note and their lines, compressed."""
    steps = lines.copy()
    steps[1:] -= lines[:-1]
    return zlib.compress(terms.tobytes() + steps.tobytes(), 1)


def unpack(data: bytes) -> Places:
    """The inverse of `packed`."""
    both = np.frombuffer(zlib.decompress(data), dtype=np.int32)
    terms, steps = both[: len(both) // 2], both[len(both) // 2 :]
    return Places(terms, np.cumsum(steps, dtype=np.int32))


def phrases_in(data: bytes) -> Iterator[tuple[int, ...]]:
    """The names of a note as term numbers."""
    phrase: list[int] = []
    for number in np.frombuffer(data, dtype=np.int32).tolist():
        if number == BETWEEN_PHRASES:
            yield tuple(phrase)
            phrase = []
        else:
            phrase.append(number)
