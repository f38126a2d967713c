"""The OpenClaw plugin says what the engine says, and nothing a security scanner would refuse."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.scripts import imported

from obsidian_rag import __version__
from obsidian_rag.config.settings import LivesyncSettings
from obsidian_rag.tools import TOOLS
from obsidian_rag.tools.dispatch import schemas

PLUGIN = Path(__file__).parent.parent / "plugins" / "openclaw"
SOURCES = sorted((PLUGIN / "src").glob("*.ts"))


@pytest.fixture(scope="module")
def generate() -> Iterator[ModuleType]:
    with imported(PLUGIN / "generate.py", "openclaw_generate") as module:
        yield module


def _json(name: str) -> Any:
    return json.loads((PLUGIN / name).read_text(encoding="utf-8"))


def test_the_generated_files_are_up_to_date(generate: ModuleType) -> None:
    assert generate.stale() == []


def test_the_plugin_offers_every_tool_with_the_engines_own_schema() -> None:
    tools = {tool["name"]: tool for tool in _json("src/tools.json")["tools"]}
    assert {name: tool["parameters"] for name, tool in tools.items()} == schemas()
    assert all(tools[name]["description"] == tool.description for name, tool in TOOLS.items())


def test_the_manifest_declares_every_tool_in_every_profile() -> None:
    manifest = _json("openclaw.plugin.json")
    assert manifest["contracts"]["tools"] == list(TOOLS)
    assert list(manifest["toolMetadata"]) == list(TOOLS)
    for name, told in manifest["toolMetadata"].items():
        assert told["profiles"] == ["minimal", "coding", "messaging", "full"]
        assert told["sideEffecting"] is not TOOLS[name].is_read_only


def test_all_versions_are_the_engines() -> None:
    lock = _json("package-lock.json")
    named = [_json(name)["version"] for name in ("openclaw.plugin.json", "package.json")]
    named += [lock["version"], lock["packages"][""]["version"], _json("src/tools.json")["version"]]
    assert set(named) == {__version__}


def test_a_tool_that_the_engine_gains_needs_only_a_new_run_of_the_generator(
    generate: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(generate.TOOLS, "obsidian_rag_new", TOOLS["obsidian_rag_status"])
    made = generate.files()
    assert generate.stale() == ["src/tools.json", "openclaw.plugin.json"]
    assert "obsidian_rag_new" in json.loads(made["openclaw.plugin.json"])["contracts"]["tools"]


def test_the_settings_of_the_manifest_are_the_settings_of_the_source_and_documented() -> None:
    source = (PLUGIN / "src" / "settings.ts").read_text(encoding="utf-8")
    docs = (PLUGIN.parent.parent / "docs" / "openclaw.md").read_text(encoding="utf-8")
    names = set(_json("openclaw.plugin.json")["configSchema"]["properties"])
    assert set(re.findall(r'given\["(\w+)"\]', source)) == names
    assert {name for name in names if f"| `{name}` |" not in docs} == set()


def test_the_livesync_settings_are_taken_up_and_mean_the_engines() -> None:
    source = (PLUGIN / "src" / "settings.ts").read_text(encoding="utf-8")
    given = _json("openclaw.plugin.json")["configSchema"]["properties"]["livesync"]["properties"]
    assert {name for name in given if f'"{name}"' not in source} == set()
    engines = LivesyncSettings.model_json_schema()["properties"]
    assert given["logLevel"]["enum"] == engines["logLevel"]["enum"]
    assert set(given) - set(engines) == {"remoteConsent"}


def test_the_skill_tells_when_to_use_each_tool() -> None:
    skill = (PLUGIN / "skills" / "obsidian-rag" / "SKILL.md").read_text(encoding="utf-8")
    assert [name for name in TOOLS if f"`{name}`" not in skill] == []


def test_the_documents_install_a_linked_plugin_in_the_way_that_works() -> None:
    root = PLUGIN.parent.parent
    texts = [root / "README.md", root / "docs" / "openclaw.md", PLUGIN / "README.md"]
    for file in texts:
        found = re.findall(r"openclaw plugins install --link.*", file.read_text(encoding="utf-8"))
        assert found, file
        assert all("--force --accept-capabilities" in line for line in found), file


def test_no_dependency_is_installed_with_the_plugin_and_the_lock_names_no_registry() -> None:
    assert "dependencies" not in _json("package.json")
    assert "://" not in (PLUGIN / "package-lock.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_no_source_does_what_openclaws_scanner_refuses(source: Path) -> None:
    text = source.read_text(encoding="utf-8")
    assert re.findall(r"child_process|\beval\(|\bnew Function\(|\brequire\(", text) == []
    if "fetch(" in text:
        assert re.findall(r"process\.env|readFile|node:fs", text) == []


def test_no_source_is_long() -> None:
    files = [*SOURCES, *(PLUGIN / "test").glob("*.ts")]
    sizes = {file.name: len(file.read_text("utf-8").splitlines()) for file in files}
    assert {name: size for name, size in sizes.items() if size > 300} == {}
