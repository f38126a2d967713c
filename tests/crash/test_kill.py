"""kill -9 for real, at ten moments spread over an index run of the installed command."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.waiting import until

from obsidian_rag.config import load
from obsidian_rag.engine import Engine

NOTES = 1500
KILLS = 10


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = [f"{first}{second}" for first in "bcdfgklmnp" for second in ("ara", "elo", "in", "us")]
    chance = random.Random(7)
    root = tmp_path_factory.mktemp("vault")
    for number in range(NOTES):
        sections = "\n\n".join(
            f"## {chance.choice(words)}\n\n" + " ".join(chance.choices(words, k=80))
            for _ in range(4)
        )
        path = root / f"folder{number % 20}" / f"note{number}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# Note {number}\n\n{sections}\n")
    return root


def start(home: Path, vault: Path, command: str) -> "subprocess.Popen[str]":
    home.mkdir(exist_ok=True)
    (home / "config.json").write_text(json.dumps({"vault_path": str(vault)}))
    environment = {**os.environ, "OBSIDIAN_RAG_HOME": str(home)}
    return subprocess.Popen(
        [sys.executable, "-m", "obsidian_rag", command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def contents(home: Path) -> list[tuple[Any, ...]]:
    engine = Engine(load(environ={"OBSIDIAN_RAG_HOME": str(home)}))
    rows = engine.chunks.table.to_arrow().to_pylist()
    engine.close()
    return sorted(
        (row["source_file"], row["chunk_index"], row["chunk_text"], row["vector"]) for row in rows
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_index_killed_at_ten_random_points_is_completed_by_sync(
    tmp_path: Path, vault: Path
) -> None:
    begun = time.monotonic()
    clean = start(tmp_path / "clean", vault, "index")
    clean.communicate()
    took = time.monotonic() - begun
    expected = contents(tmp_path / "clean")
    assert clean.returncode == 0
    chance = random.Random()
    for number in range(KILLS):
        home = tmp_path / f"home{number}"
        # At least one kill in every tenth of the run, start-up included.
        after = took * (number + chance.random()) / KILLS
        process = start(home, vault, "index")
        try:
            process.wait(timeout=after)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        healed = start(home, vault, "sync")
        output, errors = healed.communicate()
        assert (healed.returncode, errors) == (0, ""), f"killed after {after:.2f} s"
        assert json.loads(output.splitlines()[-1])["indexed_files"] == NOTES
        assert contents(home) == expected, f"killed after {after:.2f} s"


@pytest.mark.slow
def test_reader_processes_end_with_the_process_they_serve(tmp_path: Path, vault: Path) -> None:
    process = start(tmp_path / "home", vault, "index")
    assert process.stdout is not None
    for line in process.stdout:
        if '"parsing"' in line:
            break
    readers = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert readers
    until(lambda: not any(is_running(pid) for pid in readers), "the end of the readers")


def children(parent: int) -> list[int]:
    return [child.pid for child in psutil.Process(parent).children()]


def is_running(pid: int) -> bool:
    return bool(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie")
