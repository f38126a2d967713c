"""Interrupts: the first one ends long work tidily, the second at once."""

import signal
import threading

from obsidian_rag.transports.cli.streams import say


def stop_on_signals(what: str) -> threading.Event:
    """An event that an interrupt sets; `what` is under way and will be finished first."""
    stop = threading.Event()

    def request(number: int, _: object) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        stop.set()
        say(f"\nStopping after the {what} under way …")

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, request)
    return stop
