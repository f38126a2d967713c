"""Background threads by name, each with an event that says when to end."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

_JOIN_S = 5.0


@dataclass(frozen=True, slots=True)
class _Running:
    """A thread, its event, and what makes it look at that."""

    thread: threading.Thread
    stop: threading.Event
    wake: Callable[[], None]


class Threads:
    """The threads of one owner; each can be ended apart from the others."""

    def __init__(self) -> None:
        self._running: dict[str, _Running] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._running

    def begin(
        self,
        name: str,
        run: Callable[[threading.Event], None],
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """Start a thread that runs until its event is set; `wake` makes it look at the event."""
        stop = threading.Event()
        thread = threading.Thread(target=run, args=(stop,), name=name, daemon=True)
        thread.start()
        self._running[name] = _Running(thread, stop, wake)

    def end(self, *names: str) -> None:
        """End these threads, side by side; those that are not there have ended."""
        found = [self._running.pop(name, None) for name in names]
        ending = [one for one in found if one is not None]
        for one in ending:
            one.stop.set()
            one.wake()
        for one in ending:
            one.thread.join(_JOIN_S)
