"""When a daemon ends by itself: nobody needs it, or the program it was started for is gone."""

import contextlib
from collections.abc import Callable

import psutil

from obsidian_rag.transports.http.activity import Activity

# A reason to end, or None to stay; asked about once a second.
Reason = Callable[[], str | None]


def idle_reason(activity: Activity, is_working: Callable[[], bool], most_s: float) -> Reason:
    """End after so long without a request or a running job."""

    def reason() -> str | None:
        if is_working():
            activity.note_use()
            return None
        return f"nobody asked for {most_s:g} s" if activity.idle_s > most_s else None

    return reason


def parent_reason(pid: int) -> Reason:
    """End when a process has ended; another one that gets its number does not count."""
    process: psutil.Process | None = None
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)

    def reason() -> str | None:
        return None if process is not None and _is_alive(process) else f"process {pid} is gone"

    return reason


def _is_alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
