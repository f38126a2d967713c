"""Two devices and a server: what is saved on one arrives on the other, and nothing is lost."""

import pytest
from tests.livesync.nodes import MakeNode, changed_apart, sync

from obsidian_rag.errors import LivesyncBrake
from obsidian_rag.livesync.codec.tweaks import Tweaks

CONFIGURATIONS = {
    "plain": (Tweaks(), None),
    "e2ee_v2": (Tweaks(encrypt=True), "secret"),
    "v2_obfuscated": (Tweaks(encrypt=True, use_path_obfuscation=True), "secret"),
    "v1": (Tweaks(encrypt=True, e2ee_algorithm=""), "secret"),
    "v1_obfuscated": (
        Tweaks(encrypt=True, e2ee_algorithm="", use_path_obfuscation=True),
        "secret",
    ),
    "compressed": (Tweaks(enable_compression=True), None),
    "case_sensitive": (Tweaks(handle_filename_case_sensitive=True), None),
    "other_hash": (Tweaks(hash_alg="sha1"), None),
    "other_size": (Tweaks(custom_chunk_size=60), None),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_files_travel_both_ways_byte_for_byte(name: str, make_node: MakeNode) -> None:
    tweaks, passphrase = CONFIGURATIONS[name]
    one = make_node("one", tweaks=tweaks, passphrase=passphrase)
    two = make_node("two", tweaks=tweaks, passphrase=passphrase)
    one.write("Note.md", "# Hello\r\nWörld \U0001f331\n")
    one.write("Folder/Ünïcode name.md", "x" * 5000 + "\n")
    one.write("image.png", bytes(range(256)) * 700)
    one.write("empty.md", "")
    one.write("_under.md", "begins with an underscore")
    one.sync()
    two.write("From two.canvas", '{"nodes": []}')
    two.sync()
    assert one.files().items() <= two.files().items()
    one.sync()
    assert one.files() == two.files()
    two.write("Note.md", "# Changed\n")
    (two.root / "image.png").unlink()
    sync(two, one)
    assert one.files() == two.files()
    assert one.files()["Note.md"] == b"# Changed\n"
    assert bytes(range(256)) * 700 in one.trashed()


def test_edits_of_different_lines_are_merged(make_node: MakeNode) -> None:
    one, two = make_node("one"), make_node("two")
    one.write("n.md", "a\nb\nc\nd\ne\n")
    sync(one, two)
    one.write("n.md", "A\nb\nc\nd\ne\n")
    two.write("n.md", "a\nb\nc\nd\nE\n")
    sync(one, two, one)
    assert one.files() == two.files() == {"n.md": b"A\nb\nc\nd\nE\n"}


def test_edits_of_one_line_are_both_kept(make_node: MakeNode) -> None:
    one, two = changed_apart(make_node, "ours\n", "theirs\n")
    sync(two, one, two)
    assert one.files() == two.files()
    assert sorted(one.files().values()) == [b"ours\n", b"theirs\n"]


def test_a_deleted_file_is_deleted_there_and_kept_in_the_trash(make_node: MakeNode) -> None:
    one, two = make_node("one"), make_node("two")
    one.write("a.md", "keep me")
    one.write("b.md", "other")
    sync(one, two)
    (one.root / "a.md").unlink()
    sync(one, two)
    assert list(two.files()) == ["b.md"]
    assert two.trashed() == [b"keep me"]


def test_a_rename_and_a_change_of_case(make_node: MakeNode) -> None:
    one, two = make_node("one"), make_node("two")
    one.write("Folder/Note.md", "text")
    one.write("other.md", "x")
    sync(one, two)
    (one.root / "Folder").rename(one.root / "Moved")
    sync(one, two)
    assert one.files() == two.files()
    (one.root / "other.md").rename(one.root / "Other.md")
    sync(one, two)
    assert sorted(two.files()) == ["Moved/Note.md", "Other.md"]


def test_an_emptied_vault_deletes_nothing_elsewhere(make_node: MakeNode) -> None:
    one, two = make_node("one"), make_node("two")
    for number in range(30):
        one.write(f"{number}.md", f"note {number}")
    sync(one, two)
    for file in one.root.iterdir():
        file.unlink()
    with pytest.raises(LivesyncBrake):
        one.sync()
    two.sync()
    assert len(two.files()) == 30
