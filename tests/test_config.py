"""Settings: the file of the plugin design, precedence, and errors that name what is wrong."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from obsidian_rag import config
from obsidian_rag.config import Config, Settings, load, save, set_value, setting_names
from obsidian_rag.errors import ConfigInvalid, InvalidArgument

DESIGN_FILE = """{
  "vault_path": "./KnowledgeVault/Default",
  "embedding": {
    "provider": "ollama",
    "model": "mxbai-embed-large",
    "base_url": "http://localhost:11434",
    "dimensions": 1024
  },
  "vector_store": {
    "type": "lancedb",
    "path": "./obsidian-rag/vectors.lance"
  },
  "indexing": {
    "chunk_size": 500,
    "chunk_overlap": 100,
    "file_patterns": ["*.md"],
    "deny_dirs": [".obsidian", ".trash", "zzz-Archive", ".git", ".logseq"],
    "allow_dirs": []
  },
  "security": {
    "require_confirmation_for": ["health", "financial_debt"],
    "sensitive_sections": ["#mentalhealth", "#physicalhealth", "#Relations"],
    "local_only": true
  },
  "memory": {
    "auto_suggest": true,
    "patterns": {
      "financial": ["owe", "owed", "debt", "paid", "$", "spent", "spend"],
      "health": ["#mentalhealth", "#physicalhealth", "medication", "therapy"],
      "commitments": ["shopping list", "costco", "amazon", "grocery"]
    }
  }
}
"""


def write(home: Path, content: str | bytes | Mapping[str, Any]) -> Path:
    home.mkdir(exist_ok=True)
    file = home / "config.json"
    if isinstance(content, Mapping):
        content = json.dumps(content)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def assert_within(part: Any, whole: Any) -> None:
    """Every value of `part` is in `whole` at the same place."""
    if isinstance(part, dict):
        for key, value in part.items():
            assert_within(value, whole[key])
    else:
        assert whole == part


def test_the_file_of_the_plugin_design_loads_unchanged(home: Path) -> None:
    write(home, DESIGN_FILE)
    found = load()
    assert_within(json.loads(DESIGN_FILE), found.settings.model_dump(mode="json"))
    assert found.vault_root == home / "KnowledgeVault/Default"
    assert found.vector_uri == str(home / "obsidian-rag/vectors.lance")
    assert found.home == home
    assert found.database == home / "state.db"


def test_without_a_file_the_defaults_hold(home: Path) -> None:
    found = load()
    assert found.settings == Settings()
    assert not found.has_vault
    assert found.vector_uri == str(home / "vectors.lance")
    with pytest.raises(ConfigInvalid) as caught:
        _ = found.vault_root
    assert "obsidian-rag init" in caught.value.suggestion


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load().settings.embedding.provider == "builtin"
    write(home, {"embedding": {"provider": "ollama", "timeout_s": 7}})
    assert load().settings.embedding.provider == "ollama"
    monkeypatch.setenv("OBSIDIAN_RAG_EMBEDDING__PROVIDER", "hash")
    assert load().settings.embedding.provider == "hash"
    flagged = load({"embedding.provider": "onnx"}).settings.embedding
    assert (flagged.provider, flagged.timeout_s) == ("onnx", 7)


def test_the_environment_reaches_every_kind_of_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OBSIDIAN_RAG_VAULT_PATH", "/somewhere/My Notes")
    monkeypatch.setenv("OBSIDIAN_RAG_SECURITY__LOCAL_ONLY", "false")
    monkeypatch.setenv("OBSIDIAN_RAG_INDEXING__CHUNK_SIZE", "300")
    monkeypatch.setenv("OBSIDIAN_RAG_INDEXING__ALLOW_DIRS", '["Journal"]')
    monkeypatch.setenv("OBSIDIAN_RAG_LIVESYNC__COUCHDBURL", "http://127.0.0.1:5984")
    monkeypatch.setenv("OBSIDIAN_RAG_LIVESYNC__COUCHDBPASSWORD", "12345")
    found = load()
    assert found.vault_root == Path("/somewhere/My Notes")
    assert found.settings.security.local_only is False
    assert found.settings.indexing.chunk_size == 300
    assert found.settings.indexing.allow_dirs == ("Journal",)
    livesync = found.settings.livesync
    assert livesync.couchdbUrl == "http://127.0.0.1:5984"
    assert livesync.couchdbPassword is not None
    assert livesync.couchdbPassword.get_secret_value() == "12345"


def test_one_variable_moves_the_data_folder_and_another_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OBSIDIAN_RAG_HOME")
    assert load().home == Path.home() / ".obsidian-rag"
    monkeypatch.setenv("OBSIDIAN_RAG_HOME", str(tmp_path / "elsewhere"))
    assert load().file == tmp_path / "elsewhere/config.json"
    (tmp_path / "other").mkdir()
    (tmp_path / "other/my.json").write_text('{"vault_path": "notes"}')
    monkeypatch.setenv("OBSIDIAN_RAG_CONFIG", str(tmp_path / "other/my.json"))
    assert load().home == tmp_path / "elsewhere"
    assert load().vault_root == tmp_path / "other/notes"


@pytest.mark.parametrize(
    ("tree", "wrong", "nearest"),
    [
        ({"vaultpath": "x"}, "vaultpath", "vault_path"),
        ({"embeding": {}}, "embeding", "embedding"),
        ({"embedding": {"provder": "hash"}}, "embedding.provder", "embedding.provider"),
        ({"indexing": {"chunksize": 1}}, "indexing.chunksize", "indexing.chunk_size"),
    ],
)
def test_an_unknown_setting_is_refused_with_the_nearest_known_one(
    home: Path, tree: dict[str, Any], wrong: str, nearest: str
) -> None:
    write(home, tree)
    with pytest.raises(ConfigInvalid) as caught:
        load()
    assert f"'{wrong}'" in caught.value.message
    assert f"'{nearest}'" in caught.value.message
    assert "config.json" in caught.value.message


@pytest.mark.parametrize(
    ("tree", "name"),
    [
        ({"embedding": {"provider": "skynet"}}, "embedding.provider"),
        ({"embedding": "ollama"}, "embedding"),
        ({"embedding": {"dimensions": 1}}, "embedding.dimensions"),
        ({"embedding": {"timeout_s": 0}}, "embedding.timeout_s"),
        ({"indexing": {"chunk_size": "many"}}, "indexing.chunk_size"),
        ({"indexing": {"chunk_size": 100, "chunk_overlap": 60}}, "indexing"),
        ({"indexing": {"file_patterns": []}}, "indexing.file_patterns"),
        ({"indexing": {"deny_dirs": ".git"}}, "indexing.deny_dirs"),
        ({"security": {"local_only": "perhaps"}}, "security.local_only"),
        ({"memory": {"patterns": {"x": 3}}}, "memory.patterns.x"),
        ({"vault_path": 7}, "vault_path"),
        ({"vault_path": "  "}, "vault_path"),
        ({"version": 99}, "version"),
    ],
)
def test_a_wrong_value_is_refused_with_the_name_of_its_setting(
    home: Path, tree: dict[str, Any], name: str
) -> None:
    write(home, tree)
    with pytest.raises(ConfigInvalid) as caught:
        load()
    assert f"'{name}'" in caught.value.message


def test_a_value_from_the_environment_is_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OBSIDIAN_RAG_EMBEDDING__DIMENSIONS", "wide")
    with pytest.raises(ConfigInvalid) as caught:
        load()
    assert "embedding.dimensions" in caught.value.message


def test_relative_paths_start_at_the_folder_of_the_file_not_at_the_working_folder(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, {"vault_path": "../notes/./a", "vector_store": {"path": "vectors"}})
    monkeypatch.chdir(tmp_path)
    assert load().vault_root == tmp_path / "notes/a"
    assert load().vector_uri == str(home / "vectors")


def test_a_tilde_is_the_home_folder(home: Path) -> None:
    write(home, {"vault_path": "~/Notes"})
    assert load().vault_root == Path.home() / "Notes"


def test_the_data_folder_may_not_lie_inside_the_vault(home: Path, tmp_path: Path) -> None:
    for vault in (tmp_path, home):
        write(home, {"vault_path": str(vault)})
        with pytest.raises(ConfigInvalid, match="data folder"):
            load()


def test_the_vector_store_may_not_lie_inside_the_vault_not_even_by_a_link(
    home: Path, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (tmp_path / "shortcut").symlink_to(vault)
    for path in (vault / "v", tmp_path / "shortcut/v", vault):
        write(home, {"vault_path": str(vault), "vector_store": {"path": str(path)}})
        with pytest.raises(ConfigInvalid, match="vector store"):
            load()


def test_a_vector_store_in_the_vault_is_refused_as_a_file_address_too(
    home: Path, tmp_path: Path
) -> None:
    tree = {
        "vault_path": str(tmp_path / "vault"),
        "vector_store": {"path": f"file://{tmp_path}/vault/v"},
        "security": {"local_only": False},
    }
    write(home, tree)
    with pytest.raises(ConfigInvalid):
        load()


def test_a_remote_vector_store_needs_local_only_to_be_off(home: Path) -> None:
    remote: dict[str, Any] = {"vector_store": {"path": "s3://bucket/vectors"}}
    write(home, remote)
    with pytest.raises(ConfigInvalid, match="local_only"):
        load()
    write(home, remote | {"security": {"local_only": False}})
    assert load().vector_uri == "s3://bucket/vectors"


def test_a_remote_vector_store_does_not_depend_on_the_working_folder(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    tree = {
        "vault_path": str(vault),
        "vector_store": {"path": "s3://bucket/vectors"},
        "security": {"local_only": False},
    }
    write(home, tree)
    monkeypatch.chdir(vault)
    assert load().vector_uri == "s3://bucket/vectors"


@pytest.mark.parametrize(
    "content",
    [b'{"vault_path": ', b"[]", b'"text"', b"", b"\xff\xfe{}", b"null"],
    ids=["broken", "list", "text", "empty", "not-utf8", "null"],
)
def test_a_file_that_is_no_json_object_is_refused_by_name(home: Path, content: bytes) -> None:
    file = write(home, content)
    with pytest.raises(ConfigInvalid) as caught:
        load()
    assert str(file) in caught.value.message
    assert caught.value.suggestion


def test_broken_json_is_refused_with_its_place(home: Path) -> None:
    write(home, '{\n  "vault_path": x\n}')
    with pytest.raises(ConfigInvalid, match="line 2"):
        load()


def test_a_byte_order_mark_does_no_harm(home: Path) -> None:
    write(home, b'\xef\xbb\xbf{"vault_path": "/notes"}')
    assert load().vault_root == Path("/notes")


def test_a_folder_in_the_place_of_the_file_is_refused(home: Path) -> None:
    (home / "config.json").mkdir(parents=True)
    with pytest.raises(ConfigInvalid):
        load()


def test_saving_makes_the_folder_and_leaves_nothing_beside_the_file(home: Path) -> None:
    save({"vault_path": "/nötes"}, home / "config.json")
    assert load().vault_root == Path("/nötes")
    save({"vault_path": "/other"}, home / "config.json")
    assert load().vault_root == Path("/other")
    assert [file.name for file in home.iterdir()] == ["config.json"]
    assert home.stat().st_mode & 0o077 == 0


def test_saving_refuses_what_could_not_be_loaded_and_keeps_the_old_file(home: Path) -> None:
    save({"vault_path": "/old"}, home / "config.json")
    with pytest.raises(ConfigInvalid):
        save({"vault_path": "/new", "unknown": 1}, home / "config.json")
    assert load().vault_root == Path("/old")


def test_a_failed_save_leaves_no_temporary_file(home: Path) -> None:
    (home / "config.json/occupied").mkdir(parents=True)
    with pytest.raises(OSError, match="config.json"):
        save({}, home / "config.json")
    assert [file.name for file in home.iterdir()] == ["config.json"]


def test_every_setting_is_described() -> None:
    def undescribed(model: type[BaseModel]) -> list[str]:
        missing = []
        for name, field in model.model_fields.items():
            kind = field.annotation
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                missing += undescribed(kind)
                missing += [] if kind.__doc__ else [name]
            elif not field.description:
                missing.append(name)
        return missing

    assert undescribed(Settings) == []
    assert {"vault_path", "embedding.provider", "memory.patterns"} <= set(setting_names())


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("embedding.provider", "hash", "hash"),
        ("embedding.provider", '"hash"', "hash"),
        ("indexing.chunk_size", "300", 300),
        ("security.local_only", "false", False),
        ("indexing.allow_dirs", '["Journal", "Finance"]', ["Journal", "Finance"]),
        ("embedding.model", "null", None),
        ("vault_path", "/home/me/My Notes", "/home/me/My Notes"),
    ],
)
def test_a_setting_is_set_from_json_or_a_bare_word(key: str, text: str, value: object) -> None:
    tree: dict[str, Any] = {"embedding": {"timeout_s": 5}}
    set_value(tree, key, text)
    section, _, name = key.partition(".")
    assert (tree[section][name] if name else tree[section]) == value
    assert tree["embedding"]["timeout_s"] == 5


@pytest.mark.parametrize(
    ("key", "text"), [("vault_path", "2024"), ("embedding.model", "7"), ("vault_path", "true")]
)
def test_a_bare_word_that_looks_like_json_is_still_text_where_text_is_wanted(
    key: str, text: str
) -> None:
    tree: dict[str, Any] = {}
    set_value(tree, key, text)
    settings = config.validate(tree, Path("config.json"))
    section, _, name = key.partition(".")
    value = getattr(settings, section)
    assert (getattr(value, name) if name else value) == text


def test_setting_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidArgument) as caught:
        set_value({}, "embedding.provder", "hash")
    assert "'embedding.provider'" in caught.value.message


def test_a_section_that_is_no_object_is_refused_when_set() -> None:
    with pytest.raises(ConfigInvalid):
        set_value({"embedding": 3}, "embedding.provider", "hash")


def test_settings_are_frozen() -> None:
    settings = Settings()
    with pytest.raises(ValidationError):
        settings.vault_path = "/x"  # type: ignore[misc]  # the point of the test
    with pytest.raises(ValidationError):
        settings.embedding.provider = "hash"  # type: ignore[misc]  # the point of the test


def test_a_loaded_config_is_frozen() -> None:
    loaded: Config = load()
    with pytest.raises(AttributeError):
        loaded.home = Path("/elsewhere")  # type: ignore[misc]  # the point of the test


def test_no_setting_answers_a_wrong_value_in_the_words_of_a_library() -> None:
    library = ("Input should", "valid tuple", "type=", "unable to parse")
    for key in setting_names():
        for value in ("nonsense", "-1", "[[]]", '{"a": {}}', "null"):
            try:
                set_value({}, key, value)
            except ConfigInvalid as error:
                assert not [word for word in library if word in error.message], (key, value)
                assert key in error.message
