"""Status, search and doctor say the same about a vault that is not completely searchable."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.fixture_types import Cli, Configure, MakeVault
from tests.transports.command_line import on_terminal_in_process

from obsidian_rag.config import load
from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode, Phase, Progress

NOTES = {
    "Debts.md": "# Debts\n\nI owe Sreenivas 40 dollars.\n",
    "Garden.md": "# Garden\n\nFerns.\n",
}


def told(cli: Cli) -> tuple[str, str | None]:
    """Health and code: the same from every command that shows them."""
    status = cli("status", "--json").json
    search = cli("search", "ferns", "--json").json
    code = status["error"]["code"] if status["error"] else None
    assert (search["status"], search["error"] and search["error"]["code"]) == (
        status["status"],
        code,
    )
    assert status["data"]["plugin_health"] == status["status"]
    doctor = cli("doctor", "--json").json["data"]["findings"]
    assert (doctor[0]["verdict"] == "ok") == (code is None), doctor[0]
    if code is not None:
        assert code in cli("status").out
        assert any(code in finding["message"] for finding in doctor)
    return status["status"], code


def found(cli: Cli) -> list[str]:
    return [hit["source_file"] for hit in cli("search", "ferns", "--json").json["data"]["results"]]


def test_a_complete_index_is_healthy_everywhere(cli: Cli, vault: Path) -> None:
    assert told(cli) == ("healthy", None)


def test_a_first_index_that_was_stopped_is_incomplete_and_says_how_much_there_is(
    cli: Cli, make_vault: MakeVault, configure: Configure
) -> None:
    many = {f"{number:04}.md": f"# Note {number}\n\nferns and moss\n" for number in range(700)}
    configure(make_vault(many), {})
    stored = 0

    def listen(progress: Progress) -> None:
        nonlocal stored
        stored += progress.phase is Phase.STORING

    engine = Engine(load())
    result = run_index(engine, Mode.FULL, listen, lambda: stored > 0)
    engine.close()
    assert 0 < result.indexed_files < 700, "the run was stopped half way"
    share = f"{result.indexed_files} of 700 notes are searchable"
    assert told(cli) == ("degraded", "INDEX_INCOMPLETE")
    for command in (("status", "--json"), ("search", "ferns", "--json")):
        assert share in cli(*command).json["error"]["message"]
    assert cli("status", "--json").json["data"]["searchable"] == {
        "searchable": result.indexed_files,
        "notes": 700,
    }
    assert found(cli), "what there is answers"
    assert cli("index").code == 0
    assert told(cli) == ("healthy", None)


def test_a_rebuild_that_was_stopped_is_told_until_it_is_finished(cli: Cli, vault: Path) -> None:
    engine = Engine(load())
    steps: list[Progress] = []
    run_index(engine, Mode.REINDEX, steps.append, lambda: len(steps) > 1)
    engine.close()
    assert told(cli) == ("degraded", "INDEX_INCOMPLETE")
    assert found(cli)
    assert cli("reindex").code == 0
    assert told(cli) == ("healthy", None)


def test_a_vault_without_notes_is_healthy_once_it_was_indexed(
    cli: Cli, make_vault: MakeVault, configure: Configure
) -> None:
    configure(make_vault({}), {})
    assert told_without_data(cli) == ("unavailable", "INDEX_NOT_FOUND")
    assert cli("index").code == 0
    status = cli("status", "--json").json
    assert (status["status"], status["error"], status["data"]["total_docs"]) == ("healthy", None, 0)
    assert told(cli) == ("healthy", None)
    make_vault(NOTES)
    assert cli("sync").code == 0
    assert found(cli)[0] == "Garden.md"


def told_without_data(cli: Cli) -> tuple[str, str]:
    status = cli("status", "--json").json
    search = cli("search", "ferns", "--json").json
    assert search["data"] is None
    assert (search["status"], search["error"]["code"]) == (
        status["status"],
        status["error"]["code"],
    )
    return status["status"], status["error"]["code"]


@pytest.mark.parametrize("command", ["sync", "index", "reindex"])
def test_a_vault_that_is_away_stays_searchable_and_loses_nothing(
    cli: Cli, vault: Path, tmp_path: Path, command: str
) -> None:
    away = vault.rename(tmp_path / "away")
    assert told(cli) == ("degraded", "VAULT_AWAY")
    (vault / "Attachments").mkdir(parents=True)
    assert told(cli) == ("degraded", "VAULT_AWAY")
    done = cli(command, "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "VAULT_AWAY")
    assert "0 of 2 notes are there" in done.json["error"]["message"]
    assert "--accept-removals" in done.json["error"]["suggestion"]
    assert told(cli) == ("degraded", "VAULT_AWAY")
    assert found(cli)[0] == "Garden.md"
    shutil.rmtree(vault)
    away.rename(vault)
    assert told(cli) == ("healthy", None), "it heals by itself"
    assert cli("sync").code == 0
    assert cli("status", "--json").json["data"]["total_docs"] == 2


@pytest.mark.parametrize("command", ["sync", "index", "reindex"])
def test_removals_that_are_meant_are_accepted(cli: Cli, vault: Path, command: str) -> None:
    for file in vault.glob("*.md"):
        file.unlink()
    assert cli(command).code == 2
    assert told(cli) == ("degraded", "VAULT_AWAY")
    assert cli(command, "--accept-removals").code == 0
    assert told(cli) == ("healthy", None)
    assert cli("status", "--json").json["data"]["total_docs"] == 0


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """Another vault."""
    made = tmp_path / "second vault"
    made.mkdir()
    (made / "Bread.md").write_text("# Bread\n\nRye.\n")
    return made


def test_init_with_another_vault_does_not_give_up_the_index_unasked(
    cli: Cli, vault: Path, second: Path
) -> None:
    done = cli("init", "--vault", str(second), "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "INVALID_ARGUMENT")
    assert "2 notes" in done.json["error"]["message"]
    assert str(vault) in done.json["error"]["message"]
    assert "--replace" in done.json["error"]["suggestion"]
    assert load().vault_root == vault
    assert told(cli) == ("healthy", None)


def test_init_replaces_when_told_to_and_nothing_is_healthy_before_the_next_index(
    cli: Cli, vault: Path, second: Path
) -> None:
    assert cli("init", "--vault", str(second), "--replace").code == 0
    assert load().vault_root == second
    assert told(cli) == ("degraded", "INDEX_INCOMPLETE")
    assert cli("index").code == 0
    assert told(cli) == ("healthy", None)
    assert found(cli) == ["Bread.md"]


def test_init_with_the_same_vault_can_be_repeated(cli: Cli, vault: Path, tmp_path: Path) -> None:
    assert cli("init", "--vault", str(vault)).code == 0
    moved = vault.rename(tmp_path / "moved")
    assert cli("init", "--vault", str(moved)).code == 0
    assert told(cli) == ("healthy", None)
    assert cli("sync").code == 0
    assert cli("status", "--json").json["data"]["total_docs"] == 2


@pytest.mark.parametrize(("answer", "code"), [("n", 2), ("y", 0)])
def test_on_a_terminal_init_asks(vault: Path, second: Path, answer: str, code: int) -> None:
    answers = [("Replace it", answer), ("search by meaning", "n")]
    done = on_terminal_in_process("init", "--vault", str(second), answers=answers)
    assert done.code == code, done.err
    assert load().vault_root == (second if code == 0 else vault)


def test_another_vault_in_the_settings_is_never_healthy_nor_indexed_unasked(
    cli: Cli, vault: Path, second: Path, configure: Configure
) -> None:
    configure(second, {})
    assert told(cli) == ("degraded", "INDEX_INCOMPLETE")
    for command in ("sync", "index", "reindex"):
        done = cli(command, "--json")
        assert (done.code, done.json["error"]["code"]) == (2, "INDEX_INCOMPLETE")
    assert found(cli)[0] == "Garden.md", "the old index is as it was"
    assert cli("index", "--accept-removals").code == 0
    assert told(cli) == ("healthy", None)
    assert found(cli) == ["Bread.md"]


def test_an_indexer_that_failed_makes_the_engine_unavailable_and_answers_go_on(
    cli: Cli, vault: Path, home: Path
) -> None:
    error = {"code": "INDEXER_FAILED", "message": "The indexer crashed."}
    failed = {"status": "failed", "finished_at": "2099-01-01T00:00:00Z", "error": error}
    (home / "sync-result.json").write_text(json.dumps(failed))
    assert told(cli) == ("unavailable", "INDEXER_FAILED")
    assert found(cli)[0] == "Garden.md"
    assert cli("sync").code == 0
    assert told(cli) == ("healthy", None)


def test_every_answer_says_how_new_the_vault_is(cli: Cli, vault: Path) -> None:
    os.utime(vault / "Garden.md", (1_893_456_000, 1_893_456_000))
    assert cli("sync").code == 0
    for command in (
        ("search", "ferns"),
        ("status",),
        ("read", "Garden"),
        ("related", "Garden"),
        ("memory", "recall", "ferns"),
        ("sync",),
        ("index",),
        ("reindex",),
    ):
        meta: Any = cli(*command, "--json").json["meta"]
        assert meta["vault_mtime"] == "2030-01-01T00:00:00Z", command


@pytest.mark.parametrize(
    ("command", "code"),
    [(("read", "Nowhere"), "NOT_FOUND"), (("search", "ferns", "--top", "0"), "INVALID_ARGUMENT")],
)
def test_a_wrong_call_says_nothing_about_the_health_of_the_index(
    cli: Cli, vault: Path, tmp_path: Path, command: tuple[str, ...], code: str
) -> None:
    wrong = cli(*command, "--json").json
    assert (wrong["status"], wrong["data"], wrong["error"]["code"]) == ("healthy", None, code)
    vault.rename(tmp_path / "away")
    wrong = cli(*command, "--json").json
    assert (wrong["status"], wrong["data"], wrong["error"]["code"]) == ("degraded", None, code)
