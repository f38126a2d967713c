"""Which folders are watched: those a scan walks."""

import os
from pathlib import Path

import pytest

from obsidian_rag.vault import Rules
from obsidian_rag.vault.fs_events import Folders, list_folders


def make(root: Path, *folders: str) -> None:
    for folder in folders:
        (root / folder).mkdir(parents=True)


def listed(root: Path, rules: Rules | None = None) -> Folders:
    real = os.path.realpath(root)
    return list_folders(real, rules or Rules(), {real: ""})


def places(found: Folders) -> list[str]:
    return sorted(found.places.values())


def test_hidden_and_denied_folders_are_left_out(tmp_path: Path) -> None:
    make(tmp_path, "a/b/.git", "a/c", "d/e", "f/node_modules/g")
    found = listed(tmp_path, Rules(deny_dirs=("node_modules",)))
    assert places(found) == ["", "a", "a/b", "a/c", "d", "d/e", "f"]
    assert {os.path.relpath(real, tmp_path) for real in found.places} >= {".", "a/b", "f"}


def test_folders_on_the_way_to_an_allowed_one_are_listed(tmp_path: Path) -> None:
    make(tmp_path, "work/notes/deep", "work/other", "home")
    found = listed(tmp_path, Rules(allow_dirs=("work/notes",)))
    assert places(found) == ["", "work", "work/notes", "work/notes/deep"]


def test_a_link_out_of_the_vault_is_not_followed(tmp_path: Path) -> None:
    make(tmp_path, "vault/a", "outside/b")
    (tmp_path / "vault/a/link").symlink_to(tmp_path / "outside", target_is_directory=True)
    (tmp_path / "vault/a/.link").symlink_to(tmp_path, target_is_directory=True)
    assert places(listed(tmp_path / "vault")) == ["", "a"]


def test_links_within_the_vault_name_no_folder_twice_and_loops_end(tmp_path: Path) -> None:
    make(tmp_path, "a/b", "c")
    (tmp_path / "c/to a").symlink_to("../a", target_is_directory=True)
    (tmp_path / "a/b/up").symlink_to("../..", target_is_directory=True)
    (tmp_path / "a/self").symlink_to("self", target_is_directory=True)
    found = listed(tmp_path)
    assert places(found) == ["", "a", "a/b", "c"]
    assert found.links == set()


def test_a_folder_only_a_link_leads_to_is_known_by_the_link(tmp_path: Path) -> None:
    make(tmp_path, "open", "shut/inner", "shut/.hidden")
    (tmp_path / "open/z").symlink_to("../shut", target_is_directory=True)
    (tmp_path / "open/y").symlink_to("../shut", target_is_directory=True)
    (tmp_path / "open/x").symlink_to("../shut/.hidden", target_is_directory=True)
    found = listed(tmp_path, Rules(allow_dirs=("open",)))
    assert places(found) == ["", "open", "open/y", "open/y/inner"]
    assert found.links == {"open/y"}


def test_a_name_that_is_not_utf8_is_left_out(tmp_path: Path) -> None:
    make(tmp_path, "a")
    try:
        os.mkdir(os.fsencode(tmp_path) + b"/bad\xff")  # noqa: PTH102  (a name no Path can spell)
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert places(listed(tmp_path)) == ["", "a"]


def test_a_folder_that_cannot_be_read_is_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "a/shut", "a/b")
    (tmp_path / "a/shut").chmod(0)
    if os.geteuid() == 0:  # permission bits do not stop root, so the refusal is made up
        real_scandir = os.scandir

        def scandir(path: str) -> object:
            if path.endswith("/shut"):
                raise PermissionError(13, "Permission denied")
            return real_scandir(path)

        monkeypatch.setattr(os, "scandir", scandir)
    found = listed(tmp_path)
    (tmp_path / "a/shut").chmod(0o700)
    assert places(found) == ["", "a", "a/b"]
    assert found.unreadable == ["a/shut"]


def test_a_missing_folder_has_no_folders(tmp_path: Path) -> None:
    assert listed(tmp_path / "nowhere") == Folders()
