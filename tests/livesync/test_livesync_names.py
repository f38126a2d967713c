"""Names that are not what they seem: composed and decomposed letters, files that become folders."""

import unicodedata

import pytest
from tests.livesync.nodes import MakeNode, sync
from tests.livesync.test_livesync_node import CONFIGURATIONS
from tests.livesync.third import ThirdClient

COMPOSED = "Ordner/Café Ünïcode.md"
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)


def test_a_decomposed_entry_is_synced_both_ways(make_node: MakeNode, third: ThirdClient) -> None:
    node = make_node("one")
    node.sync()
    third.save(DECOMPOSED, b"from a Mac")
    reconciler = node.sync()
    assert node.files() == {DECOMPOSED: b"from a Mac"}
    assert node.records.quarantined() == [] and not reconciler.owed
    node.write(DECOMPOSED, "edited here")
    node.sync()
    (entry,) = third.entries().values()
    assert (entry["_id"], entry["path"]) == (DECOMPOSED.lower(), DECOMPOSED)
    assert third.leaf(entry).content == b"edited here"
    third.delete(DECOMPOSED)
    node.write("other.md", "x")
    node.sync()
    assert list(node.files()) == ["other.md"] and node.trashed() == [b"edited here"]


def test_a_decomposed_file_and_a_composed_entry_are_one_note(
    make_node: MakeNode, third: ThirdClient
) -> None:
    node = make_node("one")
    node.write(DECOMPOSED, "same")
    node.sync()
    (entry,) = third.entries().values()
    assert entry["path"] == COMPOSED
    third.save(COMPOSED, b"edited there")
    node.sync()
    assert node.files() == {DECOMPOSED: b"edited there"}
    assert len(third.entries()) == 1


@pytest.mark.parametrize("here", [COMPOSED, DECOMPOSED])
@pytest.mark.parametrize("there", [COMPOSED, DECOMPOSED])
def test_a_file_meets_the_entry_of_its_name_in_any_form(
    here: str, there: str, make_node: MakeNode, third: ThirdClient
) -> None:
    node = make_node("one")
    node.sync()
    third.save(there, b"same")
    node.write(here, "same")
    reconciler = node.sync()
    assert node.files() == {here: b"same"}
    assert len(third.entries()) == 1 and not reconciler.owed
    (node.root / here).unlink()
    node.write("other.md", "x")
    node.sync()
    assert third.entries()[there.lower()]["deleted"] is True


def test_twins_of_one_name_never_overwrite_each_other(
    make_node: MakeNode, third: ThirdClient
) -> None:
    node = make_node("one")
    node.write(COMPOSED, "composed")
    node.write(DECOMPOSED, "decomposed")
    for _ in range(3):
        reconciler = node.sync()
        assert node.files() == {COMPOSED: b"composed", DECOMPOSED: b"decomposed"}
        (entry,) = third.entries().values()
        assert third.leaf(entry).content == b"composed"
        assert reconciler.sync.disk.left_out == {
            DECOMPOSED: "differs from another file only in its Unicode form"
        }


def test_a_twin_that_comes_later_does_not_take_the_place(
    make_node: MakeNode, third: ThirdClient
) -> None:
    node = make_node("one")
    node.write(DECOMPOSED, "first")
    node.sync()
    node.write(COMPOSED, "second")
    for _ in range(2):
        reconciler = node.sync()
        assert list(reconciler.sync.disk.left_out) == [COMPOSED]
    (entry,) = third.entries().values()
    assert third.leaf(entry).content == b"first"


def test_twins_in_the_database_are_two_files(make_node: MakeNode, third: ThirdClient) -> None:
    node = make_node("one")
    node.sync()
    third.save(COMPOSED, b"composed")
    third.save(DECOMPOSED, b"decomposed")
    node.sync()
    assert node.files() == {COMPOSED: b"composed", DECOMPOSED: b"decomposed"}
    node.write(DECOMPOSED, "decomposed, edited")
    node.sync()
    contents = {one["path"]: third.leaf(one).content for one in third.entries().values()}
    assert contents == {COMPOSED: b"composed", DECOMPOSED: b"decomposed, edited"}
    (node.root / COMPOSED).unlink()
    node.sync()
    states = {one["path"]: bool(one.get("deleted")) for one in third.entries().values()}
    assert states == {COMPOSED: True, DECOMPOSED: False}


def test_a_twin_without_room_is_reported_and_kept(make_node: MakeNode, third: ThirdClient) -> None:
    node = make_node("one")
    node.write(DECOMPOSED, "ours")
    node.sync()
    third.save(DECOMPOSED, b"theirs")
    for _ in range(2):
        node.sync()
        assert node.files() == {DECOMPOSED: b"ours"}
        (waiting,) = node.records.quarantined()
        assert "Unicode" in waiting.message
    contents = sorted(third.leaf(one).content for one in third.entries().values())
    assert contents == [b"ours", b"theirs"]


@pytest.mark.parametrize("name", ["v2_obfuscated", "case_sensitive", "v1_obfuscated"])
def test_decomposed_names_travel_in_every_configuration(name: str, make_node: MakeNode) -> None:
    tweaks, passphrase = CONFIGURATIONS[name]
    one = make_node("one", tweaks=tweaks, passphrase=passphrase)
    two = make_node("two", tweaks=tweaks, passphrase=passphrase)
    one.write(DECOMPOSED, "x")
    sync(one, two)
    assert two.files() == {COMPOSED: b"x"}
    two.write(COMPOSED, "edited")
    sync(two, one)
    assert one.files() == {DECOMPOSED: b"edited"}


def replace_file(make_node: MakeNode, third: ThirdClient, old: str, new: str) -> None:
    """Let a device have `new` where it had `old`; the other one follows and keeps the old file."""
    one, two = make_node("one"), make_node("two")
    one.write(old, "old")
    one.write("other.md", "x")
    sync(one, two)
    (one.root / old).unlink()
    if (one.root / new).is_dir():
        (one.root / new).rmdir()
    one.write(new, "new")
    assert not one.sync().owed
    assert third.order().index(old.lower()) < third.order().index(new.lower())
    assert not two.sync().owed
    assert two.records.quarantined() == []
    assert two.files() == {new: b"new", "other.md": b"x"}
    assert two.trashed() == [b"old"]


def test_a_file_that_becomes_a_folder_is_deleted_first(
    make_node: MakeNode, third: ThirdClient
) -> None:
    replace_file(make_node, third, "Topic", "Topic/note.md")
    assert third.entries()["topic"]["deleted"] is True


def test_a_folder_that_becomes_a_file_is_deleted_first(
    make_node: MakeNode, third: ThirdClient
) -> None:
    replace_file(make_node, third, "Topic/note.md", "Topic")


def test_a_file_in_the_way_of_a_folder_is_reported_and_kept(
    make_node: MakeNode, third: ThirdClient
) -> None:
    node = make_node("one")
    node.write("Topic", "a file")
    node.sync()
    third.save("Topic/note.md", b"in a folder")
    reconciler = node.sync()
    assert reconciler.owed == {"topic/note.md"}
    (waiting,) = node.records.quarantined()
    assert "'Topic' is a file here" in waiting.message
    assert node.files() == {"Topic": b"a file"}
    (node.root / "Topic").rename(node.root / "Topic.md")
    reconciler = node.sync()
    assert node.files() == {"Topic.md": b"a file", "Topic/note.md": b"in a folder"}
    assert not reconciler.owed and node.records.quarantined() == []
