"""Temporary files that a kill left behind are swept, and nobody else's files are."""

import os
import time
from pathlib import Path

import pytest
from tests.vault.killed import NOTE, killed_writer

from obsidian_rag.vault import Rules, scan, sweep, sweep_data_folder, walk_files
from obsidian_rag.vault.temporary import is_temporary, temporary_name


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock an hour ahead: nothing else makes a file old that was just made."""
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3600)


def leftovers(root: Path) -> list[str]:
    found = walk_files(root).leftovers
    assert found == scan(root, Rules()).leftovers
    return list(found)


def test_what_a_killed_writer_left_is_swept(tmp_path: Path, later: None) -> None:
    left = killed_writer(tmp_path)
    assert leftovers(tmp_path) == [left.relative_to(tmp_path).as_posix()]
    assert sweep(tmp_path, leftovers(tmp_path)) == [left.relative_to(tmp_path).as_posix()]
    assert [one.name for one in left.parent.iterdir()] == [NOTE.rpartition("/")[2]]
    assert (tmp_path / NOTE).read_text() == "old content"


def test_nothing_is_swept_that_is_fresh(tmp_path: Path) -> None:
    left = killed_writer(tmp_path)
    assert sweep(tmp_path, leftovers(tmp_path)) == []
    assert left.exists()


def test_nothing_is_swept_of_a_writer_that_lives(tmp_path: Path, later: None) -> None:
    ours = tmp_path / temporary_name("n.md")
    ours.write_text("being written")
    os.utime(ours)
    assert sweep(tmp_path, [ours.name]) == []
    # Another process that lives: whoever started these tests.
    theirs = ours.name.replace(f"-{os.getpid():x}-", f"-{os.getppid():x}-")
    (tmp_path / theirs).write_text("x")
    assert sweep(tmp_path, [theirs]) == []


def test_a_file_that_only_looks_like_ours_is_never_swept(tmp_path: Path, later: None) -> None:
    left = killed_writer(tmp_path)
    name = left.name
    alike = [
        ".n.md.tmp-0123abcd",
        f"{name}x",
        f"x{name}",
        name[:-1] + ("0" if name[-1] != "0" else "1"),
        name.replace("ein langer", "EIN langer"),
        "notes.tmp-1-2.md",
        ".tmp-",
    ]
    for one in alike:
        (left.parent / one).write_text("the user's")
        assert not is_temporary(one)
    assert leftovers(tmp_path) == [left.relative_to(tmp_path).as_posix()]
    sweep(tmp_path, [(left.parent / one).relative_to(tmp_path).as_posix() for one in alike])
    assert all((left.parent / one).exists() for one in alike)


def test_a_leftover_that_is_no_file_or_was_touched_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = killed_writer(tmp_path)
    rel = left.relative_to(tmp_path).as_posix()
    target = tmp_path / "target.md"
    target.write_text("x")
    left.unlink()
    left.symlink_to(target)
    monkeypatch.setattr(time, "time", lambda real=time.time: real() + 3600)
    assert sweep(tmp_path, [rel]) == []
    left.unlink()
    left.mkdir()
    assert sweep(tmp_path, [rel]) == []
    left.rmdir()
    # Made long ago by its name, and written to just now: somebody uses it.
    monkeypatch.setattr(time, "time", lambda real=time.time: real() - 200_000)
    old = temporary_name("n.md")
    monkeypatch.undo()
    (tmp_path / old).write_text("edited")
    assert sweep(tmp_path, [old]) == []


def test_the_data_folder_is_swept_too(tmp_path: Path) -> None:
    old, new, other = (
        tmp_path / name
        for name in (".config.json.a1b2c3d4.tmp", ".config.json.zzzzzzzz.tmp", "state.db")
    )
    for file in (old, new, other):
        file.write_text("x")
    long_ago = time.time() - 200_000
    os.utime(old, (long_ago, long_ago))
    os.utime(other, (long_ago, long_ago))
    assert sweep_data_folder(tmp_path) == [old.name]
    assert new.exists() and other.exists()
    assert sweep_data_folder(tmp_path / "none") == []
