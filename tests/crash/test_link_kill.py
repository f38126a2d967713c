"""kill -9 for real while a linked vault is imported: it goes on where it was."""

import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.folders import write_notes

from obsidian_rag.config import load
from obsidian_rag.engine import Engine
from obsidian_rag.store import IndexState, Links

NOTES = 4000
KILLS = 5
# What one group of files may hold, so what a kill may cost.
GROUP = 2048


def stored(link: str) -> int:
    """How many files of a linked vault are searchable."""
    with closing(Engine(load())) as engine:
        found = next(one for one in Links(engine.database).all() if one.name == link)
        return IndexState(engine.database).total_of(found.link_id)[0]


def chunk_ids() -> list[str]:
    with closing(Engine(load())) as engine:
        return [str(row["chunk_id"]) for row in engine.chunks.table.to_arrow().to_pylist()]


def sync(*, kill_at: int | None = None) -> dict[str, Any]:
    """Sync the linked vault; with `kill_at`, kill it once so many files were handled."""
    process = subprocess.Popen(
        [sys.executable, "-m", "obsidian_rag", "link", "sync", "Stones"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    last: dict[str, Any] = {}
    for line in process.stdout:
        last = json.loads(line)
        if kill_at is not None and last.get("type") == "progress" and last["current"] >= kill_at:
            process.send_signal(signal.SIGKILL)
            break
    process.stdout.close()
    process.wait()
    return last


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_import_that_is_killed_goes_on_and_reads_no_file_twice_without_need(
    tmp_path: Path,
    make_vault: Callable[[Mapping[str, str]], Path],
    configure: Callable[[Path, Mapping[str, object]], None],
    cli: Callable[..., Any],
) -> None:
    notes = {f"{n % 40}/{n}.md": f"# Note {n}\n\nmoss and lichen number {n}" for n in range(NOTES)}
    write_notes(tmp_path / "Stones", notes)
    configure(make_vault({"Pond.md": "# Pond\n\nnewts"}), {})
    assert cli("index").code == 0
    assert cli("link", "add", str(tmp_path / "Stones"), "--background").code == 0
    chance = random.Random()
    before = 0
    for _ in range(KILLS):
        sync(kill_at=chance.randrange(NOTES // 2))
        kept = stored("Stones")
        assert kept >= before, "a kill loses nothing that was stored"
        before = kept
    last = sync()
    assert last["type"] == "complete"
    assert last["added"] + last["changed"] <= NOTES - before + GROUP, "stored files are left alone"
    assert stored("Stones") == NOTES
    ids = chunk_ids()
    assert len(ids) == len(set(ids)) == NOTES + 1
    again = sync()
    assert (again["added"], again["changed"], again["embedded_chunks"]) == (0, 0, 0)
