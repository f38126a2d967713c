"""Worker killed, daemon killed, disk full: nothing is lost, all heals, the user is told."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.integration.living import QUICK, Configure, Living, living, wait_until_gone
from tests.transports.command_line import COMMAND, in_another_process
from tests.waiting import PATIENCE_S

from obsidian_rag.config import load
from obsidian_rag.engine import Engine

NOTES = 900


@pytest.fixture
def vault(tmp_path: Path, configure: Configure) -> Path:
    root = tmp_path / "vault"
    for number in range(NOTES):
        file = root / f"folder{number % 9}" / f"note{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        body = "\n\n".join(f"## Part {part}\n\n{f'w{number}x{part} ' * 60}" for part in range(4))
        file.write_text(f"# Note {number}\n\n{body}\n")
    configure(root, QUICK)
    return root


def contents(home: Path) -> list[tuple[Any, ...]]:
    engine = Engine(load(environ={"OBSIDIAN_RAG_HOME": str(home)}))
    rows = engine.chunks.table.to_arrow().to_pylist()
    engine.close()
    return sorted((row["source_file"], row["chunk_index"], row["chunk_text"]) for row in rows)


def expected(vault: Path, home: Path, tmp_path: Path) -> list[tuple[Any, ...]]:
    clean = tmp_path / "clean"
    clean.mkdir()
    (clean / "config.json").write_bytes((home / "config.json").read_bytes())
    done = subprocess.run(
        [*COMMAND, "index"],
        env={**os.environ, "OBSIDIAN_RAG_HOME": str(clean)},
        capture_output=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0
    return contents(clean)


def started(daemon: Living) -> str:
    """A full index that is in the middle of its work."""
    job_id = str(daemon.call("index", mode="full")["data"]["job_id"])
    daemon.wait_for("progress", job_id=job_id, phase="embedding")
    return job_id


@pytest.mark.slow
def test_a_worker_killed_once_is_restarted_and_its_job_repeated(
    vault: Path, home: Path, tmp_path: Path
) -> None:
    with living() as daemon:
        job_id = started(daemon)
        worker = daemon.worker()
        worker.kill()
        ended = daemon.wait_for("job", id=job_id, status="completed")
        assert ended["attempt"] == 2
        assert daemon.worker().pid != worker.pid
        assert daemon.call("status")["status"] == "healthy"
    assert contents(home) == expected(vault, home, tmp_path)


@pytest.mark.slow
def test_a_worker_killed_twice_fails_the_job_and_the_next_one_heals(
    vault: Path, home: Path, tmp_path: Path
) -> None:
    with living() as daemon:
        job_id = started(daemon)
        daemon.worker().kill()
        daemon.wait_for("job", id=job_id, attempt=2)
        daemon.wait_for("progress", job_id=job_id)
        daemon.worker().kill()
        failed = daemon.wait_for("job", id=job_id, status="failed")
        assert failed["error"]["code"] == "INDEXER_FAILED"
        while (told := daemon.call("status"))["data"]["active_job"] is not None:
            daemon.wait_for("job")
        assert told["error"]["code"] in ("INDEXER_FAILED", "INDEX_NOT_FOUND")
        daemon.index("sync")
        assert daemon.call("status")["status"] == "healthy"
    assert contents(home) == expected(vault, home, tmp_path)


@pytest.mark.slow
def test_a_killed_daemon_leaves_no_process_and_the_next_one_takes_over(
    vault: Path, home: Path, tmp_path: Path
) -> None:
    with living() as daemon:
        started(daemon)
        family = [one.pid for one in psutil.Process(daemon.process.pid).children(recursive=True)]
        daemon.stop(signal.SIGKILL)
        wait_until_gone(family)
    assert (home / "daemon.json").exists()
    # The stale file misleads nobody: commands work by themselves.
    assert in_another_process("status", "--json").json["data"]["is_watching"] is None
    with living() as daemon:
        daemon.index("sync")
        assert daemon.search("w77x1")[0] == "folder5/note77.md"
    assert not (home / "daemon.json").exists()
    assert contents(home) == expected(vault, home, tmp_path)


@pytest.fixture
def small_disk(home: Path) -> Iterator[Path]:
    """The data folder on a disk of its own, of 24 MB."""
    home.mkdir(exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(home)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("a disk of its own needs the right to mount one")
    yield home
    subprocess.run(["umount", "-l", str(home)], check=True)


@pytest.mark.slow
def test_a_full_disk_during_a_sync_is_told_and_made_up_for(
    small_disk: Path, tmp_path: Path, configure: Configure
) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    (root / "First.md").write_text("# First\nalpha\n")
    configure(root, QUICK)
    with living() as daemon:
        daemon.index()
        filler = small_disk / "filler"
        with pytest.raises(OSError), filler.open("wb") as stream:
            while True:
                stream.write(b"x" * 65536)
                stream.flush()
        for number in range(300):
            (root / f"New {number}.md").write_text(f"# New {number}\n" + f"beta{number} " * 400)
        failed = daemon.wait_for("job", status="failed")
        assert failed["error"]["code"] == "INDEXER_FAILED"
        told = daemon.call("status")
        assert (told["status"], told["error"]["code"]) == ("unavailable", "INDEXER_FAILED")
        assert "First.md" in daemon.search("alpha")
        filler.unlink()
        while daemon.call("status")["data"]["total_docs"] < 301:
            daemon.wait_for("job", status="completed")
        assert daemon.search("beta123")[0] == "New 123.md"
