from obsidian_rag.index.plan import UNTRUSTED, changes, compare, trusted_mtime
from obsidian_rag.store import ChangeType, KnownFile
from obsidian_rag.vault import FileEntry


def entry(path: str, size: int = 1, mtime: int = 1, file_id: int | None = None) -> FileEntry:
    return FileEntry(path, size, mtime, file_id)


def known(
    size: int = 1, mtime: int = 1, file_id: int | None = None, content: str | None = None
) -> KnownFile:
    return KnownFile(size, mtime, file_id, content)


def never(path: str) -> str | None:
    raise AssertionError(f"{path} was read")


def test_a_file_with_the_same_metadata_is_unchanged() -> None:
    difference = compare([entry("a.md", file_id=7)], {"a.md": known(file_id=7)}, ())
    assert (difference.unchanged, difference.created, difference.updated) == (1, [], [])


def test_a_change_of_size_mtime_or_file_id_is_an_update() -> None:
    before = {"a.md": known(), "b.md": known(), "c.md": known(file_id=1)}
    seen = [entry("a.md", size=2), entry("b.md", mtime=2), entry("c.md", file_id=2)]
    assert compare(seen, before, ()).updated == seen


def test_files_below_an_unreadable_folder_are_not_taken_for_deleted() -> None:
    before = {"locked/a.md": known(), "lockedx/b.md": known()}
    assert compare([], before, ("locked",)).vanished == ["lockedx/b.md"]


def test_a_moved_file_is_recognised_by_its_file_id_without_reading_it() -> None:
    before = {"old.md": known(file_id=7, content="h")}
    difference = compare([entry("new.md", file_id=7)], before, ())
    [change] = changes(difference, before, never)
    assert (change.change_type, change.old_path) == (ChangeType.RENAME, "old.md")


def test_a_moved_file_without_a_file_id_is_recognised_by_its_content() -> None:
    before = {"old.md": known(size=5, content="h"), "other.md": known(size=9, content="i")}
    difference = compare([entry("new.md", size=5), entry("different.md", size=4)], before, ())
    found = {c.rel_path: c for c in changes(difference, before, {"new.md": "h"}.get)}
    assert found["new.md"].old_path == "old.md"
    assert found["different.md"].change_type is ChangeType.CREATE
    assert found["other.md"].change_type is ChangeType.DELETE
    assert "old.md" not in found


def test_two_copies_of_one_vanished_note_are_one_rename_and_one_new_note() -> None:
    before = {"old.md": known(size=5, content="h")}
    difference = compare([entry("x.md", size=5), entry("y.md", size=5)], before, ())
    kinds = [change.change_type for change in changes(difference, before, lambda _: "h")]
    assert sorted(kinds) == [ChangeType.CREATE, ChangeType.RENAME]


def test_an_mtime_too_close_to_the_moment_of_reading_is_not_trusted() -> None:
    second = 1_000_000_000
    assert trusted_mtime(5 * second + 1, 6 * second) == 5 * second + 1
    assert trusted_mtime(5 * second + 1, 5 * second + 2) == UNTRUSTED
    # A whole second means a coarse clock: FAT keeps two.
    assert trusted_mtime(5 * second, 6 * second) == UNTRUSTED
    assert trusted_mtime(5 * second, 8 * second) == 5 * second
