"""The data folder is its owner's alone, and one that may not be written can still be searched."""

import os
import stat
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.fixture_types import Cli, Configure, MakeVault
from tests.transports.command_line import COMMAND, Done
from tests.waiting import PATIENCE_S

from obsidian_rag.vault import replace_note

NOBODY = 65534
NOTES = {"Boat.md": "# Boat\n\nThe boat is blue.\n", "Sea.md": "# Sea\n\nThe sea, a [[Boat]].\n"}
QUICK: Mapping[str, object] = {"watcher.enabled": False}


def run(*arguments: str) -> Done:
    """A command as a user runs it whose umask hides nothing."""
    done = subprocess.run(
        [*COMMAND, *arguments], umask=0, capture_output=True, text=True, timeout=PATIENCE_S
    )
    return Done(done.returncode, done.stdout, done.stderr)


def modes(folder: Path) -> dict[str, int]:
    """What others may do with anything in a folder, where they may do anything."""
    found = {str(path): stat.S_IMODE(path.lstat().st_mode) for path in (folder, *folder.rglob("*"))}
    return {path: mode for path, mode in found.items() if mode & 0o077}


def test_files_and_folders_are_the_owners_alone_whatever_the_umask_and_whoever_made_the_folder(
    make_vault: MakeVault, configure: Configure, home: Path
) -> None:
    home.mkdir()
    home.chmod(0o755)
    configure(make_vault(NOTES), QUICK)
    for command in (
        ("index",),
        ("search", "boat"),
        ("related", "Boat"),
        ("memory", "store", "boat", "blue", "--source", "Boat.md"),
        ("serve", "--detach"),
        ("search", "sea"),
        ("index",),
    ):
        assert run(*command).code == 0, command
    try:
        assert modes(home) == {}
        assert {"state.db", "relations.db", "vectors.lance", "logs"} <= {
            p.name for p in home.iterdir()
        }
    finally:
        assert run("serve", "--stop").code == 0
    assert modes(home) == {}


def test_what_others_could_read_before_is_closed_to_them(
    cli: Cli, make_vault: MakeVault, configure: Configure, home: Path
) -> None:
    configure(make_vault(NOTES), {})
    assert cli("index").code == 0
    for path in (*home.rglob("*"), home):
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert cli("search", "boat").code == 0
    assert modes(home) == {}
    (home / "state.db").chmod(0o644)
    shown = cli("doctor", "--json").json["data"]["findings"]
    assert {one["check"]: one["verdict"] for one in shown}["permissions"] == "warning"
    assert cli("sync").code == 0
    assert modes(home) == {}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_folder_of_somebody_else_is_refused(
    cli: Cli, make_vault: MakeVault, configure: Configure, home: Path
) -> None:
    configure(make_vault(NOTES), {})
    assert cli("index").code == 0
    os.chown(home, NOBODY, NOBODY)
    done = cli("search", "boat", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "SECURITY_VIOLATION")
    assert str(home) in done.err
    os.chown(home, 0, 0)
    # A folder that everybody could write to, and somebody did.
    home.chmod(0o777)
    (home / "logs").mkdir(exist_ok=True)
    os.chown(home / "logs", NOBODY, NOBODY)
    done = cli("search", "boat", "--json")
    assert done.json["error"]["code"] == "SECURITY_VIOLATION"
    assert "logs" in done.err
    os.chown(home / "logs", 0, 0)
    assert cli("search", "boat").code == 0
    assert modes(home) == {}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_link_that_somebody_else_made_is_not_followed(
    cli: Cli, make_vault: MakeVault, configure: Configure, home: Path, tmp_path: Path
) -> None:
    configure(make_vault(NOTES), {})
    home.rename(tmp_path / "elsewhere")
    home.symlink_to(tmp_path / "elsewhere")
    assert cli("index").code == 0
    os.lchown(home, NOBODY, NOBODY)
    done = cli("search", "boat", "--json")
    assert done.json["error"]["code"] == "SECURITY_VIOLATION"


def test_a_new_note_is_as_open_as_its_folder(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        for mode, note, folder in (
            (0o755, 0o644, 0o755),
            (0o770, 0o660, 0o770),
            (0o700, 0o600, 0o700),
        ):
            root = tmp_path / f"{mode:o}"
            root.mkdir()
            root.chmod(mode)
            replace_note(root, "Sub/New.md", None, b"new")
            assert stat.S_IMODE((root / "Sub").stat().st_mode) == folder
            assert stat.S_IMODE((root / "Sub/New.md").stat().st_mode) == note
    finally:
        os.umask(before)


@pytest.fixture
def shut(cli: Cli, make_vault: MakeVault, configure: Configure, home: Path) -> Iterator[Path]:
    """An indexed data folder that may only be read; for root that takes a mount."""
    configure(make_vault(NOTES), QUICK)
    assert cli("index").code == 0
    if os.getuid() != 0:
        for path in (home, *home.rglob("*")):
            path.chmod(0o500 if path.is_dir() else 0o400)
        yield home
        for path in (home, *home.rglob("*")):
            path.chmod(0o700)
        return
    for options in (["--bind", str(home)], ["-o", "remount,ro,bind"]):
        if subprocess.run(["mount", *options, str(home)], capture_output=True).returncode:
            pytest.skip("a read-only disk needs the right to mount one")
    yield home
    subprocess.run(["umount", "-l", str(home)], check=True)


def test_a_read_only_data_folder_answers_and_says_what_it_cannot_do(shut: Path, cli: Cli) -> None:
    for asked in (
        ("search", "boat"),
        ("status",),
        ("related", "Boat"),
        ("memory", "recall", "x"),
    ):
        done = cli(*asked, "--json")
        assert done.code == 0, (asked, done.err)
        assert (done.json["status"], done.json["error"]) == ("healthy", None)
    for command in (
        ("sync",),
        ("reindex",),
        ("serve", "--detach"),
        ("config", "set", "indexing.max_file_mb", "3"),
        ("memory", "store", "a", "b", "--source", "Boat.md"),
    ):
        done = cli(*command)
        assert done.code == 2
        assert "READ_ONLY" in done.err
        assert "unexpected" not in done.err + done.out
        assert "crash.log" not in done.err
