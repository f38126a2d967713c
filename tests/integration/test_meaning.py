"""Meaning vectors in a living installation: added by themselves, told, waited for, paused."""

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.engine.transformers import assert_complete, install, words
from tests.integration.living import QUICK, Cli, Living, living
from tests.transports.command_line import Done

from obsidian_rag import config
from obsidian_rag.engine import Engine

Configure = Callable[[Path, Mapping[str, object]], None]
NOTES = 120


@pytest.fixture
def vault(tmp_path: Path, home: Path, configure: Configure) -> Path:
    root = tmp_path / "vault"
    root.mkdir()
    for number in range(NOTES):
        (root / f"n{number}.md").write_text(f"# Note {number}\n\n{words(number)}\n")
    configure(root, QUICK)
    return root


def assert_all_there() -> None:
    with closing(Engine(config.load())) as engine:
        assert_complete(engine)


def over(daemon: Living) -> dict[str, Any]:
    return daemon.wait_for("progress", phase="meaning", is_over=True)


def meaning(daemon: Living) -> Any:
    return daemon.call("status")["data"]["meaning"]


def test_a_daemon_adds_them_by_itself_and_tells_how_far_it_is(
    vault: Path, home: Path, cli: Cli
) -> None:
    install(home, work=1)
    with living() as daemon:
        daemon.index()
        told = over(daemon)
        assert (told["current"], told["total"], told["trouble"]) == (NOTES, NOTES, None)
        assert meaning(daemon) == {
            "model": "minilm",
            "done": NOTES,
            "total": NOTES,
            "is_paused": False,
            "per_second": None,
            "seconds_left": None,
            "trouble": None,
        }
        steps = [data for kind, data in daemon.events if data.get("phase") == "meaning"]
        counts = [step["current"] for step in steps]
        assert counts == sorted(counts)
        assert all(step["job_id"] is None for step in steps)
        # An edit is a job, and the pass follows it.
        (vault / "n3.md").write_text("# Note 3\n\nthe puppy and the money\n")
        job = daemon.wait_for("job", mode="sync", status="completed")
        assert job["result"]["changed"] == 1
        ended = daemon.wait_for("progress", phase="meaning", is_over=True, after_job=job["id"])
        assert ended["current"] == NOTES
        # Asking to wait when there is nothing to wait for.
        done = cli("sync", "--deep-vectors", "--json")
        assert (done.code, done.json["data"]["meaning"]["done"]) == (0, NOTES)
    assert_all_there()


@pytest.mark.slow
def test_a_job_interrupts_the_pass_which_goes_on_afterwards(vault: Path, home: Path) -> None:
    install(home, work=8)
    with living() as daemon:
        daemon.index()
        daemon.wait_for("progress", phase="meaning", is_over=False)
        (vault / "new.md").write_text("# New\n\nthe river of money\n")
        ended = daemon.index("sync")
        assert ended["result"]["errors"] == []
        before = meaning(daemon)
        assert before["done"] < before["total"], "the pass was over before the job came"
        assert daemon.search("river of money")
        assert over(daemon)["current"] == NOTES + 1
    assert_all_there()


@pytest.mark.slow
def test_a_worker_that_dies_in_the_pass_is_started_anew(vault: Path, home: Path) -> None:
    install(home, work=8)
    with living() as daemon:
        daemon.index()
        daemon.wait_for("progress", phase="meaning", is_over=False)
        worker = daemon.worker()
        worker.kill()
        assert over(daemon)["current"] == NOTES
        assert daemon.worker().pid != worker.pid
    assert_all_there()


def test_a_pause_and_a_new_model_are_taken_up_while_it_lives(
    vault: Path, home: Path, configure: Configure, cli: Cli
) -> None:
    install(home)
    configure(vault, {**QUICK, "meaning.paused": True})
    with living() as daemon:
        daemon.index()
        told = over(daemon)
        assert (told["current"], told["is_paused"]) == (0, True)
        assert cli("sync", "--deep-vectors").code == 1
        configure(vault, QUICK)
        assert daemon.wait_for("progress", phase="meaning", current=NOTES)["is_paused"] is False
        install(home, seed=3)
        daemon.index("sync")
        daemon.wait_for("progress", phase="meaning", is_over=False)
        assert over(daemon)["current"] == NOTES
        assert len(list((home / "meaning").glob("*.vectors"))) == 1
    assert_all_there()


def steps(done: Done) -> list[Any]:
    return [json.loads(line) for line in done.out.splitlines()]


def test_without_a_daemon_a_command_waits_for_them(vault: Path, home: Path, cli: Cli) -> None:
    plain = cli("index", "--json")
    assert plain.json["data"]["meaning"] is None
    assert cli("sync", "--deep-vectors").code == 1
    install(home)
    plain = cli("sync", "--json")
    assert (plain.code, plain.json["data"]["meaning"]["done"]) == (0, 0)
    waited = cli("sync", "--deep-vectors")
    assert waited.code == 0
    *progress, complete = steps(waited)
    assert complete["meaning"]["done"] == complete["meaning"]["total"] == NOTES
    assert {"type": "progress", "phase": "meaning", "current": NOTES, "total": NOTES} in progress
    shown = cli("status").out
    assert f"meaning vectors: {NOTES} of {NOTES}" in shown
    assert_all_there()
    (vault / "n1.md").unlink()
    (vault / "n2.md").write_text("# Note 2\n\nmoney of the river\n")
    plain = cli("sync", "--json")
    assert plain.json["data"]["meaning"]["done"] == NOTES - 2
    assert cli("index", "--wait").code == 0
    assert_all_there()
