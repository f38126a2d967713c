"""How long tests wait for something, and how they wait where nothing tells them."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

# No bound on what we test: only what never happens takes as long, even on a busy machine.
PATIENCE_S = 300.0
# What we do within a bound, we do so once in so many times however busy the machine is.
TRIES = 10
T = TypeVar("T")


def until(found: Callable[[], T | None], what: str = "it", seconds: float = PATIENCE_S) -> T:
    """What `found` gives once it is true; asks again until then.

    For what another thread or process does without telling; wait for an event where there is one.
    """
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not (value := found()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        pause.wait(0.02)
    return value
