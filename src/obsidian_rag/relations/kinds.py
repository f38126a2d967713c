"""The two kinds of vectors that a note can have, and how each is kept."""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

_HIGHEST = 127


class Kind(StrEnum):
    """By whom a vector was made; the value is its column."""

    STATIC = "vector"
    MEANING = "meaning"

    @property
    def word(self) -> str:
        """As people are told of it."""
        return "static" if self is Kind.STATIC else "meaning"

    def pack(self, vector: NDArray[np.floating]) -> bytes | None:
        """The bytes of a vector, brought to length one; None if it has no direction."""
        length = float(np.linalg.norm(vector))
        if not 0 < length < np.inf:
            return None
        if self is Kind.STATIC:
            halves: NDArray[np.float16] = (vector / length).astype(np.float16)
            return halves.tobytes()
        # One byte per number says enough of a direction; its length is one anyway.
        step = float(np.abs(vector).max()) / _HIGHEST
        numbers: NDArray[np.int8] = np.rint(vector / step).astype(np.int8)
        return numbers.tobytes()

    def unpack(self, data: bytes) -> NDArray[np.float32]:
        """A vector as it was packed; an empty one of no bytes.

        Raises:
            ValueError: these bytes are no vector.
        """
        if self is Kind.STATIC or not data:
            vector = np.frombuffer(data, np.float16).astype(np.float32)
        else:
            vector = np.frombuffer(data, np.int8).astype(np.float32)
            vector /= float(np.linalg.norm(vector)) or np.nan
        if not np.isfinite(vector).all():
            raise ValueError("a vector has a number that is none")
        return vector
