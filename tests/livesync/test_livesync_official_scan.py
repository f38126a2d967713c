"""Files that come back or get the name of a newer one: the official client keeps them, too."""

import os
from pathlib import Path

from tests.livesync.nodes import MakeNode, TestNode
from tests.livesync.official import OfficialDevice
from tests.livesync.third import ThirdClient

from obsidian_rag.vault import restore_file

OLD_NS = 1_600_000_000 * 10**9


def dated(node: TestNode, path: str, content: str, after_s: int) -> None:
    node.write(path, content)
    os.utime(node.root / path, ns=(OLD_NS + after_s * 10**9,) * 2)


def test_a_restored_file_is_not_deleted_again(make_node: MakeNode, third: ThirdClient) -> None:
    node, official = make_node("one"), OfficialDevice(third)
    dated(node, "a.md", "keep me", 0)
    dated(node, "b.md", "other", 0)
    node.sync()
    official.receive()
    assert official.scan() == {}
    third.delete("a.md")
    official.receive()
    node.sync()
    (trashed,) = node.records.trash()
    restore_file(node.root, trashed.path, Path(trashed.stored_as))
    node.sync()
    assert official.scan() == {"a.md": "take"}
    assert official.files["a.md"][0] == b"keep me"
    assert official.scan() == {}


def test_an_old_file_that_gets_a_deleted_name_is_not_deleted(
    make_node: MakeNode, third: ThirdClient
) -> None:
    node, official = make_node("one"), OfficialDevice(third)
    dated(node, "older.md", "old", 0)
    dated(node, "gone.md", "gone", 60)
    node.sync()
    official.receive()
    official.scan()
    (node.root / "gone.md").unlink()
    node.sync()
    official.receive()
    (node.root / "older.md").rename(node.root / "gone.md")
    node.sync()
    assert official.scan()["gone.md"] == "take"
    assert official.files["gone.md"][0] == b"old"


def test_an_old_file_that_replaces_a_newer_one_is_taken(
    make_node: MakeNode, third: ThirdClient
) -> None:
    node, official = make_node("one"), OfficialDevice(third)
    dated(node, "older.md", "old", 0)
    dated(node, "newer.md", "new", 60)
    node.sync()
    official.receive()
    official.scan()
    (node.root / "older.md").replace(node.root / "newer.md")
    node.sync()
    assert official.scan()["newer.md"] == "take"
    assert official.files["newer.md"][0] == b"old"
    # The user's file keeps its time; only what is sent has another.
    assert (node.root / "newer.md").stat().st_mtime_ns == OLD_NS


def test_two_edits_within_two_seconds_are_both_seen(
    make_node: MakeNode, third: ThirdClient
) -> None:
    node, official = make_node("one"), OfficialDevice(third)
    dated(node, "a.md", "first", 0)
    node.sync()
    official.receive()
    official.scan()
    node.write("a.md", "second")
    os.utime(node.root / "a.md", ns=(OLD_NS + 1, OLD_NS + 1))
    node.sync()
    assert official.scan() == {"a.md": "take"}


def test_a_file_whose_spelling_alone_changed_keeps_its_time(
    make_node: MakeNode, third: ThirdClient
) -> None:
    node = make_node("one")
    dated(node, "a.md", "x", 0)
    node.sync()
    (node.root / "a.md").rename(node.root / "A.md")
    node.sync()
    entry = third.entries()["a.md"]
    assert (entry["path"], entry["mtime"]) == ("A.md", OLD_NS // 10**6)
