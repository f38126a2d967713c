"""Many deletions from other devices: none is carried out before the user says so."""

import time

import pytest
from tests.livesync.nodes import MakeNode, TestNode
from tests.livesync.test_livesync_live import running, seen
from tests.livesync.third import ThirdClient
from tests.waiting import until

from obsidian_rag.errors import LivesyncBrake
from obsidian_rag.livesync.deletions import HeldAnswer, answer_held, held_deletions


def filled(make_node: MakeNode, count: int = 30) -> TestNode:
    node = make_node("one")
    for number in range(count):
        node.write(f"{number:02}.md", f"note {number}")
    node.sync()
    return node


def test_mass_deletions_wait_and_all_else_goes_on(make_node: MakeNode, third: ThirdClient) -> None:
    node = filled(make_node)
    for number in range(29):
        third.delete(f"{number:02}.md")
    third.save("29.md", b"edited there")
    node.write("new.md", "from here")
    with pytest.raises(LivesyncBrake, match="29 of 3[01] synced files"):
        node.sync()
    files = node.files()
    assert len(files) == 31 and files["29.md"] == b"edited there"
    assert "new.md" in third.entries()
    assert node.trashed() == []
    # So it stays, after a restart too, until somebody decides.
    with pytest.raises(LivesyncBrake):
        node.sync()
    assert len(node.files()) == 31
    node.sync(allows_deletions=True)
    assert sorted(node.files()) == ["29.md", "new.md"]
    assert len(node.trashed()) == 29
    node.sync()


def test_deletions_that_trickle_in_are_counted_together(
    make_node: MakeNode, third: ThirdClient
) -> None:
    node = filled(make_node)
    gone = 0
    with pytest.raises(LivesyncBrake):
        for number in range(29):
            third.delete(f"{number:02}.md")
            node.sync()
            gone += 1
    assert gone == 10
    assert len(node.files()) == 20 and len(node.trashed()) == 10
    assert held_deletions(node.records) == ["10.md"]


def test_few_deletions_need_no_asking(make_node: MakeNode, third: ThirdClient) -> None:
    node = filled(make_node)
    for number in range(5):
        third.delete(f"{number:02}.md")
    node.sync()
    assert len(node.files()) == 25 and len(node.trashed()) == 5


def test_a_folder_that_was_moved_elsewhere_is_not_a_mass_deletion(
    make_node: MakeNode, third: ThirdClient
) -> None:
    node = filled(make_node)
    for number in range(25):
        third.save(f"Archive/{number:02}.md", f"note {number}".encode())
    for number in range(25):
        third.delete(f"{number:02}.md")
    node.sync()
    assert len(node.files()) == 30 and len(node.trashed()) == 25
    assert {one.reason for one in node.records.trash()} == {"moved on another device"}


def test_refused_deletions_are_undone_on_the_other_devices(
    make_node: MakeNode, third: ThirdClient
) -> None:
    node = filled(make_node)
    for number in range(29):
        third.delete(f"{number:02}.md")
    with pytest.raises(LivesyncBrake):
        node.sync()
    answer_held(node.records, HeldAnswer.REFUSE)
    node.sync()
    assert len(node.files()) == 30
    assert not any(entry.get("deleted") for entry in third.entries().values())
    node.sync()
    assert len(node.files()) == 30


def test_an_answer_is_about_what_was_asked_and_nothing_later(
    make_node: MakeNode, third: ThirdClient
) -> None:
    node = filled(make_node, 60)
    for number in range(20):
        third.delete(f"{number:02}.md")
    with pytest.raises(LivesyncBrake):
        node.sync()
    answer_held(node.records, HeldAnswer.TAKE)
    for number in range(20, 50):
        third.delete(f"{number:02}.md")
    with pytest.raises(LivesyncBrake):
        node.sync()
    assert len(node.trashed()) == 20 and len(node.files()) == 40


def test_a_held_deletion_is_over_when_the_file_comes_back_or_is_edited(
    make_node: MakeNode, third: ThirdClient
) -> None:
    node = filled(make_node)
    for number in range(12):
        third.delete(f"{number:02}.md")
    with pytest.raises(LivesyncBrake):
        node.sync()
    for number in range(12):
        if number % 2:
            third.save(f"{number:02}.md", b"back")
        else:
            node.write(f"{number:02}.md", f"edited {time.time_ns()}")
    node.sync()
    assert held_deletions(node.records) == []
    assert len(node.files()) == 30 and node.trashed() == []


def test_a_node_at_work_holds_deletions_and_goes_on(
    make_node: MakeNode, third: ThirdClient
) -> None:
    device = filled(make_node)
    with running(device) as (one,):
        until(lambda: one.node.state.is_connected)
        for number in range(29):
            third.delete(f"{number:02}.md")
        # They come in batches: the first ten may be gone before it is known how many there are.
        until(lambda: len(held_deletions(device.records)) + len(device.trashed()) == 29)
        assert one.node.state.brake is not None and len(device.trashed()) <= 10
        third.save("later.md", b"still synced")
        until(lambda: "later.md" in seen(device))
        assert len(seen(device)) + len(device.trashed()) == 31
        answer_held(device.records, HeldAnswer.TAKE)
        until(lambda: one.node.state.brake is None and len(seen(device)) == 2)
    assert len(device.trashed()) == 29
