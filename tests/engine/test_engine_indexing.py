"""Index runs as the outside sees them: results on file, versions, and lost or half-done state."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.engine.soundness import assert_sound, stored_files

from obsidian_rag.engine import Engine, Mode, Phase, Progress, report_status, run_index
from obsidian_rag.errors import NotFound

MakeVault = Callable[[Mapping[str, str | bytes]], Path]
MakeEngine = Callable[..., Engine]


def result(home: Path) -> Any:
    return json.loads((home / "sync-result.json").read_text())


def test_the_result_of_a_run_is_on_file_with_the_names_of_the_design(
    engine: MakeEngine, make_vault: MakeVault, home: Path
) -> None:
    vault = make_vault({"a.md": "text", "bad.md": b"\xff\xff"})
    made = engine(vault)
    run_index(made, Mode.FULL)
    found = result(home)
    assert (found["status"], found["mode"]) == ("partial", "full")
    assert (found["indexed_files"], found["total_chunks"]) == (1, 1)
    assert found["duration_ms"] >= 0
    assert [(error["file"], error["reason"]) for error in found["errors"]] == [
        ("bad.md", "not_utf8")
    ]
    assert found["last_sync"] == found["finished_at"] >= found["started_at"]
    assert found["vault_path"] == str(vault)


def test_each_result_replaces_the_one_before_whole(
    engine: MakeEngine, make_vault: MakeVault, home: Path
) -> None:
    made = engine(make_vault({"a.md": "text"}))
    run_index(made, Mode.FULL)
    before = (home / "sync-result.json").stat().st_ino
    run_index(made, Mode.SYNC)
    assert (home / "sync-result.json").stat().st_ino != before
    assert result(home)["mode"] == "sync"
    assert [file.name for file in home.iterdir() if file.name.endswith(".tmp")] == []


def test_a_failed_run_says_why_and_keeps_the_time_of_the_last_good_one(
    engine: MakeEngine, make_vault: MakeVault, home: Path
) -> None:
    vault = make_vault({"a.md": "text"})
    made = engine(vault)
    run_index(made, Mode.FULL)
    good = result(home)["last_sync"]
    vault.rename(vault.with_name("elsewhere"))
    with pytest.raises(NotFound):
        run_index(made, Mode.SYNC)
    found = result(home)
    assert (found["status"], found["error"]["code"]) == ("failed", "NOT_FOUND")
    assert found["last_sync"] == good


def test_the_index_version_moves_exactly_when_the_index_does(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    vault = make_vault({"a.md": "text"})
    made = engine(vault)
    run_index(made, Mode.FULL)
    first = report_status(made).index_version
    run_index(made, Mode.SYNC)
    assert report_status(made).index_version == first
    (vault / "b.md").write_text("more")
    run_index(made, Mode.SYNC)
    assert report_status(made).index_version != first


def test_a_stopped_run_is_told_as_cancelled_and_goes_on_later(
    engine: MakeEngine, make_vault: MakeVault, home: Path
) -> None:
    made = engine(make_vault({f"{number}.md": "text" for number in range(5)}))
    stopped = run_index(made, Mode.FULL, stop=lambda: True)
    assert (stopped.exit_code, stopped.tally.is_cancelled) == (130, True)
    assert result(home)["status"] == "cancelled"
    done = run_index(made, Mode.SYNC)
    assert (done.exit_code, done.indexed_files) == (0, 5)
    assert_sound(made)


@pytest.mark.parametrize("mode", [Mode.SYNC, Mode.FULL])
def test_a_lost_database_does_not_leave_notes_twice_in_the_index(
    engine: MakeEngine, make_vault: MakeVault, home: Path, mode: Mode
) -> None:
    made = engine(make_vault({"a.md": "text", "b.md": "more"}))
    run_index(made, Mode.FULL)
    made.close()
    for file in home.glob("state.db*"):
        file.unlink()
    run_index(made, mode)
    assert stored_files(made) == ["a.md", "b.md"]
    assert_sound(made)


def test_a_lost_index_is_built_again_by_the_next_sync(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"a.md": "text", "b.md": "more"}))
    run_index(made, Mode.FULL)
    made.chunks.drop()
    assert run_index(made, Mode.SYNC).indexed_files == 2
    assert stored_files(made) == ["a.md", "b.md"]
    assert_sound(made)


def test_a_twin_renamed_to_a_deleted_note_whose_deletion_was_interrupted(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    class PowerCut(Exception):
        pass

    def die_before_the_work(progress: Progress) -> None:
        if progress.phase is Phase.PARSING:
            raise PowerCut

    vault = make_vault({"a.md": "same text", "b.md": "same text"})
    for name in ("a.md", "b.md"):
        os.utime(vault / name, (1_700_000_000.5, 1_700_000_000.5))
    made = engine(vault)
    run_index(made, Mode.FULL)
    (vault / "a.md").unlink()
    with pytest.raises(PowerCut):
        run_index(made, Mode.SYNC, die_before_the_work)
    (vault / "b.md").rename(vault / "a.md")
    run_index(made, Mode.SYNC)
    assert stored_files(made) == ["a.md"]
    assert_sound(made)


def test_an_index_at_an_address_can_be_built_synced_and_rebuilt(
    engine: MakeEngine, make_vault: MakeVault, tmp_path: Path
) -> None:
    vault = make_vault({"a.md": "text", "b.md": "more"})
    settings = {
        "vector_store.path": f"file://{tmp_path}/remote",
        "security.local_only": False,
    }
    made = engine(vault, settings)
    run_index(made, Mode.FULL)
    (vault / "b.md").unlink()
    run_index(made, Mode.SYNC)
    run_index(made, Mode.REINDEX)
    assert stored_files(made) == ["a.md"]
    assert_sound(made)
