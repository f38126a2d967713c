"""config get, set and unset: paths, messages in plain words, completion."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fixture_types import Cli
from tests.waiting import PATIENCE_S

from obsidian_rag.config import load


def test_get_prints_one_value_as_it_holds(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("config", "get", "embedding.provider").out == "builtin\n"
    assert cli("config", "get", "indexing.chunk_size").out == "500\n"
    assert cli("config", "get", "security.local_only").out == "true\n"
    assert cli("config", "get", "indexing.allow_dirs").json == []
    assert cli("config", "get", "watcher").json["enabled"] is True
    monkeypatch.setenv("OBSIDIAN_RAG_EMBEDDING__PROVIDER", "hash")
    done = cli("config", "get", "embedding.provider", "--json")
    assert done.json["data"] == {"key": "embedding.provider", "value": "hash"}


def test_a_secret_is_not_printed(cli: Cli) -> None:
    assert cli("config", "set", "livesync.couchdbPassword", "swordfish").code == 0
    assert "swordfish" not in cli("config", "get", "livesync.couchdbPassword").out


def test_unset_brings_the_default_back(cli: Cli, home: Path) -> None:
    cli("config", "set", "indexing.chunk_size", "300")
    cli("config", "set", "embedding.provider", "hash")
    assert cli("config", "unset", "indexing.chunk_size").code == 0
    assert json.loads((home / "config.json").read_text()) == {"embedding": {"provider": "hash"}}
    assert cli("config", "get", "indexing.chunk_size").out == "500\n"
    again = cli("config", "unset", "indexing.chunk_size")
    assert (again.code, "was not set" in again.out) == (0, True)


@pytest.mark.parametrize("command", ["get", "set", "unset"])
def test_an_unknown_name_is_refused_with_the_nearest_one(cli: Cli, command: str) -> None:
    value = ("hash",) if command == "set" else ()
    done = cli("config", command, "embedding.provder", *value, "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "INVALID_ARGUMENT")
    assert "'embedding.provider'" in done.json["error"]["message"]


def test_a_vault_that_is_not_there_is_refused_and_nothing_is_written(
    cli: Cli, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "file.md").write_text("x")
    for wrong in (tmp_path / "nowhere", tmp_path / "file.md"):
        for command in (("config", "set", "vault_path"), ("init", "--vault")):
            done = cli(*command, str(wrong), "--json")
            assert (done.code, done.json["error"]["code"]) == (2, "NOT_FOUND")
            assert done.json["error"]["suggestion"]
    assert not (home / "config.json").exists()


def test_a_path_that_is_typed_is_meant_from_the_working_folder(
    cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work/My Notes").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    for text in ("My Notes", "./My Notes", '"My Notes"', "../work/My Notes"):
        assert cli("config", "set", "vault_path", text).code == 0
        written = json.loads((home / "config.json").read_text())["vault_path"]
        assert written == str(tmp_path / "work/My Notes")
    assert cli("config", "set", "vector_store.path", "vectors").code == 0
    assert load().vector_uri == str(tmp_path / "work/vectors")
    # What is written in the file by hand is meant from the file's folder.
    (home / "config.json").write_text('{"vault_path": "My Notes"}')
    assert load().vault_root == home / "My Notes"


MESSAGES = [
    ("indexing.deny_dirs", "Archive", """indexing.deny_dirs is a list. Write '["Archive"]'."""),
    ("indexing.deny_dirs", "[1]", "indexing.deny_dirs.0 is text. Write it in double quotes."),
    ("indexing.file_patterns", "[]", "indexing.file_patterns must not be empty."),
    ("indexing.chunk_size", "many", "indexing.chunk_size is a whole number, 32 to 8192."),
    ("indexing.chunk_size", "12.5", "indexing.chunk_size is a whole number, 32 to 8192."),
    ("indexing.chunk_size", "9", "indexing.chunk_size must be 32 to 8192."),
    ("embedding.dimensions", "3", "embedding.dimensions must be 8 to 8192."),
    ("embedding.timeout_s", "0", "embedding.timeout_s must be more than 0."),
    ("embedding.timeout_s", "soon", "embedding.timeout_s is a number, more than 0."),
    ("embedding.timeout_s", "Infinity", "embedding.timeout_s is a number, more than 0."),
    ("watcher.reconcile_s", "0", "watcher.reconcile_s must be 1 or more."),
    ("livesync.max_deleted_percent", "0", "must be more than 0 and at most 100."),
    ("relations.tag_weight", "2", "relations.tag_weight must be 0 to 1."),
    ("security.local_only", "perhaps", "security.local_only is true or false."),
    ("security.sensitive_policy", "hide", "security.sensitive_policy is flag or withhold."),
    ("embedding.provider", "olama", "gemini or same_as_model. Did you mean 'ollama'?"),
    ("vector_store.type", "chroma", "vector_store.type can only be lancedb."),
    ("memory.patterns", "debt", "memory.patterns is an object of lists."),
    ("memory.patterns", '{"x": 3}', "memory.patterns.x is a list."),
    ("vault_path", "7.5", "There is no folder"),
    ("meaning.model", "null", "meaning.model is text."),
    ("indexing.chunk_overlap", "400", "chunk_overlap may be at most half of chunk_size"),
]


@pytest.mark.parametrize(
    ("key", "value", "said"), MESSAGES, ids=[f"{k}={v}" for k, v, _ in MESSAGES]
)
def test_a_wrong_value_is_told_in_plain_words(
    cli: Cli, home: Path, key: str, value: str, said: str
) -> None:
    done = cli("config", "set", key, value)
    assert done.code == 2
    assert said in done.err
    assert "Input should" not in done.err
    assert not (home / "config.json").exists()


def test_a_wrong_value_in_the_file_names_the_file_and_one_in_the_environment_the_variable(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    (home / "config.json").write_text('{"indexing": {"deny_dirs": "Archive"}}')
    done = cli("config", "show")
    assert f"Setting 'indexing.deny_dirs' in {home / 'config.json'} is a list." in done.err
    (home / "config.json").write_text("{}")
    monkeypatch.setenv("OBSIDIAN_RAG_INDEXING__DENY_DIRS", "Archive")
    done = cli("config", "show")
    assert "OBSIDIAN_RAG_INDEXING__DENY_DIRS" in done.err
    assert "config.json" not in done.err


def test_set_says_when_the_environment_overrides(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OBSIDIAN_RAG_INDEXING__CHUNK_SIZE", "300")
    done = cli("config", "set", "indexing.chunk_size", "400")
    assert (done.code, "OBSIDIAN_RAG_INDEXING__CHUNK_SIZE overrides" in done.err) == (0, True)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("config get embedding.pro", {"embedding.provider"}),
        ("config set security.sens", {"security.sensitive_sections", "security.sensitive_policy"}),
        ("config unset watcher.deb", {"watcher.debounce_s"}),
        ("config set embedding.provider ol", {"ollama"}),
        ("config set security.local_only ", {"true", "false"}),
    ],
)
def test_the_shell_completes_names_and_values_of_settings(words: str, offered: set[str]) -> None:
    line = f"obsidian-rag {words}"
    done = subprocess.run(
        [sys.executable, "-m", "obsidian_rag"],
        env={
            **os.environ,
            "_OBSIDIAN_RAG_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(line.count(" ")),
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert set(done.stdout.split()) == offered, done.stderr
