"""The threads that run tools: a small pool with a bounded queue."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import psutil
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from obsidian_rag.transports.http.messages import Refusal, until_gone


class Activity:
    """When the door was last used; listening to events and asking for health do not count."""

    def __init__(self) -> None:
        self._clients: dict[int, psutil.Process] = {}
        self._under_way = 0
        self._at = time.monotonic()

    def __enter__(self) -> None:
        self._under_way += 1

    def __exit__(self, *_: object) -> None:
        self._under_way -= 1
        self.note_use()

    def note_use(self) -> None:
        """Record a use now."""
        self._at = time.monotonic()

    def note_client(self, pid: int) -> None:
        """Record the process of a connected client, which counts as a use while it lives."""
        if pid not in self._clients:
            with contextlib.suppress(psutil.NoSuchProcess, ValueError, OverflowError):
                self._clients[pid] = psutil.Process(pid)

    @property
    def has_clients(self) -> bool:
        """Whether one of them lives; processes that reuse an id do not count."""
        self._clients = {pid: one for pid, one in self._clients.items() if is_alive(one)}
        return bool(self._clients)

    @property
    def idle_s(self) -> float:
        """How long it has not been used."""
        return 0 if self._under_way else time.monotonic() - self._at


def is_alive(process: psutil.Process) -> bool:
    """Whether a process still runs; a zombie does not."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


T = TypeVar("T")
_THREADS = 8
_MAX_QUEUED = 256


class ToolThreads:
    """Runs synchronous work for the event loop, unless the client has disconnected."""

    def __init__(self, threads: int = _THREADS, most_waiting: int = _MAX_QUEUED) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="tool")
        self._slots = threading.Semaphore(threads + most_waiting)

    async def run(self, work: Callable[[], T], receive: Receive) -> T:
        """Run `work` in the next free thread and return its result.

        Raises:
            Refusal: the queue is full.
            ClientDisconnect: the client has disconnected.
        """
        if not self._slots.acquire(blocking=False):
            raise Refusal(
                429, "Too many requests wait already.", "Try again soon.", {"Retry-After": "1"}
            )
        future = self._executor.submit(work)
        future.add_done_callback(self._free_slot)
        outcome = asyncio.wrap_future(future)
        gone = asyncio.create_task(until_gone(receive))
        try:
            await asyncio.wait((outcome, gone), return_when=asyncio.FIRST_COMPLETED)
            if not outcome.done():
                raise ClientDisconnect
            return outcome.result()
        finally:
            gone.cancel()
            outcome.cancel()

    def close(self) -> None:
        """Accept no more work; running work finishes by itself."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _free_slot(self, _: Future[T]) -> None:
        self._slots.release()
