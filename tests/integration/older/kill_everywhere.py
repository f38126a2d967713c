"""Opens an older state.db again and again, each time killed a few statements later, and checks it.

    python kill_everywhere.py state.db

It prints how many processes were killed, and fails if one of them left something else behind.
"""

import contextlib
import os
import signal
import sqlite3
import sys
from pathlib import Path

from obsidian_rag.store import Database, Links, Memory

_STEP = 3


def open_until(path: Path, most: int) -> None:
    """Open the file, and die at the statement after so many."""
    connect, left = sqlite3.connect, most

    def count(_: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def traced(*where: object, **how: object) -> sqlite3.Connection:
        made: sqlite3.Connection = connect(*where, **how)  # type: ignore[call-overload]  # as it is
        made.set_trace_callback(count)
        return made

    sqlite3.connect = traced  # type: ignore[assignment]  # its many forms
    Database(path)
    os._exit(0)


def is_killed(path: Path, most: int) -> bool:
    """Whether a child process died there."""
    child = os.fork()
    if child == 0:
        open_until(path, most)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def main(path: Path) -> int:
    """Kill everywhere; returns how often."""
    before, kills, most = path.read_bytes(), 0, 0
    while True:
        for log in path.parent.glob("state.db-*"):
            log.unlink()
        path.write_bytes(before)
        is_over = not is_killed(path, most)
        with contextlib.closing(Database(path)) as database:
            assert [fact.key for fact in Memory(database).all()] == ["plumber"], kills
            assert [link.name for link in Links(database).all()] == ["vault", "work"], kills
            assert database.check(is_deep=True) is None, kills
        if is_over:
            return kills
        kills += 1
        most += _STEP


if __name__ == "__main__":
    sys.stdout.write(str(main(Path(sys.argv[1]))))
