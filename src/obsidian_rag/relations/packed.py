"""How the terms of a note are written into its row: counted, and packed with their lines."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

BETWEEN_PHRASES = -1
T = TypeVar("T", bound=np.integer)


@dataclass(frozen=True, slots=True)
class Places:
    """The terms of one note in their order, and the line on which each stands."""

    terms: NDArray[np.int32]
    lines: NDArray[np.int32]


def counted(sequence: NDArray[T]) -> tuple[NDArray[T], NDArray[np.intp]]:
    """The numbers, each once and in order, and how often each stands there.

    `np.unique` does the same, and takes longer.
    """
    if not len(sequence):
        return sequence, np.empty(0, dtype=np.intp)
    ordered = np.sort(sequence)
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    return ordered[starts], np.append(starts[1:], len(ordered)) - starts


def packed(terms: NDArray[np.int32], lines: NDArray[np.int32]) -> bytes:
    """The terms of a note and their lines, made small."""
    steps = lines.copy()
    steps[1:] -= lines[:-1]
    return zlib.compress(terms.tobytes() + steps.tobytes(), 1)


def unpacked(data: bytes) -> Places:
    """What `packed` made small."""
    both = np.frombuffer(zlib.decompress(data), dtype=np.int32)
    terms, steps = both[: len(both) // 2], both[len(both) // 2 :]
    return Places(terms, np.cumsum(steps, dtype=np.int32))


def phrases_in(data: bytes) -> Iterator[tuple[int, ...]]:
    """The names of a note as numbers of terms."""
    phrase: list[int] = []
    for number in np.frombuffer(data, dtype=np.int32).tolist():
        if number == BETWEEN_PHRASES:
            yield tuple(phrase)
            phrase = []
        else:
            phrase.append(number)
