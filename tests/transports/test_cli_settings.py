"""config and model: settings are shown and changed, models are listed and refused."""

import json
from pathlib import Path

import pytest
from tests.fixture_types import Cli

from obsidian_rag.config import Settings, load


def test_config_path_prints_where_the_file_is(cli: Cli, home: Path) -> None:
    assert cli("config", "path").out == f"{home / 'config.json'}\n"
    assert cli("config", "path", "--json").json["data"] == {"config": str(home / "config.json")}


def test_config_show_prints_every_setting(cli: Cli) -> None:
    assert cli("config", "show").json == Settings().model_dump(mode="json")
    assert cli("config", "show", "--json").json["data"] == Settings().model_dump(mode="json")


def test_config_show_tells_what_holds_not_what_is_written(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("config", "set", "embedding.provider", "ollama")
    monkeypatch.setenv("OBSIDIAN_RAG_EMBEDDING__PROVIDER", "hash")
    assert cli("config", "show").json["embedding"]["provider"] == "hash"


def test_config_set_changes_one_setting_in_the_file(cli: Cli, home: Path) -> None:
    assert cli("config", "set", "embedding.provider", "hash").code == 0
    done = cli("config", "set", "indexing.allow_dirs", '["Journal"]', "--json")
    assert done.json["data"]["key"] == "indexing.allow_dirs"
    assert json.loads((home / "config.json").read_text()) == {
        "embedding": {"provider": "hash"},
        "indexing": {"allow_dirs": ["Journal"]},
    }
    assert load().settings.indexing.allow_dirs == ("Journal",)


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("embedding.provder", "hash", "INVALID_ARGUMENT"),
        ("embedding.provider", "skynet", "CONFIG_INVALID"),
        ("vector_store.path", "s3://bucket/x", "CONFIG_INVALID"),
    ],
)
def test_config_set_refuses_what_would_not_work_and_keeps_the_file(
    cli: Cli, home: Path, key: str, value: str, code: str
) -> None:
    cli("config", "set", "embedding.timeout_s", "5")
    before = (home / "config.json").read_bytes()
    done = cli("config", "set", key, value, "--json")
    assert (done.code, done.json["error"]["code"]) == (2, code)
    assert (home / "config.json").read_bytes() == before


def test_model_list_is_empty_at_first(cli: Cli) -> None:
    done = cli("model", "list")
    assert (done.code, done.out) == (0, "")
    assert "model get minilm" in done.err
    assert cli("model", "list", "--json").json["data"] == {"models": []}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("add", "nowhere"), "CONFIG_INVALID"),
        (("get", "no-such-model"), "NOT_FOUND"),
        (("remove", "no-such-model"), "NOT_FOUND"),
        (("remove", "../../etc"), "NOT_FOUND"),
    ],
)
def test_a_model_that_cannot_be_had_is_refused_with_a_code(
    cli: Cli, arguments: tuple[str, ...], code: str
) -> None:
    done = cli("model", *arguments, "--json")
    assert (done.code, done.json["error"]["code"]) == (2, code)
    assert done.json["error"]["suggestion"]
    assert "Traceback" not in done.err


def test_a_folder_that_is_no_model_is_refused_and_leaves_nothing(
    cli: Cli, tmp_path: Path, home: Path
) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd/model.onnx").write_bytes(b"not a model")
    (tmp_path / "odd/tokenizer.json").write_text("{}")
    done = cli("model", "add", str(tmp_path / "odd"), "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "CONFIG_INVALID")
    assert not (home / "models").exists() or list((home / "models").iterdir()) == []
