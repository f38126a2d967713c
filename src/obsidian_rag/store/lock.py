"""One writer at a time, across processes; the lock dies with its holder, however that ends."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from obsidian_rag.errors import Busy
from obsidian_rag.store.database import now


@contextlib.contextmanager
def writer_lock(home: Path, task: str) -> Iterator[None]:
    """Hold the right to change the index.

    Raises:
        Busy: another process holds it.
    """
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    holder = home / "writer.json"
    lock = FileLock(home / "writer.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise Busy(
            f"Another obsidian-rag process is writing the index{_holder(holder)}.",
            "Wait for it to finish, or stop it, then run the command again.",
        ) from None
    try:
        with contextlib.suppress(OSError):  # on a full disk the lock still holds
            holder.write_text(json.dumps({"pid": os.getpid(), "task": task, "since": now()}))
        yield
    finally:
        with contextlib.suppress(OSError):
            holder.unlink(missing_ok=True)
        lock.release()


def _holder(file: Path) -> str:
    try:
        found = json.loads(file.read_text())
        return f" (process {found['pid']}, {found['task']} since {found['since'][:19]}Z)"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
