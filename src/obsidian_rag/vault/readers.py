"""Child processes that read and parse files while this one works on the results.

Parsing is pure Python and holds the interpreter lock, so many files are read in other processes.
The readers exchange pickles over pipes and exit when their pipe closes, whatever closed it. If one
dies, this process does its work.
"""

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar, cast

from obsidian_rag.vault.ahead import Ahead

S = TypeVar("S")
R = TypeVar("R")
A = TypeVar("A")
# Called with a source, it returns a function that answers requests.
Make = Callable[[S], Callable[[R], A]]

# Below this many files, starting a process takes longer than reading.
WORTH_A_PROCESS = 300
_REQUESTS_AHEAD = 3
_MAX_READERS = 4
# Not `-m`: the classes must be this module's, not those of a module called __main__.
_PROGRAM = "from obsidian_rag.vault.readers import serve; serve()"


def read_beside(make: Make[S, R, A], source: S, requests: Sequence[R], ahead: int) -> Iterator[A]:
    """The answers to all requests in their order, up to `ahead` of them before they are needed.

    `make` is a class or function of a module, so that the other processes find it too.
    """
    # A pipe buffers little: a thread drains it, or the readers would block.
    with Ahead(_answers(make, source, requests), ahead) as answers:
        yield from answers


def _answers(make: Make[S, R, A], source: S, requests: Sequence[R]) -> Iterator[A]:
    left = iter(requests)
    readers = [_Reader(make, source) for _ in range(_reader_count())]
    waiting: deque[tuple[_Reader[S, R, A], R]] = deque()
    try:
        for turn, request in enumerate(islice(left, len(readers) * _REQUESTS_AHEAD)):
            reader = readers[turn % len(readers)]
            reader.ask(request)
            waiting.append((reader, request))
        while waiting:
            reader, asked = waiting.popleft()
            found = reader.answer(asked)
            for request in islice(left, 1):
                reader.ask(request)
                waiting.append((reader, request))
            yield found
    finally:
        for reader in readers:
            reader.close()


def _reader_count() -> int:
    # One core is for this process.
    return max(1, min((os.cpu_count() or 2) - 1, _MAX_READERS))


class _Reader(Generic[S, R, A]):
    """A reader process; if it dies, this process answers instead."""

    def __init__(self, make: Make[S, R, A], source: S) -> None:
        self._make = make
        self._source = source
        self._fallback: Callable[[R], A] | None = None
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._is_alive = True
        self._send((make, source))

    def ask(self, request: R) -> None:
        """Send a request."""
        self._send(request)

    def answer(self, request: R) -> A:
        """The answer to the oldest open request; `request` must be that one."""
        if self._is_alive:
            try:
                assert self._process.stdout is not None
                return cast("A", pickle.load(self._process.stdout))
            except (EOFError, pickle.UnpicklingError, OSError):
                self._is_alive = False
        if self._fallback is None:
            self._fallback = self._make(self._source)
        return self._fallback(request)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _send(self, message: object) -> None:
        if self._is_alive:
            try:
                assert self._process.stdin is not None
                pickle.dump(message, self._process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
                self._process.stdin.flush()
            except OSError:
                self._is_alive = False


def serve() -> None:
    """Answer requests on the standard pipes until they close."""
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    try:
        make, source = pickle.load(incoming)
        answer = make(source)
        while True:
            found = answer(pickle.load(incoming))
            pickle.dump(found, outgoing, protocol=pickle.HIGHEST_PROTOCOL)
            outgoing.flush()
    except (EOFError, OSError, KeyboardInterrupt):
        return
