"""One writer at a time, across processes and across their deaths."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from obsidian_rag.errors import Busy
from obsidian_rag.store import writer_lock

HOLD = """
import sys
from pathlib import Path
from obsidian_rag.store import writer_lock
with writer_lock(Path(sys.argv[1]), "reindex"):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_elsewhere(home: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds the lock until its stdin is closed."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder


def test_a_second_process_is_told_who_is_writing(home: Path) -> None:
    with held_elsewhere(home) as holder:
        with pytest.raises(Busy) as caught, writer_lock(home, "sync"):
            pass
        assert f"process {holder.pid}, reindex since 2" in caught.value.message
    with writer_lock(home, "sync"):
        assert f'"pid": {os.getpid()}' in (home / "writer.json").read_text()
    assert not (home / "writer.json").exists()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_the_lock_of_a_killed_process_is_free(home: Path) -> None:
    with held_elsewhere(home) as holder:
        holder.kill()
        holder.wait()
        assert (home / "writer.json").exists()
        with writer_lock(home, "sync"):
            pass


def test_the_lock_is_let_go_when_the_work_fails(home: Path) -> None:
    with pytest.raises(ZeroDivisionError), writer_lock(home, "sync"):
        _ = 1 / 0
    with writer_lock(home, "sync"):
        pass


def test_a_torn_note_about_the_holder_does_not_hide_that_it_is_busy(home: Path) -> None:
    for torn in ('{"pid": ', "[]", '{"pid": 1, "task": "sync", "since": 7}', ""):
        with writer_lock(home, "sync"):
            (home / "writer.json").write_text(torn)
            with pytest.raises(Busy), writer_lock(home, "sync"):
                pass
