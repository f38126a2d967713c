"""What every process of ours does first: its files are its user's alone, and its memory is bounded.

The umask holds for libraries too: SQLite and LanceDB make files without asking us. The bound is the
last resort against a damaged file that makes a library ask for all the memory there is; the process
ends then, and nobody else's. Both pass on to child processes. What a process writes down of its own
failures is for bug reports, so it has no word of anybody's notes.
"""

import contextlib
import ctypes
import functools
import logging
import os
import traceback
from collections.abc import Callable

__all__ = ["DiscreetFormatter", "begin_process", "discreet_traceback", "give_back"]

_PRIVATE = 0o077
_SHARE_OF_MEMORY = 0.6
_LEAST_BYTES = 4 << 30


def begin_process() -> None:
    """Set the umask, and a limit to the memory that can be asked for where the system has one."""
    os.umask(_PRIVATE)
    try:
        import resource  # noqa: PLC0415  (not on Windows)
    except ImportError:
        return
    limit = memory_limit()
    with contextlib.suppress(OSError, ValueError):
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if soft == resource.RLIM_INFINITY or soft > limit:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def memory_limit() -> int:
    """How many bytes a process of ours may ask for: well above use, well below what there is."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        whole = 0
    return max(_LEAST_BYTES, int(_SHARE_OF_MEMORY * whole))


def give_back() -> None:
    """Let other processes have what ours freed; the allocator of Linux would keep it."""
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


def discreet_traceback(raised: BaseException | None) -> str:
    """Where something was raised and of what kind; its message may quote a note."""
    lines: list[str] = []
    seen: set[int] = set()
    while raised is not None and id(raised) not in seen:
        seen.add(id(raised))
        frames = "".join(traceback.format_tb(raised.__traceback__))
        code = f" [errno {raised.errno}]" if isinstance(raised, OSError) else ""
        lines.append(f"{frames}{type(raised).__name__}{code}")
        raised = raised.__cause__ or (None if raised.__suppress_context__ else raised.__context__)
    return "\nwhile handling:\n".join(lines)


class DiscreetFormatter(logging.Formatter):
    """Log lines whose tracebacks quote nothing."""

    def formatException(self, ei: object) -> str:
        """The traceback of a record."""
        assert isinstance(ei, tuple)
        return discreet_traceback(ei[1])
