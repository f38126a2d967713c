"""The Obsidian plugin's files agree with each other and with the community's rules."""

import json
import re
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parent.parent / "plugins" / "obsidian"
MOST_LINES = 300


def read(name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((PLUGIN / name).read_text())
    return found


def test_the_manifest_follows_the_rules_of_the_directory() -> None:
    manifest = read("manifest.json")
    assert manifest["id"] == "rag-companion"
    assert manifest["name"] == "RAG Companion"
    assert manifest["isDesktopOnly"] is True
    assert manifest["minAppVersion"] == "1.8.7"
    assert (
        "obsidian" not in f"{manifest['id']} {manifest['name']} {manifest['description']}".lower()
    )
    assert re.fullmatch(r"\d+\.\d+\.\d+", str(manifest["version"]))
    assert str(manifest["description"]).endswith(".")


def test_versions_agree() -> None:
    manifest = read("manifest.json")
    assert manifest["version"] == read("package.json")["version"]
    assert read("versions.json")[str(manifest["version"])] == manifest["minAppVersion"]


def test_the_plugin_has_no_runtime_dependency() -> None:
    assert "dependencies" not in read("package.json")


@pytest.mark.parametrize("name", ["package-lock.json", "lint/package-lock.json"])
def test_no_lock_names_a_registry(name: str) -> None:
    assert "resolved" not in (PLUGIN / name).read_text()


def test_no_module_is_long_and_none_makes_markup_of_text() -> None:
    for file in (PLUGIN / "src").glob("*.ts"):
        text = file.read_text()
        assert len(text.splitlines()) <= MOST_LINES, file.name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|eval\(", text), file.name


def test_the_readme_discloses_network_files_and_programs() -> None:
    text = (PLUGIN / "README.md").read_text()
    for word in ("127.0.0.1", "daemon.json", "serve --detach", "No telemetry"):
        assert word in text


def test_every_setting_and_command_of_the_plugin_is_in_the_guide() -> None:
    guide = (PLUGIN.parent.parent / "docs" / "guides" / "obsidian.md").read_text().lower()
    commands = re.findall(r'name: "([^"]+)"', (PLUGIN / "src" / "commands.ts").read_text())
    assert {"find related notes", "reindex vault"} <= {name.lower() for name in commands}
    assert [name for name in commands if name.lower() not in guide] == []
