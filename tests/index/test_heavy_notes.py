"""One note with thousands of tags, links, headings, code blocks or properties stops nothing.

Work is counted, not timed: calls of functions, and rows that are left in the databases.
"""

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.index.conftest import World

SMALL: dict[str, str | bytes] = {"Pond.md": "# Pond\n\nStill water with reeds.\n"}


def _lines(template: str, amount: int) -> str:
    return "".join(template.format(number) for number in range(amount))


NOTES: dict[str, tuple[int, Callable[[int], str]]] = {
    "tags": (10_000, lambda n: "---\ntags:\n" + _lines("  - tag{}\n", n) + "---\ntext\n"),
    "inline tags": (10_000, lambda n: _lines("#tag{} ", n)),
    "links": (50_000, lambda n: _lines("[[Note {}]]\n", n)),
    "code blocks": (10_000, lambda n: _lines("```\ncode{}\n```\n", n)),
    "headings": (10_000, lambda n: _lines("# Heading {0}\n\ntext {0}\n\n", n)),
    "properties": (10_000, lambda n: "---\n" + _lines("key{0}: value {0}\n", n) + "---\ntext\n"),
}


def _work_of(world: "World", text: str) -> int:
    """How many functions are called to index this note, and how many rows it leaves in SQLite."""
    calls = count()
    world.write({"Heavy.md": text})

    def profile(_frame: object, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            next(calls)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        result = world.run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert result.tally.errors == []
    return next(calls) + _rows(world.home)


def _rows(folder: Path) -> int:
    amount = 0
    for file in folder.rglob("*.db"):
        with sqlite3.connect(file) as database:
            tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            for (name,) in tables.fetchall():
                amount += database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
        database.close()
    return amount


@pytest.mark.parametrize("kind", NOTES)
def test_the_work_for_a_heavy_note_grows_with_its_size_and_no_faster(
    world: "World", kind: str
) -> None:
    most, write = NOTES[kind]
    world.write(SMALL)
    world.run()
    half = _work_of(world, write(most // 20))
    whole = _work_of(world, write(most // 10))
    assert whole < 2.2 * half


@pytest.mark.parametrize("kind", NOTES)
def test_a_heavy_note_takes_at_most_twice_the_memory_of_a_small_one(
    world: "World", kind: str
) -> None:
    most, write = NOTES[kind]
    world.write(SMALL)
    before = _memory_of_a_sync(world)
    world.write({"Heavy.md": write(most)})
    assert _memory_of_a_sync(world) < 2 * before
    assert {"Heavy.md", "Pond.md"} == {path for path, _ in world.texts()}


def _memory_of_a_sync(world: "World") -> int:
    """The most memory that a process of its own had at once, as the system counts it."""
    world.engine().close()
    environment = {**os.environ, "OBSIDIAN_RAG_HOME": str(world.home)}
    command = [sys.executable, "-m", "obsidian_rag", "sync"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss
