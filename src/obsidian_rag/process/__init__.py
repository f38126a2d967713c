"""Set-up of each of our processes: private files, bounded memory, and logs without note text.

The umask also covers libraries: SQLite and LanceDB create files themselves. The memory limit is the
last resort against a damaged file that makes a library allocate all memory: then only this process
ends. Child processes inherit both. Logged failures end up in bug reports, so they never quote a
note.
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

from obsidian_rag.process.child import ChildGone, ChildProcess, Threads

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

_UMASK = 0o077
_MEMORY_SHARE = 0.6
_MIN_LIMIT_BYTES = 4 << 30
_ARENA_MAX = -8  # from malloc.h


def begin_process() -> None:
    """Set the umask and, where the system supports it, the memory limit."""
    os.umask(_UMASK)
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
    """How many bytes one process may allocate: well above use, well below the machine's memory."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        whole = 0
    return max(_MIN_LIMIT_BYTES, int(_MEMORY_SHARE * whole))


def use_few_arenas() -> None:
    """Keep glibc from giving each thread its own heap, which would be mostly idle."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError, OSError):  # another C library
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)


def give_back() -> None:
    """Return freed memory to the system; glibc would keep it."""
    trim = _find_malloc_trim()
    if trim is not None:
        trim(0)


@functools.cache
def _find_malloc_trim() -> Callable[[int], int] | None:
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, TypeError, AttributeError):
        return None  # not glibc
    return found


def discreet_traceback(raised: BaseException | None) -> str:
    """The traceback and exception types, without messages: those may quote a note."""
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
    """Formats log records with tracebacks that quote nothing."""

    def formatException(self, ei: object) -> str:
        """The traceback of a record."""
        assert isinstance(ei, tuple)
        return discreet_traceback(ei[1])


class ParentPipe:
    """The child's end of the pipe to its parent: one JSON object per line.

    It takes over stdin and stdout: nothing else can read from them, and what libraries print goes
    to the log.
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
        """The parent's messages, until it closes the pipe."""
        return (json.loads(line) for line in self._input)

    def say(self, **fields: object) -> None:
        """Send one message; a parent that has ended is noticed elsewhere."""
        with self._lock, contextlib.suppress(OSError):
            self._output.write(json.dumps(fields).encode() + b"\n")
            self._output.flush()
