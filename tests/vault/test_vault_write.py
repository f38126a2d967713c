import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from obsidian_rag.errors import (
    IndexerFailed,
    NoteChanged,
    ObsidianRagError,
    ReadOnly,
    SecurityViolation,
)
from obsidian_rag.vault import boundary, content_hash, replace_note
from obsidian_rag.vault import write as write_module

OLD, NEW = b"old\r\n", b"new\r\n"


@pytest.fixture(params=[True, False], ids=["by-descriptor", "by-path"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Windows works by path; both ways are run here.
    monkeypatch.setattr(boundary, "_WALKS_BY_DESCRIPTOR", request.param)
    root = tmp_path / "vault"
    root.mkdir()
    (root / "n.md").write_bytes(OLD)
    return root


def _everything(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def test_a_note_is_replaced_and_nothing_is_left_beside_it(root: Path) -> None:
    replace_note(root, "n.md", content_hash(OLD), NEW)
    assert _everything(root) == {"n.md": NEW}


def test_a_note_is_created_with_its_folders(root: Path) -> None:
    replace_note(root, "a/b/new.md", None, NEW)
    assert _everything(root) == {"n.md": OLD, "a/b/new.md": NEW}
    umask = os.umask(0)
    os.umask(umask)
    assert (root / "a/b/new.md").stat().st_mode & 0o777 == 0o666 & ~umask
    assert (root / "a/b/new.md").stat().st_nlink == 1


def test_write_refuses_when_note_changed(root: Path) -> None:
    for rel, expected in (
        ("n.md", content_hash(b"other")),
        ("none.md", content_hash(OLD)),
        ("n.md", None),
    ):
        with pytest.raises(NoteChanged):
            replace_note(root, rel, expected, NEW)
    assert _everything(root) == {"n.md": OLD}


@pytest.mark.parametrize("expected", [content_hash(OLD), None])
def test_an_edit_made_while_we_write_wins(
    root: Path, monkeypatch: pytest.MonkeyPatch, expected: str | None
) -> None:
    # The user's edit must fall between our two looks at the note.
    real_write = write_module._write
    rel = "n.md" if expected else "new.md"

    def write_late(*args: object) -> None:
        real_write(*args)  # type: ignore[arg-type]  # passed on untouched
        (root / rel).write_bytes(b"the user's")

    monkeypatch.setattr(write_module, "_write", write_late)
    with pytest.raises(NoteChanged):
        replace_note(root, rel, expected, NEW)
    assert _everything(root) == {"n.md": OLD} | {rel: b"the user's"}


def test_a_note_created_at_the_very_last_moment_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # After the last look only the system's own refusal to overwrite can help.
    real_link = os.link

    def link_late(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        (tmp_path / "new.md").write_bytes(b"the user's")
        real_link(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "link", link_late)
    with pytest.raises(NoteChanged):
        replace_note(tmp_path, "new.md", None, NEW)
    assert _everything(tmp_path) == {"new.md": b"the user's"}


def test_a_disk_without_hard_links_still_gets_new_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", _failing(errno.EPERM))  # no such disk to be had here
    replace_note(tmp_path, "new.md", None, NEW)
    assert _everything(tmp_path) == {"new.md": NEW}


def test_permissions_owner_and_labels_are_kept(tmp_path: Path) -> None:
    note = tmp_path / "n.md"
    note.write_bytes(OLD)
    note.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(note, 1234, 2345)
    try:
        os.setxattr(note, "user.colour", b"red")
        has_labels = True
    except OSError:
        has_labels = False
    before = note.stat()
    replace_note(tmp_path, "n.md", content_hash(OLD), NEW)
    after = note.stat()
    assert note.read_bytes() == NEW
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    assert not has_labels or os.getxattr(note, "user.colour") == b"red"


def test_a_linked_note_stays_a_link_and_its_target_changes(root: Path) -> None:
    (root / "link.md").symlink_to("n.md")
    replace_note(root, "link.md", content_hash(OLD), NEW)
    assert (root / "link.md").is_symlink()
    assert (root / "n.md").read_bytes() == NEW


def test_nothing_outside_or_hidden_is_written(root: Path) -> None:
    outside = root.parent / "outside.md"
    outside.write_bytes(OLD)
    (root / "out.md").symlink_to("../outside.md")
    (root / "dangling.md").symlink_to("../fresh.md")
    (root / ".obsidian").mkdir()
    (root / "alias").symlink_to(".obsidian")
    for rel, expected in (
        ("../outside.md", content_hash(OLD)),
        ("out.md", content_hash(OLD)),
        ("dangling.md", None),
        (".obsidian/plugins/evil/main.js", None),
        ("alias/app.json", None),
        ("a/.hidden.md", None),
    ):
        with pytest.raises(SecurityViolation):
            replace_note(root, rel, expected, NEW)
    assert outside.read_bytes() == OLD
    assert not (root.parent / "fresh.md").exists()
    assert list((root / ".obsidian").iterdir()) == []


def test_a_write_protected_note_is_left_alone(root: Path) -> None:
    (root / "n.md").chmod(0o444)
    with pytest.raises(ReadOnly):
        replace_note(root, "n.md", content_hash(OLD), NEW)
    assert _everything(root) == {"n.md": OLD}


def test_a_fifo_is_refused_without_blocking(root: Path) -> None:
    os.mkfifo(root / "fifo.md")
    with pytest.raises(SecurityViolation):
        replace_note(root, "fifo.md", content_hash(OLD), NEW)


def _failing(number: int) -> Callable[..., None]:
    def fail(*_args: object, **_kwargs: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("step", ["fsync", "replace", "fchmod"])
@pytest.mark.parametrize(
    ("number", "error"),
    [
        (errno.ENOSPC, IndexerFailed),
        (errno.EIO, IndexerFailed),
        (errno.EROFS, ReadOnly),
        (errno.EACCES, ReadOnly),
    ],
)
def test_a_failing_disk_leaves_the_note_and_no_litter(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    number: int,
    error: type[ObsidianRagError],
) -> None:
    # Full and read-only disks cannot be made in a test without mounting.
    with monkeypatch.context() as patch:
        patch.setattr(os, step, _failing(number))
        with pytest.raises(error):
            replace_note(root, "n.md", content_hash(OLD), NEW)
    assert _everything(root) == {"n.md": OLD}


def test_a_name_as_long_as_the_system_allows_can_be_replaced(root: Path) -> None:
    name = "ü" * 126 + ".md"
    (root / name).write_bytes(OLD)
    replace_note(root, name, content_hash(OLD), NEW)
    assert (root / name).read_bytes() == NEW
