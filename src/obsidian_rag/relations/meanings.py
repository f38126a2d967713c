"""The meaning of notes in memory: one vector per slot, its numbers rounded to one byte each."""

import numpy as np
from numpy.typing import NDArray

_HIGHEST = 127
_ROWS_AT_ONCE = 4096


class Meanings:
    """Vectors of one width; a slot without one has a scale of zero."""

    def __init__(self, size: int, width: int) -> None:
        self.width = width
        self._rows = np.zeros((size, width), dtype=np.int8)
        self._scales = np.zeros(size, dtype=np.float32)

    def grow(self, size: int) -> None:
        """Make room for more slots."""
        more = size - len(self._scales)
        self._rows = np.pad(self._rows, ((0, more), (0, 0)))
        self._scales = np.pad(self._scales, (0, more))

    def put(self, slot: int, vector: NDArray[np.floating] | None) -> None:
        """Give a slot its vector, or take it away."""
        scale = 0.0 if vector is None else float(np.abs(vector).max(initial=0)) / _HIGHEST
        self._scales[slot] = scale
        self._rows[slot] = np.rint(vector / scale) if vector is not None and scale else 0

    def of(self, slot: int) -> NDArray[np.float32] | None:
        """The vector of a slot, if it has one."""
        scale = self._scales[slot]
        return self._rows[slot].astype(np.float32) * scale if scale else None

    def above_average(self, vector: NDArray[np.float32]) -> NDArray[np.float64]:
        """How much closer to a vector each slot is than the average one; never below zero."""
        found = np.zeros(len(self._scales))
        # Whole numbers are multiplied slowly, and all of them as floats would fill the memory.
        for start in range(0, len(found), _ROWS_AT_ONCE):
            few = slice(start, start + _ROWS_AT_ONCE)
            found[few] = self._rows[few].astype(np.float32) @ vector
        found *= self._scales
        is_known = self._scales > 0
        average = found[is_known].mean() if is_known.any() else 0.0
        return np.where(is_known, np.maximum(0, found - average), 0)
