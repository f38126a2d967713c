"""Sums that are the same in whatever order they are added up.

Notes and terms are numbered in the order in which they came, so sums over them are added up in an
order that depends on history, and floating-point numbers would differ in their last digits. Numbers
that are rounded to multiples of a small power of two add up exactly, as whole numbers do, while
their sum has no more digits than a float holds.
"""

import math

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.errors import IndexCorrupted

_FLOAT_DIGITS, _FLOAT32_DIGITS = 52, 23


def exact(values: NDArray[np.floating], addends: int = 1) -> NDArray[np.float64]:
    """The values, rounded so little that sums of up to so many of them are exact."""
    highest = float(np.abs(values).max(initial=0)) * addends
    return _in_steps(np.asarray(values, dtype=np.float64), highest, _FLOAT_DIGITS)


def exact_factors(values: NDArray[np.float32], most: int) -> NDArray[np.float32]:
    """The values, rounded: float32 sums of their products with numbers up to `most` are exact."""
    highest = most * float(np.abs(values).sum(dtype=np.float64))
    return _in_steps(values.astype(np.float64), highest, _FLOAT32_DIGITS).astype(np.float32)


def _in_steps(values: NDArray[np.float64], highest: float, digits: int) -> NDArray[np.float64]:
    if highest == 0:
        return values
    if not math.isfinite(highest):
        # A count or a weight that no note can have: only damage makes it.
        told = "relations.db holds a number that is none."
        raise IndexCorrupted(told, "Run `obsidian-rag sync`.")
    step = 2.0 ** (digits - math.ceil(math.log2(highest)))
    rounded: NDArray[np.float64] = np.rint(values * step) / step
    return rounded
