"""Any file of a vault: seen or told why not, read whole, replaced, renamed, trashed, restored."""

import errno
import io
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.waiting import PATIENCE_S

from obsidian_rag.errors import (
    IndexerFailed,
    NoteChanged,
    NotFound,
    ReadOnly,
    SecurityViolation,
)
from obsidian_rag.vault import (
    FileEntry,
    boundary,
    content_hash,
    create_beside,
    discard_kept,
    read_bytes,
    remove_file,
    rename_file,
    replace_file,
    restore_file,
    walk_files,
)
from obsidian_rag.vault import files as files_module
from obsidian_rag.vault import read as read_module
from obsidian_rag.vault import trash as trash_module
from obsidian_rag.vault import write as write_module
from obsidian_rag.vault.boundary import open_inside
from obsidian_rag.vault.walk import Listing, Walk

OLD, NEW = b"old \x00\xff bytes\r\n", b"new \x80 bytes"
MTIME = 1_700_000_000_123_000_000


@pytest.fixture(params=[True, False], ids=["by-descriptor", "by-path"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Windows works by path; both ways are run here.
    monkeypatch.setattr(boundary, "_WALKS_BY_DESCRIPTOR", request.param)
    root = tmp_path / "vault"
    root.mkdir()
    return root


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "data/trash/1/a.png"


def put(root: Path, rel: str, data: bytes = OLD) -> Path:
    file = root / rel
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def everything(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


def entry_of(file: Path, rel: str) -> FileEntry:
    status = file.stat()
    return FileEntry(rel, status.st_size, status.st_mtime_ns, status.st_ino)


# Walking


def test_a_walk_sees_every_file_and_nothing_hidden(root: Path) -> None:
    for rel in ("n.md", "a/b/c.png", "a/x", "Ünï/ß.pdf", "a/.hidden.md", ".obsidian/app.json"):
        put(root, rel)
    put(root, ".n.md.tmp-0123abcd")
    (root / "empty").mkdir()
    walk = walk_files(root)
    assert {entry.rel_path for entry in walk.files} == {"n.md", "a/b/c.png", "a/x", "Ünï/ß.pdf"}
    assert entry_of(root / "a/b/c.png", "a/b/c.png") in walk.files
    assert (walk.unseen, walk.is_complete, walk.has_root, walk.is_empty) == ({}, True, True, False)
    assert not walk.may_hide("a/gone.md")


def test_links_and_devices_are_left_out_and_what_they_hide_is_not_gone(root: Path) -> None:
    put(root, "real/n.md")
    (root / "link.md").symlink_to("real/n.md")
    (root / "dangling.md").symlink_to("nowhere.md")
    (root / "folder").symlink_to("real")
    (root / "loop").symlink_to(".")
    os.mkfifo(root / "fifo.md")
    walk = walk_files(root)
    assert [entry.rel_path for entry in walk.files] == ["real/n.md"]
    assert walk.unseen == {
        "link.md": "symlink",
        "dangling.md": "symlink",
        "folder": "symlink",
        "loop": "symlink",
        "fifo.md": "not_a_file",
    }
    assert walk.is_complete
    for hidden in ("link.md", "folder/n.md", "folder/deep/n.md", "FOLDER/n.md", "fifo.md"):
        assert walk.may_hide(hidden), hidden
    for gone in ("real/gone.md", "folders/n.md", "link.md.bak"):
        assert not walk.may_hide(gone), gone


def test_a_folder_that_cannot_be_read_hides_its_files(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, "ok/n.md")
    put(root, "locked/deep/n.md")
    real_scandir = os.scandir

    # Tests may run as root, whom no permission stops.
    def scandir(path: str) -> "os._ScandirIterator[str]":
        if path.endswith("locked"):
            raise PermissionError(errno.EACCES, "denied")
        return real_scandir(path)

    monkeypatch.setattr(os, "scandir", scandir)
    walk = walk_files(root)
    assert [entry.rel_path for entry in walk.files] == ["ok/n.md"]
    assert walk.unseen == {"locked": "unreadable"}
    assert not walk.is_complete
    assert walk.may_hide("locked/deep/n.md")
    assert not walk.may_hide("ok/gone.md")


def test_names_we_could_not_open_again_are_told(root: Path) -> None:
    put(root, "ok.md")
    put(root, "esc\x1b[2J.md")
    (Path(os.fsdecode(os.fsencode(root) + b"/latin-\xe9.md"))).write_bytes(OLD)
    put(root, ".evicted.md.icloud")
    walk = walk_files(root)
    assert [entry.rel_path for entry in walk.files] == ["ok.md"]
    assert walk.unseen == {
        "esc\x1b[2J.md": "unsafe_name",
        "latin-\\udce9.md": "not_utf8_name",
        "evicted.md": "cloud_placeholder",
    }
    assert walk.may_hide("evicted.md")


def test_an_empty_root_is_told_from_one_that_only_has_no_files(root: Path) -> None:
    assert walk_files(root).is_empty
    put(root, ".obsidian/app.json")
    assert walk_files(root).is_empty, "what a program makes in an unmounted folder"
    (root / "folder").mkdir()
    assert not walk_files(root).is_empty


@pytest.mark.parametrize("kind", ["missing", "a file"])
def test_a_missing_root_hides_everything(tmp_path: Path, kind: str) -> None:
    if kind == "a file":
        (tmp_path / "vault").write_bytes(b"")
    walk = walk_files(tmp_path / "vault")
    assert (walk.files, walk.unseen) == ([], {"": "missing"})
    assert (walk.is_complete, walk.has_root, walk.is_empty) == (False, False, True)
    assert walk.may_hide("n.md")


def test_a_disk_exchanged_during_the_walk_proves_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, "a/n.md")

    folders = Walk.folders

    # The exchange must fall into the walk.
    def walk_and_exchange(walk: Walk) -> Iterator[Listing]:
        yield from folders(walk)
        root.rename(root.parent / "unplugged")
        root.mkdir()

    monkeypatch.setattr(Walk, "folders", walk_and_exchange)
    walk = walk_files(root)
    assert (walk.files, walk.unseen) == ([], {"": "replaced"})
    assert walk.may_hide("a/n.md")


# Reading


def test_bytes_are_read_with_the_facts_of_that_moment(root: Path) -> None:
    file = put(root, "a/b.png")
    data, entry = read_bytes(root, "./a//b.png")
    assert (data, entry) == (OLD, entry_of(file, "a/b.png"))
    assert entry in walk_files(root).files
    put(root, "empty", b"")
    assert read_bytes(root, "empty")[0] == b""


class _Busy(io.FileIO):
    """A file that another program is writing to."""

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        with Path(str(self.name)).open("ab") as stream:
            stream.write(b"more")
        return data or b""


@pytest.mark.parametrize("is_read", [True, False])
def test_a_file_being_written_is_read_when_it_rests(
    root: Path, monkeypatch: pytest.MonkeyPatch, is_read: bool
) -> None:
    # The write must fall exactly between two looks at the file.
    put(root, "b.png", b"start")
    opened = 0

    def open_busy(root: Path, rel: str) -> object:
        nonlocal opened
        opened += 1
        return open_inside(root, rel) if is_read and opened == 3 else _Busy(root / rel)

    monkeypatch.setattr(read_module, "open_inside", open_busy)
    if is_read:
        assert read_bytes(root, "b.png")[0] == b"startmoremore"
    else:
        with pytest.raises(NoteChanged):
            read_bytes(root, "b.png")


def test_what_cannot_be_read_says_why(root: Path) -> None:
    put(root, "n.md")
    (root / "link.md").symlink_to("n.md")
    (root / "folder").mkdir()
    for rel, error in (
        ("none.md", NotFound),
        ("n.md/below.md", NotFound),
        ("folder", SecurityViolation),
        ("link.md", SecurityViolation),
        ("../n.md", SecurityViolation),
        (".obsidian/app.json", SecurityViolation),
        ("x" * 300, IndexerFailed),
    ):
        with pytest.raises(error):
            read_bytes(root, rel)


# Replacing


def test_a_file_is_created_with_its_folders_and_its_time(root: Path) -> None:
    entry = replace_file(root, "a/b/n.png", None, NEW, MTIME)
    assert everything(root) == {"a/b/n.png": NEW}
    assert entry == entry_of(root / "a/b/n.png", "a/b/n.png")
    assert entry.mtime_ns == MTIME
    assert walk_files(root).files == [entry]


def test_a_file_is_replaced_with_its_time(root: Path) -> None:
    put(root, "n.png")
    entry = replace_file(root, "n.png", content_hash(OLD), NEW, MTIME)
    assert everything(root) == {"n.png": NEW}
    assert entry == entry_of(root / "n.png", "n.png")
    assert entry.mtime_ns == MTIME


@pytest.mark.parametrize("mtime_ns", [0, -1, -(2**62), 2**63, 2**63 - 1, 10**30, -(10**30)])
def test_a_time_that_no_disk_can_write_does_not_stop_the_file(root: Path, mtime_ns: int) -> None:
    entry = replace_file(root, "n.md", None, NEW, mtime_ns)
    assert everything(root) == {"n.md": NEW}
    assert entry == entry_of(root / "n.md", "n.md")
    assert abs(entry.mtime_ns) < 2**63


def test_replacing_refuses_what_is_not_as_expected(root: Path) -> None:
    put(root, "n.md")
    for rel, expected in (
        ("n.md", None),
        ("n.md", content_hash(NEW)),
        ("none.md", content_hash(OLD)),
    ):
        with pytest.raises(NoteChanged):
            replace_file(root, rel, expected, NEW, MTIME)
    assert everything(root) == {"n.md": OLD}


def test_an_edit_right_after_our_write_is_not_taken_for_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The edit must fall between the rename and the return.
    put(root, "n.md")
    real_replace = os.replace

    def replace_then_edit(*args: str, **folders: int | None) -> None:
        real_replace(*args, **folders)  # type: ignore[arg-type]  # passed on untouched
        (root / "n.md").write_bytes(b"the user's")

    monkeypatch.setattr(os, "replace", replace_then_edit)
    entry = replace_file(root, "n.md", content_hash(OLD), NEW, MTIME)
    assert entry != entry_of(root / "n.md", "n.md")
    assert (entry.size_bytes, entry.mtime_ns) == (len(NEW), MTIME)


def test_an_edit_made_while_a_large_file_is_compared_wins(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(root, "n.md")

    # The edit must fall between the reading and the end of the comparison.
    def hash_slowly(data: bytes) -> str:
        file.write_bytes(b"the user's")
        return content_hash(data)

    monkeypatch.setattr(write_module, "content_hash", hash_slowly)
    with pytest.raises(NoteChanged):
        replace_file(root, "n.md", content_hash(OLD), NEW)
    assert everything(root) == {"n.md": b"the user's"}


def test_hostile_paths_touch_nothing(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    put(root, "n.md")
    put(root, "real/n.md")
    (root / "inner").symlink_to("real")
    (root / "outer").symlink_to(outside)
    (root / "dangling.md").symlink_to("fresh.md")
    before = everything(root)
    for rel in (
        "../outside/x.md",
        "/etc/x.md",
        "a/../../outside/x.md",
        "outer/x.md",
        "inner/x.md",
        "dangling.md",
        ".obsidian/plugins/evil/main.js",
        "a/.git/config",
        "x\0.md",
    ):
        for expected in (None, content_hash(OLD)):
            with pytest.raises(SecurityViolation):
                replace_file(root, rel, expected, NEW)
        with pytest.raises(SecurityViolation):
            remove_file(root, rel, content_hash(OLD), root.parent / "trash/x")
        with pytest.raises(SecurityViolation):
            rename_file(root, "n.md", rel, content_hash(OLD))
        with pytest.raises(SecurityViolation):
            rename_file(root, rel, "free.md", content_hash(OLD))
    for rel in ("n.md/below.md", "x" * 300):
        with pytest.raises(IndexerFailed):
            replace_file(root, rel, None, NEW)
    assert everything(root) == before
    assert list(outside.iterdir()) == []
    assert not (root.parent / "trash").exists()


def test_a_file_beside_takes_the_first_free_name(root: Path) -> None:
    put(root, "a/n.tar.gz")
    for expected in ("a/n.tar (conflict).gz", "a/n.tar (conflict 2).gz"):
        assert create_beside(root, "a/n.tar.gz", "conflict", NEW, MTIME).rel_path == expected
    assert create_beside(root, "plain", "conflict", NEW).rel_path == "plain (conflict)"
    long = create_beside(root, "ü" * 126 + ".md", "conflict", NEW).rel_path
    assert long.endswith("ü (conflict).md")
    assert everything(root)[long] == NEW


# Renaming


def test_a_file_is_renamed_into_another_folder_and_the_empty_ones_go(root: Path) -> None:
    file = put(root, "a/b/n.md")
    put(root, "a/stays.md")
    before = entry_of(file, "c/d/m.md")
    entry = rename_file(root, "a/b/n.md", "c/d/m.md", content_hash(OLD))
    assert everything(root) == {"a/stays.md": OLD, "c/d/m.md": OLD}
    assert not (root / "a/b").exists()
    assert entry == before == entry_of(root / "c/d/m.md", "c/d/m.md")


@pytest.mark.parametrize(
    ("old", "new"), [("n.md", "N.md"), ("a/n.md", "A/n.md"), ("a/n.md", "A/N.MD"), ("n.md", "n.md")]
)
def test_only_the_case_of_a_path_changes(root: Path, old: str, new: str) -> None:
    put(root, old)
    rename_file(root, old, new, content_hash(OLD))
    assert everything(root) == {new: OLD}
    assert [folder.name for folder in root.iterdir()] == [new.split("/")[0]]


def test_a_disk_that_ignores_case_gets_the_new_spelling(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(root, "n.md")
    # On such a disk, which cannot be had here, the new name leads to the file already.
    monkeypatch.setattr(files_module, "status_of", lambda _name, _folder: file.stat())
    rename_file(root, "n.md", "N.md", content_hash(OLD))
    assert everything(root) == {"N.md": OLD}


def test_a_disk_that_has_one_case_only_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = put(root, "n.md")
    monkeypatch.setattr(files_module, "status_of", lambda _name, _folder: file.stat())
    monkeypatch.setattr(os, "rename", lambda *_args, **_kwargs: None)
    with pytest.raises(IndexerFailed):
        rename_file(root, "n.md", "N.md", content_hash(OLD))
    assert everything(root) == {"n.md": OLD}


@pytest.mark.parametrize("new", ["N.md", "other/n.md"])
def test_a_rename_that_a_crash_left_half_done_is_finished(root: Path, new: str) -> None:
    file = put(root, "n.md")
    (root / "other").mkdir()
    (root / new).hardlink_to(file)
    rename_file(root, "n.md", new, content_hash(OLD))
    assert everything(root) == {new: OLD}


def test_a_rename_never_overwrites(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(root, "n.md")
    put(root, "N.md", NEW)
    with pytest.raises(NoteChanged):
        rename_file(root, "n.md", "N.md", content_hash(OLD))
    real_link = os.link

    # After the last look only the system's own refusal to overwrite can help.
    def link_late(old: str, new: str, **folders: int | None) -> None:
        put(root, "late.md", NEW)
        real_link(old, new, **folders)  # type: ignore[arg-type]  # passed on untouched

    monkeypatch.setattr(os, "link", link_late)
    with pytest.raises(NoteChanged):
        rename_file(root, "n.md", "late.md", content_hash(OLD))
    assert everything(root) == {"n.md": OLD, "N.md": NEW, "late.md": NEW}


def test_a_disk_that_cannot_tell_files_apart_keeps_both(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(root, "n.md")
    put(root, "N.md", NEW)
    monkeypatch.setattr(files_module, "status_of", lambda _name, _folder: file.stat())
    with pytest.raises(NoteChanged):
        rename_file(root, "n.md", "N.md", content_hash(OLD))
    assert everything(root) == {"n.md": OLD, "N.md": NEW}


def test_a_disk_without_hard_links_renames_as_well(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_kwargs: object) -> None:
        raise OSError(errno.EPERM, "no hard links here")

    put(root, "n.md")
    put(root, "taken.md", NEW)
    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(NoteChanged):
        rename_file(root, "n.md", "taken.md", content_hash(OLD))
    rename_file(root, "n.md", "a/m.md", content_hash(OLD))
    assert everything(root) == {"a/m.md": OLD, "taken.md": NEW}


def test_a_file_saved_under_the_old_name_during_a_rename_stays(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, "n.md")
    real_link = os.link

    # The save must fall between the two halves of the rename.
    def link_then_save(old: str, new: str, **folders: int | None) -> None:
        real_link(old, new, **folders)  # type: ignore[arg-type]  # passed on untouched
        put(root, "saved", NEW).replace(root / "n.md")

    monkeypatch.setattr(os, "link", link_then_save)
    rename_file(root, "n.md", "m.md", content_hash(OLD))
    assert everything(root) == {"n.md": NEW, "m.md": OLD}


def test_a_file_that_changed_is_not_renamed(root: Path) -> None:
    put(root, "n.md", NEW)
    for old in ("n.md", "none.md"):
        with pytest.raises(NoteChanged):
            rename_file(root, old, "a/m.md", content_hash(OLD))
    assert everything(root) == {"n.md": NEW}
    assert not (root / "a").exists()


# Trash


def test_a_removed_file_is_kept_privately_with_its_time(root: Path, kept: Path) -> None:
    file = put(root, "a/b/n.png")
    os.utime(file, ns=(MTIME, MTIME))
    put(root, "a/stays.md")
    remove_file(root, "a/b/n.png", content_hash(OLD), kept)
    assert everything(root) == {"a/stays.md": OLD}
    assert not (root / "a/b").exists()
    assert kept.read_bytes() == OLD
    assert kept.stat().st_mtime_ns == MTIME
    assert kept.stat().st_mode & 0o777 == 0o600
    for folder in (kept.parent, kept.parent.parent, kept.parent.parent.parent):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in kept.parent.iterdir()] == [kept.name]


def test_emptied_folders_go_but_never_the_root_nor_one_with_anything_in_it(
    root: Path, kept: Path
) -> None:
    put(root, "a/b/n.md")
    put(root, "a/.hidden")
    put(root, "c/d/n.md")
    remove_file(root, "a/b/n.md", content_hash(OLD), kept.with_name("1"))
    remove_file(root, "c/d/n.md", content_hash(OLD), kept.with_name("2"))
    assert everything(root) == {"a/.hidden": OLD}
    assert [folder.name for folder in root.iterdir()] == ["a"]
    (root / "a/.hidden").unlink()
    (root / "a").rmdir()
    put(root, "last.md")
    remove_file(root, "last.md", content_hash(OLD), kept.with_name("3"))
    assert root.is_dir()


def test_a_file_that_is_not_as_expected_is_not_removed(root: Path, kept: Path) -> None:
    put(root, "n.md", NEW)
    for rel in ("n.md", "none.md"):
        with pytest.raises(NoteChanged):
            remove_file(root, rel, content_hash(OLD), kept)
    assert everything(root) == {"n.md": NEW}
    assert not kept.exists()


def test_an_edit_made_while_we_copy_stays(
    root: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The edit must fall between our two looks at the file.
    real_keep = trash_module._keep

    def keep_late(*args: object) -> None:
        real_keep(*args)  # type: ignore[arg-type]  # passed on untouched
        put(root, "n.md", b"the user's")

    put(root, "n.md")
    monkeypatch.setattr(trash_module, "_keep", keep_late)
    with pytest.raises(NoteChanged):
        remove_file(root, "n.md", content_hash(OLD), kept)
    assert everything(root) == {"n.md": b"the user's"}


def test_the_trash_never_lies_in_the_vault_nor_overwrites(root: Path, kept: Path) -> None:
    put(root, "n.md")
    with pytest.raises(SecurityViolation):
        remove_file(root, "n.md", content_hash(OLD), root / "trash/n.md")
    put(kept.parent, kept.name, NEW)
    with pytest.raises(IndexerFailed):
        remove_file(root, "n.md", content_hash(OLD), kept)
    assert everything(root) == {"n.md": OLD}
    assert kept.read_bytes() == NEW


def test_a_protected_file_is_not_removed(root: Path, kept: Path) -> None:
    put(root, "n.md").chmod(0o444)
    with pytest.raises(ReadOnly):
        remove_file(root, "n.md", content_hash(OLD), kept)
    assert everything(root) == {"n.md": OLD}


@pytest.mark.parametrize(
    ("number", "error"), [(errno.ENOSPC, IndexerFailed), (errno.EROFS, ReadOnly)]
)
def test_a_full_trash_removes_nothing_and_leaves_no_litter(
    root: Path, kept: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    def fail(*_args: object) -> None:
        raise OSError(number, os.strerror(number))

    put(root, "n.md")
    monkeypatch.setattr(os, "fsync", fail)  # full disks cannot be had here
    with pytest.raises(error):
        remove_file(root, "n.md", content_hash(OLD), kept)
    assert everything(root) == {"n.md": OLD}
    assert list(kept.parent.iterdir()) == []


def test_a_copy_that_was_written_wrongly_removes_nothing(
    root: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_write = trash_module._write

    def write_half(temporary: str, data: bytes) -> None:
        real_write(temporary, data[:-1])  # a disk that lies

    put(root, "n.md")
    monkeypatch.setattr(trash_module, "_write", write_half)
    with pytest.raises(IndexerFailed):
        remove_file(root, "n.md", content_hash(OLD), kept)
    assert everything(root) == {"n.md": OLD}
    assert list(kept.parent.iterdir()) == []


def test_a_kept_file_is_restored_and_then_discarded(root: Path, kept: Path) -> None:
    os.utime(put(root, "a/n.png"), ns=(MTIME, MTIME))
    remove_file(root, "a/n.png", content_hash(OLD), kept)
    entry = restore_file(root, "a/n.png", kept)
    assert everything(root) == {"a/n.png": OLD}
    # As new as its return: with its old time other devices take it for deleted.
    assert entry.rel_path == "a/n.png" and entry.mtime_ns > MTIME
    assert kept.exists()
    assert restore_file(root, "a/n.png", kept) == entry, "twice is once"
    discard_kept(kept)
    discard_kept(kept)
    assert not kept.parent.exists()
    with pytest.raises(NotFound):
        restore_file(root, "a/n.png", kept)
    assert everything(root) == {"a/n.png": OLD}


def test_a_restored_file_lies_beside_what_has_its_name_now(root: Path, kept: Path) -> None:
    put(kept.parent, kept.name)
    put(root, "n.png", NEW)
    assert restore_file(root, "n.png", kept).rel_path == "n (restored).png"
    assert restore_file(root, "n.png", kept).rel_path == "n (restored 2).png"
    (root / "folder.png").mkdir()
    assert restore_file(root, "folder.png", kept).rel_path == "folder (restored).png"
    assert everything(root) == {
        "n.png": NEW,
        "n (restored).png": OLD,
        "n (restored 2).png": OLD,
        "folder (restored).png": OLD,
    }


def test_discarding_leaves_the_neighbours(kept: Path) -> None:
    put(kept.parent, kept.name)
    put(kept.parent, "other")
    discard_kept(kept)
    assert everything(kept.parent) == {"other": OLD}


# Crashes

CRASHES = """
    import os, pathlib, shutil, sys
    from obsidian_rag.vault import content_hash, remove_file, rename_file, replace_file
    from obsidian_rag.errors import NoteChanged

    OLD, NEW, HASH = b"old" * 5000, b"new" * 5000, content_hash(b"old" * 5000)
    place = pathlib.Path(sys.argv[1])
    root, kept = place / "vault", place / "data/trash/1/n.md"

    def act():
        match sys.argv[2]:
            case "remove":
                remove_file(root, "a/n.md", HASH, kept)
            case "replace":
                replace_file(root, "a/n.md", HASH, NEW, 10**18)
            case "create":
                replace_file(root, "b/n.md", None, NEW, 10**18)
            case "rename":
                rename_file(root, "a/n.md", "b/N.md", HASH)

    def seen():
        files = {}
        for file in place.rglob("*"):
            if file.is_file() and not file.name.startswith("."):
                files[file.relative_to(place).as_posix()] = file.read_bytes()
        return files

    def die_at(number):
        def hook(event, _args):
            nonlocal number
            if event.partition(".")[0] in ("open", "os"):
                number -= 1
                if number == 0:
                    os._exit(9)
        sys.addaudithook(hook)

    DONE = {
        "remove": {"data/trash/1/n.md": OLD},
        "replace": {"vault/a/n.md": NEW},
        "create": {"vault/a/n.md": OLD, "vault/b/n.md": NEW},
        "rename": {"vault/b/N.md": OLD},
    }[sys.argv[2]]
    number = 0
    while True:
        number += 1
        shutil.rmtree(place, ignore_errors=True)
        (root / "a").mkdir(parents=True)
        (root / "a/n.md").write_bytes(OLD)
        child = os.fork()
        if child == 0:
            die_at(number)
            act()
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        found = seen()
        assert set(found.values()) <= {OLD, NEW}, f"half a file at {number}"
        assert set(found) <= {"vault/a/n.md", *DONE}, f"litter at {number}: {sorted(found)}"
        assert OLD in found.values() or found == DONE, f"lost at {number}"
        try:
            act()
        except NoteChanged:
            assert found == DONE, f"not finished at {number}"
        assert seen() == DONE, f"not healed at {number}"
        if code == 0:
            break
        assert code == 9
    print(number)
"""


@pytest.mark.parametrize("act", ["remove", "replace", "create", "rename"])
def test_a_process_that_dies_at_any_call_loses_nothing(tmp_path: Path, act: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CRASHES), str(tmp_path / "place"), act],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 5, "it must have died at several points"


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=30)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=3).map("/".join), st.binary(max_size=50))
def test_whatever_was_created_is_walked_read_and_removed(
    tmp_path_factory: pytest.TempPathFactory, rel: str, data: bytes
) -> None:
    place = tmp_path_factory.mktemp("any")
    root = place / "vault"
    root.mkdir()
    try:
        entry = replace_file(root, rel, None, data, MTIME)
    except (SecurityViolation, IndexerFailed):
        assert everything(root) == {}
        return
    assert walk_files(root).files == [entry]
    assert read_bytes(root, entry.rel_path) == (data, entry)
    remove_file(root, entry.rel_path, content_hash(data), place / "kept")
    assert list(root.iterdir()) == []
    assert restore_file(root, rel, place / "kept") is not None
    assert everything(root) == {entry.rel_path: data}
