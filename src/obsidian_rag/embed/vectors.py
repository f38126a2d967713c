"""Arithmetic on rows of vectors, the same for every embedder."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def unit_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale each row to length one, in place; rows without a direction get a fixed one.

    Each row is treated alone, so its result cannot depend on its neighbours.
    """
    for row in rows:
        length = float(np.sqrt(np.dot(row, row)))
        if length > 0 and np.isfinite(length):
            row /= length
        else:
            row[:] = 0
            row[0] = 1
    return rows


def weighted_mean(
    rows: Sequence[NDArray[np.float32]], weights: Sequence[float]
) -> NDArray[np.float32]:
    """The mean of vectors, in double precision."""
    mean = np.average(np.asarray(rows, dtype=np.float64), axis=0, weights=weights)
    return mean.astype(np.float32)


def encodable(text: str) -> str:
    """`text` with lone surrogates replaced: they have no UTF-8 form and break tokenizers."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
