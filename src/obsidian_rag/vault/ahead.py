"""Run an iterator ahead of its consumer, in a thread, by a bounded number of steps."""

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
# How often a blocked thread checks whether to stop.
_CHECK_INTERVAL_S = 0.02


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
