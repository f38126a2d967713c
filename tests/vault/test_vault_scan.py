import os
import socket
from pathlib import Path

import pytest

from obsidian_rag.errors import NotFound
from obsidian_rag.vault import FileEntry, Rules, Scan, SkippedFile, read_note, scan
from obsidian_rag.vault import boundary as boundary_module

RULES = Rules(deny_dirs=("Denied",))


def _make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)


def _names(found: Scan) -> list[str]:
    return sorted(entry.rel_path for entry in found.files)


def _skipped(found: Scan) -> list[tuple[str, str]]:
    return sorted(tuple(skip) for skip in found.skipped)  # type: ignore[misc]  # pairs of str


def test_a_scan_lists_notes_with_the_facts_that_tell_a_change(tmp_path: Path) -> None:
    _make(tmp_path, "a.md", "x/b.canvas", "x/c.png", ".obsidian/d.md", "Denied/e.md", ".f.md")
    status = (tmp_path / "a.md").stat()
    found = scan(tmp_path, RULES)
    assert _names(found) == ["a.md", "x/b.canvas"]
    assert FileEntry("a.md", 4, status.st_mtime_ns, status.st_ino) in found.files
    assert (found.skipped, found.folders, found.unreadable_folders) == ([], 2, ())
    assert found.is_complete


def test_a_folder_named_like_a_note_is_walked(tmp_path: Path) -> None:
    _make(tmp_path, "x.md/a.md")
    assert _names(scan(tmp_path, RULES)) == ["x.md/a.md"]


def test_odd_files_are_skipped_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "big.md").write_bytes(b"x" * 11)
    (tmp_path / "fits.md").write_bytes(b"x" * 10)
    (tmp_path / ".cloud.md.icloud").touch()
    (tmp_path / ".photo.png.icloud").touch()
    os.mkfifo(tmp_path / "fifo.md")
    os.mkfifo(tmp_path / "fifo.txt")
    (tmp_path / "a\\..\\..\\up.md").touch()
    (tmp_path / "%2e%2e").mkdir()
    (tmp_path / "%2e%2e/a.md").touch()
    (tmp_path / "line\nbreak.md").touch()
    with open(os.fsencode(tmp_path) + b"/caf\xe9.md", "wb"):  # noqa: PTH123  (a name that is no text)
        pass
    os.mkdir(os.fsencode(tmp_path) + b"/d\xff")  # noqa: PTH102  (likewise)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket.md"))
        found = scan(tmp_path, Rules(max_file_bytes=10))
    assert _names(found) == ["fits.md", "line\nbreak.md"]
    assert _skipped(found) == [
        ("%2e%2e/", "unsafe_name"),
        ("a\\..\\..\\up.md", "unsafe_name"),
        ("big.md", "too_large"),
        ("caf\\udce9.md", "not_utf8_name"),
        ("cloud.md", "cloud_placeholder"),
        ("d\\udcff/", "not_utf8_name"),
        ("fifo.md", "not_a_file"),
        ("socket.md", "not_a_file"),
    ]


def test_placeholders_of_the_system_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No such attribute exists on Linux; any bit of the mode stands in for it.
    _make(tmp_path, "a.md")
    monkeypatch.setattr(boundary_module, "_PLACEHOLDER_BITS", ("st_mode", 0o400))
    assert scan(tmp_path, RULES).skipped == [SkippedFile("a.md", "cloud_placeholder")]
    assert read_note(tmp_path, "a.md", 99) == SkippedFile("a.md", "cloud_placeholder")


def test_linked_files_are_listed_only_when_they_stay_inside(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    _make(tmp_path, "secret.md")
    _make(root, "real.md", "Denied/d.md", ".hidden/h.md", "x/.h.md")
    (root / "in.md").symlink_to("real.md")
    (root / "out.md").symlink_to("../secret.md")
    (root / "dead.md").symlink_to("nowhere.md")
    (root / "dead.png").symlink_to("nowhere.png")
    (root / "loop.md").symlink_to("loop.md")
    (root / "denied.md").symlink_to("Denied/d.md")
    (root / "hidden.md").symlink_to(".hidden/h.md")
    (root / "hidden2.md").symlink_to("x/.h.md")
    (root / "null.md").symlink_to("/dev/null")
    os.mkfifo(root / "fifo")
    (root / "fifo.md").symlink_to("fifo")
    found = scan(root, RULES)
    assert _names(found) == ["in.md", "real.md"]
    assert [entry.file_id for entry in found.files if entry.rel_path == "in.md"] == [None]
    assert _skipped(found) == [
        ("dead.md", "broken_symlink"),
        ("fifo.md", "not_a_file"),
        ("loop.md", "symlink_loop"),
        ("null.md", "outside_vault"),
        ("out.md", "outside_vault"),
    ]


def test_linked_folders_never_list_a_note_twice_nor_lead_out_or_round(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    _make(tmp_path, "outside/secret.md")
    _make(root, "a/b/note.md", "Denied/d.md", ".hidden/h.md")
    (root / "alias").symlink_to("a")
    (root / "out").symlink_to("../outside")
    (root / "a/b/up").symlink_to("..")
    (root / "a/top").symlink_to(root)
    (root / "denied-alias").symlink_to("Denied")
    (root / "hidden-alias").symlink_to(".hidden")
    found = scan(root, RULES)
    assert _names(found) == ["a/b/note.md"]
    assert _skipped(found) == [
        ("a/b/up/", "symlink_loop"),
        ("a/top/", "symlink_loop"),
        ("out/", "outside_vault"),
    ]


def test_a_link_named_by_the_allow_list_is_followed_but_not_around_the_deny_list(
    tmp_path: Path,
) -> None:
    _make(tmp_path, "Store/n.md", "Store/Denied/d.md", "Store/deep/p.md", "Other/o.md")
    _make(tmp_path, "Store/Private/s.md")
    (tmp_path / "Link").symlink_to("Store")
    (tmp_path / "Link2").symlink_to("Store")
    (tmp_path / "Store/deep/round").symlink_to("..")
    rules = Rules(deny_dirs=("Denied", "Store/Private"), allow_dirs=("Link", "Link2"))
    found = scan(tmp_path, rules)
    assert _names(found) == ["Link/deep/p.md", "Link/n.md"]
    assert _skipped(found) == [("Link/deep/round/", "symlink_loop")]
    partly = Rules(deny_dirs=("Denied", "Private"), allow_dirs=("Link", "Store/deep"))
    assert _names(scan(tmp_path, partly)) == ["Link/n.md", "Store/deep/p.md"]


def test_a_symlinked_root_is_scanned(tmp_path: Path) -> None:
    _make(tmp_path, "real/a.md", "real/b/c.md")
    (tmp_path / "real/alias").symlink_to("b")
    (tmp_path / "vault").symlink_to("real")
    assert _names(scan(tmp_path / "vault", RULES)) == ["a.md", "b/c.md"]


def test_an_unreadable_folder_is_told_apart_from_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _make(tmp_path, "open/a.md", "shut/b.md")
    (tmp_path / "empty").mkdir()
    (tmp_path / "shut").chmod(0)
    if os.geteuid() == 0:  # permission bits do not stop root, so the refusal is made up
        real_scandir = os.scandir

        def scandir(path: str) -> object:
            if path.endswith("/shut"):
                raise PermissionError(13, "Permission denied")
            return real_scandir(path)

        monkeypatch.setattr(os, "scandir", scandir)
    found = scan(tmp_path, RULES)
    (tmp_path / "shut").chmod(0o700)
    assert _names(found) == ["open/a.md"]
    assert found.skipped == [SkippedFile("shut/", "unreadable")]
    assert found.unreadable_folders == ("shut",)


@pytest.mark.parametrize("kind", ["missing", "file", "dangling"])
def test_a_vault_that_is_no_folder_is_not_found(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(NotFound) as caught:
        scan(tmp_path / kind, RULES)
    assert "vault_path" in caught.value.suggestion


def test_a_vault_that_goes_away_during_the_walk_is_not_an_empty_one(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    _make(root, "a/n.md", "b/n.md", "c/n.md")

    def pull_the_disk() -> bool:
        if root.exists():
            root.rename(tmp_path / "elsewhere")
        return False

    with pytest.raises(NotFound):
        scan(root, RULES, stop=pull_the_disk)


def test_files_and_folders_that_vanish_during_the_walk_are_ignored(tmp_path: Path) -> None:
    _make(tmp_path, "a/n.md", "b/n.md")

    def vanish() -> bool:
        for name in ("a", "b"):
            if (tmp_path / name).exists():
                (tmp_path / name).rename(tmp_path / f".{name}")
        return False

    found = scan(tmp_path, RULES, stop=vanish)
    assert (found.files, found.skipped, found.unreadable_folders) == ([], [], ())


def test_a_stopped_scan_says_that_it_is_not_complete(tmp_path: Path) -> None:
    _make(tmp_path, "a/n.md", "b/n.md")
    assert not scan(tmp_path, RULES, stop=lambda: True).is_complete


def test_progress_is_told_and_ends_with_the_total(tmp_path: Path) -> None:
    for folder in range(3):
        _make(tmp_path, *(f"{folder}/{number}.md" for number in range(200)))
    counts: list[int] = []
    scan(tmp_path, RULES, on_count=counts.append)
    assert counts == [400, 600]


def test_scan_and_read_leave_the_vault_exactly_as_it_was(tmp_path: Path) -> None:
    _make(tmp_path, "a.md", "x/b.md", "x/y/c.canvas")
    (tmp_path / "link.md").symlink_to("a.md")
    for path in tmp_path.rglob("*"):
        os.utime(path, ns=(10**18, 10**18), follow_symlinks=False)

    def facts() -> list[tuple[str, int, int, int, bytes]]:
        found = []
        for path in sorted(tmp_path.rglob("*")):
            status = path.lstat()
            atime = status.st_atime_ns if path.is_file() else 0
            content = os.readlink(path).encode() if path.is_symlink() else b""  # noqa: PTH115
            found.append((str(path), status.st_mtime_ns, status.st_ctime_ns, atime, content))
        return found

    before = facts()
    entries = scan(tmp_path, RULES).files
    for entry in entries:
        note = read_note(tmp_path, entry.rel_path, 1000)
        assert not isinstance(note, SkippedFile)
        assert note.entry == entry
    after = facts()
    assert len(entries) == 4
    assert [fact for fact in after if "link.md" not in fact[0]] == [
        fact for fact in before if "link.md" not in fact[0]
    ]
