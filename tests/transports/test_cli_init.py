"""init: choosing a vault by name, from Obsidian's list, and on a terminal."""

import json
import shlex
from pathlib import Path

import pytest
from tests.fixture_types import Cli
from tests.transports.command_line import on_terminal_in_process

from obsidian_rag.config import load

NO_MODEL = ("search by meaning", "n")


@pytest.fixture
def vaults(tmp_path: Path) -> list[Path]:
    """Two vaults that Obsidian knows, the open one first."""
    made = [tmp_path / "Work Notes", tmp_path / "Bob's Notes"]
    for folder in made:
        folder.mkdir()
    file = Path.home() / ".config/obsidian/obsidian.json"
    file.parent.mkdir(parents=True)
    known = {
        "1": {"path": str(made[1]), "ts": 2},
        "2": {"path": str(made[0]), "ts": 1, "open": True},
        "3": {"path": str(tmp_path / "gone"), "ts": 9},
    }
    file.write_text(json.dumps({"vaults": known}))
    return made


def test_a_named_folder_becomes_the_vault(cli: Cli, tmp_path: Path, home: Path) -> None:
    (tmp_path / "Notes").mkdir()
    done = cli("init", "--vault", str(tmp_path / "Notes"))
    assert done.code == 0
    assert str(tmp_path / "Notes") in done.out
    assert str(home / "config.json") in done.out
    assert "obsidian-rag index" in done.err
    assert load().vault_root == tmp_path / "Notes"


def test_a_relative_folder_is_remembered_as_an_absolute_one(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Notes").mkdir()
    monkeypatch.chdir(tmp_path)
    assert cli("init", "--vault", "Notes").code == 0
    monkeypatch.chdir("/")
    assert load().vault_root == tmp_path / "Notes"


def test_other_settings_are_kept(cli: Cli, tmp_path: Path, home: Path) -> None:
    home.mkdir()
    tree = {"vault_path": "/old", "embedding": {"provider": "hash"}}
    (home / "config.json").write_text(json.dumps(tree))
    (tmp_path / "Notes").mkdir()
    done = cli("init", "--vault", str(tmp_path / "Notes"), "--json")
    assert done.json["status"] == "healthy"
    assert done.json["data"] == {
        "config": str(home / "config.json"),
        "vault_path": str(tmp_path / "Notes"),
        "model": None,
    }
    assert load().settings.embedding.provider == "hash"


def test_a_folder_that_is_not_there_is_refused_and_nothing_is_written(
    cli: Cli, tmp_path: Path, home: Path
) -> None:
    done = cli("init", "--vault", str(tmp_path / "nowhere"))
    assert (done.code, done.out) == (2, "")
    assert "NOT_FOUND" in done.err
    assert not home.exists()


def test_an_empty_folder_name_is_refused_and_does_not_mean_the_current_folder(
    cli: Cli, home: Path
) -> None:
    refused = cli("init", "--vault", "")
    assert (refused.code, "The path is empty." in refused.err) == (2, True)
    assert not (home / "config.json").exists()


def test_a_vault_around_the_data_folder_is_refused_and_nothing_is_written(
    cli: Cli, tmp_path: Path, home: Path
) -> None:
    done = cli("init", "--vault", str(tmp_path), "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "CONFIG_INVALID")
    assert not home.exists()


def test_a_broken_config_file_is_not_overwritten(cli: Cli, tmp_path: Path, home: Path) -> None:
    home.mkdir()
    (home / "config.json").write_text("{broken")
    (tmp_path / "Notes").mkdir()
    assert cli("init", "--vault", str(tmp_path / "Notes")).code == 2
    assert (home / "config.json").read_text() == "{broken"


def test_without_a_terminal_the_vaults_of_obsidian_are_offered_as_commands(
    cli: Cli, vaults: list[Path], home: Path
) -> None:
    done = cli("init")
    assert (done.code, done.out) == (2, "")
    commands = [line for line in done.err.splitlines() if "init --vault" in line]
    offered = [shlex.split(line)[-1] for line in commands]
    assert offered == [str(vault) for vault in vaults]
    assert not home.exists()


def test_without_a_terminal_and_without_obsidian_the_way_is_shown(cli: Cli) -> None:
    done = cli("init", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "INVALID_ARGUMENT")
    assert "--vault" in done.json["error"]["suggestion"]


def test_on_a_terminal_a_number_chooses(vaults: list[Path]) -> None:
    done = on_terminal_in_process("init", answers=[("number or folder", "2"), NO_MODEL])
    assert done.code == 0, done.err
    assert all(str(vault) in done.err for vault in vaults)
    assert load().vault_root == vaults[1]


def test_on_a_terminal_a_folder_chooses_too(vaults: list[Path], tmp_path: Path) -> None:
    (tmp_path / "third").mkdir()
    done = on_terminal_in_process(
        "init", answers=[("number or folder", str(tmp_path / "third")), NO_MODEL]
    )
    assert done.code == 0, done.err
    assert load().vault_root == tmp_path / "third"


def test_on_a_terminal_the_model_is_offered_and_going_without_is_no_failure(
    vaults: list[Path], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("UV_OFFLINE", "1")
    done = on_terminal_in_process(
        "init", "--vault", str(vaults[0]), answers=[("search by meaning", "")]
    )
    assert done.code == 0, done.err
    assert "static vectors" in done.err
    assert load().vault_root == vaults[0]
    silent = on_terminal_in_process("init", "--vault", str(vaults[1]), "--model", "none")
    assert silent.code == 0 and "search by meaning" not in silent.err


def test_a_model_that_was_asked_for_and_cannot_be_had_is_a_failure(
    cli: Cli, vaults: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("UV_OFFLINE", "1")
    done = cli("init", "--vault", str(vaults[0]), "--model", "minilm", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "PROVIDER_FAILED")


def test_a_number_that_was_not_offered_is_refused(vaults: list[Path], home: Path) -> None:
    done = on_terminal_in_process("init", answers=[("number or folder", "7")])
    assert done.code == 2
    assert not home.exists()
