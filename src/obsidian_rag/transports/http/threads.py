"""The threads that run tools: few, with a bounded queue before them."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from obsidian_rag.transports.http.answers import Refusal
from obsidian_rag.transports.http.body import until_gone

T = TypeVar("T")
_THREADS = 8
_MOST_WAITING = 256


class ToolThreads:
    """Runs synchronous work for the event loop; a client that went away is not worked for."""

    def __init__(self, threads: int = _THREADS, most_waiting: int = _MOST_WAITING) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="tool")
        self._places = threading.Semaphore(threads + most_waiting)

    async def run(self, work: Callable[[], T], receive: Receive) -> T:
        """The outcome of `work`, which waits for a free thread.

        Raises:
            Refusal: too many wait already.
            ClientDisconnect: nobody wants the outcome any more.
        """
        if not self._places.acquire(blocking=False):
            raise Refusal(
                429, "Too many requests wait already.", "Try again soon.", {"Retry-After": "1"}
            )
        future = self._executor.submit(work)
        future.add_done_callback(self._free_place)
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
        """Take no more work; what runs comes to its end by itself."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _free_place(self, _: Future[T]) -> None:
        self._places.release()
