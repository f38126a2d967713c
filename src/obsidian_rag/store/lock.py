"""One writer at a time, across processes; the lock is released even if its holder crashes."""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from obsidian_rag.errors import Busy, ReadOnly
from obsidian_rag.store.database import now
from obsidian_rag.store.folder import own_folder


@contextlib.contextmanager
def hold_lock(
    file: Path, wait_s: float, busy: Callable[[], Busy], suggestion: str
) -> Iterator[None]:
    """Hold a lock in the data folder; `suggestion` goes with the ReadOnly error.

    Raises:
        Busy: another process holds it; `busy` makes the error.
        ReadOnly: the data folder is not writable.
    """
    own_folder(file.parent)
    lock = FileLock(file)
    try:
        lock.acquire(timeout=wait_s)
    except Timeout:
        raise busy() from None
    except OSError as error:
        raise ReadOnly(
            f"The data folder {file.parent} is not writable ({error.strerror}).", suggestion
        ) from error
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def writer_lock(home: Path, task: str, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the lock for changing the index; wait up to `wait_s` for another process.

    Raises:
        Busy: another process holds it.
        ReadOnly: the data folder is not writable.
    """
    holder = home / "writer.json"

    def busy() -> Busy:
        return Busy(
            f"Another obsidian-rag process is writing the index{_holder(holder)}.",
            "Wait for it to finish, or stop it, then run the command again.",
        )

    suggestion = "Make it writable to index; searching still works."
    with hold_lock(home / "writer.lock", wait_s, busy, suggestion):
        try:
            with contextlib.suppress(OSError):  # on a full disk the lock still holds
                holder.write_text(json.dumps({"pid": os.getpid(), "task": task, "since": now()}))
            yield
        finally:
            with contextlib.suppress(OSError):
                holder.unlink(missing_ok=True)


def _holder(file: Path) -> str:
    try:
        found = json.loads(file.read_text())
        return f" (process {found['pid']}, {found['task']} since {found['since'][:19]}Z)"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
