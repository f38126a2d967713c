"""The meaning of notes in memory: one vector per slot, its numbers rounded to one byte each."""

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.relations.exact import exact_factors

_HIGHEST = 127
# So few that they are multiplied in one thread: waiting for a second one takes longer.
_ROWS_AT_ONCE = 1024
_TINY = 1e-12
_STEPS = 2.0**30


class Meanings:
    """Vectors of one width; a slot without one has a scale of zero."""

    def __init__(self, size: int, width: int) -> None:
        self.width = width
        self._rows = np.zeros((size, width), dtype=np.int8)
        self._scales = np.zeros(size, dtype=np.float32)
        self._centred: tuple[NDArray[np.float32], NDArray[np.float64]] | None = None

    def grow(self, size: int) -> None:
        """Make room for more slots."""
        more = size - len(self._scales)
        self._rows = np.pad(self._rows, ((0, more), (0, 0)))
        self._scales = np.pad(self._scales, (0, more))
        self._centred = None

    def put(self, slot: int, vector: NDArray[np.floating] | None) -> None:
        """Give a slot its vector, or take it away."""
        highest = 0.0 if vector is None else float(np.abs(vector).max(initial=0))
        # In steps: then the sum of all notes is the same in whatever order they come.
        scale = round(highest / _HIGHEST * _STEPS) / _STEPS
        self._scales[slot] = scale
        self._centred = None
        self._rows[slot] = np.rint(vector / scale) if vector is not None and scale else 0

    def of(self, slot: int) -> NDArray[np.float32] | None:
        """The vector of a slot, if it has one."""
        scale = self._scales[slot]
        return self._rows[slot].astype(np.float32) * scale if scale else None

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Which slots have a vector."""
        return self._scales > 0

    def alike(self, vector: NDArray[np.float32]) -> NDArray[np.float64]:
        """The cosine of each slot with a vector, both seen from the centre of all notes.

        Notes of one vault all point into much the same direction; what tells them apart is how
        they differ from the average one. Below zero counts as nothing in common.
        """
        is_known = self.is_known
        if not is_known.any():
            return np.zeros(len(self._scales))
        centre, lengths = self._seen_from_centre()
        turned = vector - centre
        turned /= float(np.linalg.norm(turned)) or 1.0
        found = (self._times(turned) - float(centre @ turned)) / lengths
        return np.where(is_known, np.maximum(0, found), 0)

    def directions(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """Where slots lie as seen from the centre, of length 1; zeros for one without a vector."""
        if not self.is_known.any():
            return np.zeros((len(slots), self.width), dtype=np.float32)
        centre, lengths = self._seen_from_centre()
        scales = (self._scales[slots] / lengths[slots]).astype(np.float32)
        found = self._rows[slots] * scales[:, None]
        found -= (centre / lengths[slots, None]).astype(np.float32)
        found[~self.is_known[slots]] = 0
        return np.asarray(found)

    def _seen_from_centre(self) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """The average vector, and how far each slot is from it."""
        if self._centred is None:
            known = np.nonzero(self._scales > 0)[0]
            total = np.zeros(self.width, dtype=np.float64)
            for start in range(0, len(known), _ROWS_AT_ONCE):
                few = known[start : start + _ROWS_AT_ONCE]
                total += self._scales[few].astype(np.float64) @ self._rows[few].astype(np.float64)
            centre = (total / len(known)).astype(np.float32)
            squares = np.zeros(len(self._scales))
            for start in range(0, len(squares), _ROWS_AT_ONCE):
                some = slice(start, start + _ROWS_AT_ONCE)
                away = self._rows[some] * self._scales[some, None] - centre
                squares[some] = np.einsum("ij,ij->i", away, away)
            self._centred = centre, np.sqrt(np.maximum(squares, _TINY))
        return self._centred

    def _times(self, vector: NDArray[np.float32]) -> NDArray[np.float64]:
        found = np.zeros(len(self._scales))
        # The same sums for the same note, in whatever slot it is.
        high = exact_factors(vector, _HIGHEST)
        low = exact_factors(vector - high, _HIGHEST)
        # Whole numbers are multiplied slowly, and all of them as floats would fill the memory.
        for start in range(0, len(found), _ROWS_AT_ONCE):
            few = slice(start, start + _ROWS_AT_ONCE)
            numbers = self._rows[few].astype(np.float32)
            found[few] = (numbers @ high).astype(np.float64) + numbers @ low
        return found * self._scales
