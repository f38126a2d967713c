"""kill -9 for real, at twenty moments of the background pass: nothing lost, nothing doubled."""

import random
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from tests.engine.transformers import assert_complete, install, words
from tests.integration.living import QUICK, Living, living

from obsidian_rag.config import load
from obsidian_rag.engine import Engine

NOTES = 500
KILLS = 20
WORK = 8


@pytest.fixture
def vault(
    tmp_path: Path, home: Path, configure: Callable[[Path, Mapping[str, object]], None]
) -> Path:
    root = tmp_path / "vault"
    root.mkdir()
    for number in range(NOTES):
        (root / f"n{number}.md").write_text(f"# Note {number}\n\n{words(number)}\n")
    configure(root, QUICK)
    install(home, work=WORK)
    return root


def killed(daemon: Living, seed: int, home: Path, chance: random.Random) -> None:
    """Kill the worker somewhere in the first second or two of its pass.

    Every second time not before it has added something: one that dies again and again without that
    is started anew ever later.
    """
    told = daemon.wait_for("progress", phase="meaning")
    done = told["current"]
    while seed % 2 and not told["is_over"] and told["current"] <= done:
        told = daemon.wait_for("progress", phase="meaning")
    if told["is_over"]:  # a fast machine: begin anew, with another model
        install(home, seed=seed, work=WORK)
        daemon.index("sync")
        daemon.wait_for("progress", phase="meaning", is_over=False)
    worker = daemon.worker()
    threading.Event().wait(chance.random())
    worker.kill()
    worker.wait()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_pass_killed_at_twenty_random_points_loses_and_doubles_no_vector(
    vault: Path, home: Path
) -> None:
    chance = random.Random()
    with living() as daemon:
        daemon.index()
        for number in range(KILLS):
            killed(daemon, number + 1, home, chance)
            assert daemon.search("the river of money"), f"no answer after kill {number + 1}"
            meaning = daemon.call("status")["data"]["meaning"]
            assert 0 <= meaning["done"] <= meaning["total"] == NOTES
        daemon.wait_for("progress", phase="meaning", is_over=True, current=NOTES)
        assert daemon.search("the river of money")
    with closing(Engine(load(environ={"OBSIDIAN_RAG_HOME": str(home)}))) as engine:
        assert_complete(engine)
        assert [file.name for file in (home / "meaning").glob("*.part")] == []
