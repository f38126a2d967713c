"""Give back memory that is free: the allocator of Linux keeps it for its process otherwise."""

import ctypes
import functools
from collections.abc import Callable


def give_back() -> None:
    """Let other processes have what ours freed; takes about a millisecond."""
    trim = _trim()
    if trim is not None:
        trim(0)


@functools.cache
def _trim() -> Callable[[int], int] | None:
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, TypeError, AttributeError):
        return None  # another system, which has other ways
    return found
