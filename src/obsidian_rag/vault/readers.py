"""Work ahead of the consumer: an iterator in a thread, and many files in child processes.

Parsing is pure Python and holds the interpreter lock, so many files are read in other processes.
These readers exchange pickles over pipes and exit when their pipe closes, whatever closed it. If
one dies, this process does its work.
"""

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar, cast

T = TypeVar("T")
S = TypeVar("S")
R = TypeVar("R")
A = TypeVar("A")
# Called with a source, it returns a function that answers requests.
Make = Callable[[S], Callable[[R], A]]

# Below this many files, starting a process takes longer than reading.
WORTH_A_PROCESS = 300
# How often a blocked thread checks whether to stop.
_CHECK_INTERVAL_S = 0.02
_REQUESTS_AHEAD = 3
_MAX_READERS = 4
# Not `-m`: the classes must be this module's, not those of a module called __main__.
_PROGRAM = "from obsidian_rag.vault.readers import serve; serve()"


@dataclass(frozen=True, slots=True)
class _Ended:
    error: BaseException | None


class Ahead(Generic[T]):
    """Iterate with `with Ahead(...) as items`: leaving the block stops and joins the thread.

    The iteration ends early when `stop` returns true, also while it waits for an item.
    """

    def __init__(
        self, items: Iterator[T], depth: int, stop: Callable[[], bool] | None = None
    ) -> None:
        self._stop = stop
        self._items = items
        self._ready: queue.Queue[T | _Ended] = queue.Queue(maxsize=depth)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._fill, daemon=True)

    def __enter__(self) -> Iterator[T]:
        self._thread.start()
        return self._drain()

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        while self._thread.is_alive():
            # The thread may be blocked by a full queue: drain it until the thread ends.
            try:
                self._ready.get(timeout=_CHECK_INTERVAL_S)
            except queue.Empty:
                continue
        self._thread.join()

    def _fill(self) -> None:
        error: BaseException | None = None
        try:
            for item in self._items:
                self._ready.put(item)
                if self._closed.is_set():
                    return
        except BaseException as caught:  # noqa: BLE001  (handed to the consumer, who raises it)
            error = caught
        finally:
            if isinstance(self._items, Generator):
                self._items.close()
        self._ready.put(_Ended(error))

    def _drain(self) -> Iterator[T]:
        while (item := self._next()) is not None:
            if isinstance(item, _Ended):
                if item.error is not None:
                    raise item.error
                return
            yield item

    def _next(self) -> T | _Ended | None:
        if self._stop is None:
            return self._ready.get()
        while not self._stop():
            try:
                item = self._ready.get(timeout=_CHECK_INTERVAL_S)
            except queue.Empty:
                continue
            return None if self._stop() else item
        return None


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
