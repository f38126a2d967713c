"""Conflicts that other clients left in the database: merged if nothing is lost, else reported."""

import pytest
from tests.livesync.faults import Crash, crashing, meddling
from tests.livesync.nodes import MakeNode, sync
from tests.livesync.pouch import Server
from tests.livesync.third import Leaf, ThirdClient

from obsidian_rag.livesync.couchdb.remote import Remote
from obsidian_rag.livesync.sync import Policy

BASE, LEFT, RIGHT = b"a\nb\nc\n", b"A\nb\nc\n", b"a\nb\nC\n"
MERGED = b"A\nb\nC\n"


def dispute(third: ThirdClient, path: str, base: bytes, left: bytes, right: bytes) -> None:
    """Two devices edit the same version, and neither knows of the other."""
    third.save(path, base)
    parent = third.history(path)[0]
    third.save(path, left)
    third.branch(path, right, parent)


def leaves(third: ThirdClient, path: str) -> list[Leaf]:
    return third.leaves(third.entries()[path.lower()])


def contents(third: ThirdClient, path: str) -> list[bytes]:
    return sorted(leaf.content for leaf in leaves(third, path))


@pytest.mark.parametrize(
    ("path", "base", "left", "right", "merged"),
    [
        ("n.md", BASE, LEFT, RIGHT, MERGED),
        ("n.canvas", b'{"a":1,"b":1}', b'{"a":2,"b":1}', b'{"a":1,"b":2}', b'{"a":2,"b":2}'),
    ],
    ids=["lines", "keys"],
)
def test_edits_that_go_together_are_merged_and_every_version_can_be_had(
    path: str,
    base: bytes,
    left: bytes,
    right: bytes,
    merged: bytes,
    make_node: MakeNode,
    third: ThirdClient,
) -> None:
    one = make_node("one")
    one.sync()
    dispute(third, path, base, left, right)
    stats = one.sync().sync.state
    assert contents(third, path) == [merged]
    assert one.files() == {path: merged}
    assert sorted(one.trashed()) == sorted([left, right])
    assert {file.reason for file in one.records.trash()} == {"merged"}
    assert one.records.conflicts() == []
    assert stats.merged == 1


def test_a_file_that_one_of_the_versions_is_gets_the_merge(
    make_node: MakeNode, third: ThirdClient
) -> None:
    one = make_node("one")
    one.write("n.md", BASE)
    one.sync()
    parent = third.history("n.md")[0]
    one.write("n.md", LEFT)
    one.sync()
    third.branch("n.md", RIGHT, parent)
    one.sync()
    assert one.files() == {"n.md": MERGED}
    assert contents(third, "n.md") == [MERGED]


def test_three_versions_are_merged_into_one(make_node: MakeNode, third: ThirdClient) -> None:
    one = make_node("one")
    one.sync()
    dispute(third, "n.md", b"a\nb\nc\nd\ne\n", b"A\nb\nc\nd\ne\n", b"a\nb\nC\nd\ne\n")
    root = third.history("n.md")[-1]
    third.branch("n.md", b"a\nb\nc\nd\nE\n", root)
    one.sync()
    assert contents(third, "n.md") == [b"A\nb\nC\nd\nE\n"]
    assert one.files() == {"n.md": b"A\nb\nC\nd\nE\n"}


@pytest.mark.parametrize(
    ("path", "policy", "left", "right"),
    [
        ("n.md", Policy(), b"ours\nb\nc\n", b"theirs\nb\nc\n"),
        ("n.md", Policy(may_merge=False), LEFT, RIGHT),
        ("n.png", Policy(), LEFT, RIGHT),
    ],
    ids=["the same line", "merging is off", "no text"],
)
def test_versions_that_cannot_be_merged_are_reported_and_left_alone(
    path: str, policy: Policy, left: bytes, right: bytes, make_node: MakeNode, third: ThirdClient
) -> None:
    one, new = make_node("one", policy=policy), make_node("new", policy=policy)
    one.sync()
    third.save(path, BASE)
    one.sync()
    parent = third.history(path)[0]
    third.save(path, left)
    third.branch(path, right, parent)
    before = third.update_seq()
    sync(one, new)
    assert third.update_seq() == before
    assert one.files() == {path: BASE}
    assert new.files()[path] in (left, right)
    for node in (one, new):
        (conflict,) = node.records.conflicts()
        assert set(conflict.revs) == {leaf.rev for leaf in leaves(third, path)}
        assert conflict.kept_as is None


def test_a_conflict_that_was_resolved_elsewhere_is_no_longer_reported(
    make_node: MakeNode, third: ThirdClient, pouch: Server, remote: Remote
) -> None:
    one = make_node("one")
    one.sync()
    dispute(third, "n.md", BASE, b"x\n", b"y\n")
    one.sync()
    assert len(one.records.conflicts()) == 1
    kept, dropped = leaves(third, "n.md")
    pouch.request("DELETE", f"/{remote.database}/n.md?rev={dropped.rev}")
    one.sync()
    assert one.records.conflicts() == []
    assert one.files() == {"n.md": kept.content}


def test_an_edit_here_continues_our_own_version(make_node: MakeNode, third: ThirdClient) -> None:
    one = make_node("one", policy=Policy(may_merge=False))
    one.write("n.md", "base")
    one.sync()
    parent = third.history("n.md")[0]
    one.write("n.md", "ours")
    one.sync()
    third.branch("n.md", b"theirs", parent)
    one.sync()
    one.write("n.md", "ours, edited")
    one.sync()
    assert contents(third, "n.md") == [b"ours, edited", b"theirs"]
    assert one.files() == {"n.md": b"ours, edited"}


def test_a_deletion_is_never_merged(make_node: MakeNode, third: ThirdClient) -> None:
    one = make_node("one")
    third.save("n.md", BASE)
    one.sync()
    parent = third.history("n.md")[0]
    third.save("n.md", LEFT)
    third.delete("n.md")
    third.branch("n.md", RIGHT, parent)
    new = make_node("new")
    for node in (one, new):
        node.sync()
        assert [conflict.path for conflict in node.records.conflicts()] == ["n.md"]
    assert one.files() == {"n.md": BASE}
    assert new.files() == {}
    assert {leaf.is_deleted for leaf in leaves(third, "n.md")} == {True, False}


def test_versions_that_say_the_same_become_one(make_node: MakeNode, third: ThirdClient) -> None:
    one = make_node("one", policy=Policy(may_merge=False))
    one.sync()
    dispute(third, "n.png", b"base", b"same", b"same")
    third.branch("n.png", b"other", third.history("n.png")[-1])
    one.sync()
    assert contents(third, "n.png") == [b"other", b"same"]


def test_two_deletions_become_one(make_node: MakeNode, third: ThirdClient) -> None:
    one = make_node("one")
    one.sync()
    dispute(third, "n.md", BASE, b"x\n", b"y\n")
    third.delete("n.md")
    loser = next(leaf for leaf in leaves(third, "n.md") if not leaf.is_deleted)
    third.bury("n.md", loser.rev)
    assert [leaf.is_deleted for leaf in leaves(third, "n.md")] == [True, True]
    one.sync()
    assert [leaf.is_deleted for leaf in leaves(third, "n.md")] == [True]
    assert one.records.conflicts() == []


def test_a_crash_between_any_two_steps_merges_once(make_node: MakeNode, third: ThirdClient) -> None:
    one = make_node("one")
    one.sync()
    for at in range(1, 20):
        path = f"{at}.md"
        dispute(third, path, b"base\n", b"base\nleft\n", b"base\nright\n")
        try:
            with crashing(at):
                one.sync()
        except Crash:
            one.close()
            one = make_node("one")
        one.sync()
        (content,) = contents(third, path)
        assert sorted(content.split()) == [b"base", b"left", b"right"]
        assert one.files()[path] == content


def test_two_nodes_that_merge_at_once_merge_once(make_node: MakeNode, third: ThirdClient) -> None:
    one, two = make_node("one"), make_node("two")
    sync(one, two)

    def meanwhile() -> None:
        two.sync()

    for at in range(1, 28):
        path = f"{at}.md"
        dispute(third, path, b"base\n", b"base\nleft\n", b"base\nright\n")
        with meddling(at, meanwhile):
            one.sync()
        sync(one, two)
        (content,) = contents(third, path)
        assert sorted(content.split()) == [b"base", b"left", b"right"]
        assert one.files()[path] == two.files()[path] == content
