import json
from pathlib import Path

import pytest

from obsidian_rag.vault import obsidian_vaults

PLACES = [
    ("linux", ".config/obsidian/obsidian.json"),
    ("linux", ".var/app/md.obsidian.Obsidian/config/obsidian/obsidian.json"),
    ("linux", "snap/obsidian/current/.config/obsidian/obsidian.json"),
    ("darwin", "Library/Application Support/obsidian/obsidian.json"),
    ("win32", "AppData/obsidian/obsidian.json"),
]


def _environ(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "APPDATA": str(home / "AppData")}


def _write(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize(("platform", "place"), PLACES)
def test_vaults_are_found_where_obsidian_keeps_its_list(
    tmp_path: Path, platform: str, place: str
) -> None:
    vault = tmp_path / "My Nötes"
    vault.mkdir()
    _write(tmp_path / place, {"vaults": {"1": {"path": str(vault), "ts": 1, "open": True}}})
    assert obsidian_vaults(_environ(tmp_path), platform) == [vault]


def test_xdg_config_home_takes_the_place_of_the_default(tmp_path: Path) -> None:
    for name in ("moved", "default"):
        (tmp_path / name).mkdir()
    _write(
        tmp_path / "xdg/obsidian/obsidian.json", {"vaults": {"1": {"path": f"{tmp_path}/moved"}}}
    )
    _write(tmp_path / PLACES[0][1], {"vaults": {"1": {"path": f"{tmp_path}/default"}}})
    environ = _environ(tmp_path) | {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert obsidian_vaults(environ, "linux") == [tmp_path / "moved"]


def test_open_vaults_come_first_then_the_newest_and_only_existing_ones_once(
    tmp_path: Path,
) -> None:
    for name in ("old", "new", "open"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").touch()
    listed = {
        "1": {"path": str(tmp_path / "old"), "ts": 1},
        "2": {"path": str(tmp_path / "new"), "ts": 3},
        "3": {"path": str(tmp_path / "open"), "ts": 2, "open": True},
        "4": {"path": str(tmp_path / "gone"), "ts": 9},
        "5": {"path": str(tmp_path / "file"), "ts": 9},
        "6": {"path": "relative", "ts": 9},
        "7": {"path": 7},
        "8": "nonsense",
        "9": {"path": f"{tmp_path}/x\0y"},
    }
    for place in (PLACES[0][1], PLACES[1][1]):
        _write(tmp_path / place, {"vaults": listed})
    expected = [tmp_path / "open", tmp_path / "new", tmp_path / "old"]
    assert obsidian_vaults(_environ(tmp_path), "linux") == expected


@pytest.mark.parametrize("content", ["{", "[]", '{"vaults": []}', "{}", "[" * 100_000, '"x"'])
def test_a_broken_list_means_no_suggestions(tmp_path: Path, content: str) -> None:
    _write(tmp_path / PLACES[0][1], content)
    assert obsidian_vaults(_environ(tmp_path), "linux") == []


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_an_empty_environment_means_no_suggestions(platform: str) -> None:
    assert obsidian_vaults({}, platform) == []
