"""What every process of ours does first: its files are its user's alone, and its memory is bounded.

The umask holds for libraries too: SQLite and LanceDB make files without asking us. The bound is the
last resort against a damaged file that makes a library ask for all the memory there is; the process
ends then, and nobody else's. Both pass on to child processes. What a process writes down of its own
failures is for bug reports, so it has no word of anybody's notes.
"""

import contextlib
import ctypes
import functools
import io
import json
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import IO

from obsidian_rag.process.child import ChildGone, ChildProcess
from obsidian_rag.process.threads import Threads

__all__ = [
    "ChildGone",
    "ChildProcess",
    "DiscreetFormatter",
    "ParentPipe",
    "Threads",
    "begin_process",
    "discreet_traceback",
    "give_back",
    "use_few_arenas",
]

_PRIVATE = 0o077
_SHARE_OF_MEMORY = 0.6
_LEAST_BYTES = 4 << 30
_ARENA_MAX = -8  # from malloc.h


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


def use_few_arenas() -> None:
    """Keep glibc from giving each thread a heap of its own, most of which would lie idle."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError, OSError):  # another C library
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)


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


class ParentPipe:
    """Speaks with the process that started this one, a JSON object per line.

    It has our stdin and stdout for itself: nobody else reads from them any more, and what
    libraries print goes to the log.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._input = os.fdopen(os.dup(0), "rb")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        self._output: IO[bytes] = io.BufferedWriter(io.FileIO(os.dup(1), "w"))
        os.dup2(2, 1)

    def messages(self) -> Iterator[dict[str, object]]:
        """What the parent says, until it has gone or says no more."""
        return (json.loads(line) for line in self._input)

    def say(self, **fields: object) -> None:
        """One line; a parent that has gone is noticed elsewhere."""
        with self._lock, contextlib.suppress(OSError):
            self._output.write(json.dumps(fields).encode() + b"\n")
            self._output.flush()
