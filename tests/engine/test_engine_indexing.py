"""Index runs as the outside sees them: results on file, versions, and lost or half-done state."""

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.engine.soundness import assert_sound, stored_files
from tests.search.indexed import indexed

from obsidian_rag.engine import Engine, report_status, run_index
from obsidian_rag.errors import VaultAway
from obsidian_rag.index import Mode, Phase, Progress
from obsidian_rag.tools import OWNER
from obsidian_rag.tools import call as call_tool

MakeVault = Callable[[Mapping[str, str | bytes]], Path]
MakeEngine = Callable[..., Engine]


def call(engine: Engine, tool: str, arguments: dict[str, object]) -> Any:
    return call_tool(engine, tool, arguments, OWNER)


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


def test_the_last_runs_are_remembered_in_brief_for_the_owner_alone(
    engine: MakeEngine, make_vault: MakeVault, home: Path
) -> None:
    vault = make_vault({"a.md": "text", "bad.md": b"\xff\xff"})
    made = engine(vault)
    run_index(made, Mode.FULL)
    (vault / "b.md").write_text("more")
    for _ in range(31):
        run_index(made, Mode.SYNC, paths=["b.md"])
    vault.rename(vault.with_name("away"))
    with pytest.raises(VaultAway):
        run_index(made, Mode.SYNC)
    recent = call(made, "obsidian_rag_status", {})["data"]["recent_syncs"]
    assert len(recent) == 30
    assert recent[-1]["error"] == "VAULT_AWAY"
    assert (recent[-1]["status"], recent[-2]["status"]) == ("failed", "complete")
    told: Any = call_tool(made, "obsidian_rag_status", {})["data"]
    assert "recent_syncs" not in told


def test_the_time_of_a_run_is_that_of_all_its_phases(
    engine: MakeEngine, make_vault: MakeVault, home: Path
) -> None:
    made = engine(make_vault({"a.md": "text", "b.md": "text"}))
    told: list[tuple[Phase, float]] = []

    def listen(progress: Progress) -> None:
        if progress.phase is Phase.RELATING:
            threading.Event().wait(0.5)  # relating takes long
        told.append((progress.phase, time.monotonic()))

    done = run_index(made, Mode.FULL, listen)
    (_, first), (phase, last) = told[0], told[-1]
    assert phase is Phase.RELATING
    assert done.duration_ms >= (last - first) * 1000 - 1
    assert result(home)["duration_ms"] == done.duration_ms


NOTE = "# Straße\n\nDie Brücke über den Fluß.\n\nÄpfel und Öl für den Winter.\n"


def test_a_note_in_another_encoding_is_found_read_and_cited(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"alt.md": NOTE.encode("cp1252"), "b.md": "# Other"}))
    assert run_index(made, Mode.FULL).exit_code == 0
    (hit, *_) = call(made, "obsidian_rag_search", {"query": "Brücke Fluß"})["data"]["results"]
    assert (hit["source_file"], hit["title"]) == ("alt.md", "Straße")
    lines = {"note": "alt.md", "start_line": 3, "end_line": 3}
    found = call(made, "obsidian_rag_read", lines)["data"]
    assert (found["text"], found["total_lines"]) == ("Die Brücke über den Fluß.", 5)
    assert [(one.status, one.reason) for one in report_status(made).notices] == [
        ("warning", "read as windows-1252")
    ]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_a_note_in_another_encoding_is_never_written(
    engine: MakeEngine, make_vault: MakeVault, encoding: str
) -> None:
    data = NOTE.encode(encoding)
    vault = make_vault({"alt.md": data, "b.md": "# Other"})
    made = engine(vault, {"relations.auto_add_ids": True})
    run_index(made, Mode.FULL)
    asked = {"note": "alt.md", "target": "b.md", "add_missing_id": True}
    error = call(made, "obsidian_rag_add_relation", asked)["error"]
    assert (error["code"], "UTF-8" in error["message"]) == ("READ_ONLY", True)
    assert (vault / "alt.md").read_bytes() == data


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
    with pytest.raises(VaultAway):
        run_index(made, Mode.SYNC)
    found = result(home)
    assert (found["status"], found["error"]["code"]) == ("failed", "VAULT_AWAY")
    assert found["last_sync"] == good


def test_the_index_version_moves_exactly_when_the_index_does(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    vault = make_vault({"a.md": "text"})
    made = engine(vault)
    run_index(made, Mode.FULL)
    first = made.index_version
    run_index(made, Mode.SYNC)
    assert made.index_version == first
    (vault / "b.md").write_text("more")
    run_index(made, Mode.SYNC)
    assert made.index_version != first


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


def search(engine: Engine) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for query in ("rain garden", "sedge in the marsh", "bread and water"):
        asked: dict[str, object] = {"query": query, "max_results": 20}
        data = call(engine, "obsidian_rag_search", asked)["data"]
        found += [(hit["source_file"], hit["score"], hit["start_line"]) for hit in data["results"]]
    return found


def test_search_answers_after_index_as_a_new_index_does(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    """Deleted rows count, and new ones do not, until the word indexes are brought up to date."""
    words = ("rain", "garden", "sedge", "marsh", "bread", "water")
    notes = {
        f"{at}.md": f"# {words[at % 6]}\n\n{words[at % 5]} " * (at % 4 + 1) for at in range(40)
    }
    vault = make_vault(notes)
    made = engine(vault)
    run_index(made, Mode.FULL)
    for at in range(0, 30, 3):
        (vault / f"{at}.md").unlink()
    make_vault({f"{at}.md": f"more {words[at % 6]} and rain {at}" for at in range(1, 10, 3)})
    run_index(made, Mode.SYNC)
    search(made)  # what this process has open is of before the sweep
    run_index(made, Mode.FULL)
    with closing(indexed(vault.with_name("clean"), vault)) as clean:
        assert search(made) == search(clean)
