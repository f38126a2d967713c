"""A conflict is settled as the user says, and whatever is not kept can be brought back."""

from dataclasses import replace
from typing import Any

import pytest
from tests.livesync.nodes import MakeNode, TestNode, changed_apart, sync

from obsidian_rag.errors import (
    InvalidArgument,
    LivesyncConflict,
    LivesyncUnreadable,
    NotFound,
    ObsidianRagError,
    ReadOnly,
)
from obsidian_rag.livesync import Tweaks
from obsidian_rag.livesync.disk import Trash
from obsidian_rag.livesync.membership import rehearse
from obsidian_rag.livesync.resolution import Resolved, Resolver
from obsidian_rag.livesync.site import Site
from obsidian_rag.livesync.sync import Policy
from obsidian_rag.store import Conflict

BRANCH = Policy(keeps_conflicts_as_files=False)


def resolver(node: TestNode, *, is_read_only: bool = False) -> Resolver:
    site = Site(node.remote, node.root, node.passphrase, node.tweaks)
    codec = rehearse(node.couch, site, node.records).codec
    trash = Trash(node.home / "trash", node.root, node.records)
    return Resolver(trash, node.couch, codec, is_read_only=is_read_only)


def conflict_of(node: TestNode) -> Conflict:
    (conflict,) = node.records.conflicts()
    return conflict


def resolve(node: TestNode, keep: str, *, is_read_only: bool = False) -> Resolved:
    return resolver(node, is_read_only=is_read_only).resolve(conflict_of(node), keep)


def two_branches(make_node: MakeNode, **options: Any) -> tuple[TestNode, TestNode]:
    """Two devices that changed the same line; the second one stored its version as a rival."""
    one, two = changed_apart(make_node, "from one\n", "from two\n", policy=BRANCH, **options)
    sync(two, two)
    assert len(conflict_of(two).revs) == 2
    return one, two


def settled(one: TestNode, two: TestNode) -> dict[str, bytes]:
    """What both devices have in the end."""
    for _ in range(2):
        sync(two, one)
    assert one.files() == two.files()
    assert (one.records.conflicts(), two.records.conflicts()) == ([], [])
    return one.files()


@pytest.mark.parametrize(
    ("tweaks", "passphrase"),
    [(Tweaks(), None), (Tweaks(encrypt=True, use_path_obfuscation=True), "secret")],
)
@pytest.mark.parametrize(("keep", "kept"), [("ours", b"from two\n"), ("theirs", b"from one\n")])
def test_one_of_two_branches_is_kept_and_the_other_is_in_the_trash(
    make_node: MakeNode, keep: str, kept: bytes, tweaks: Tweaks, passphrase: str | None
) -> None:
    one, two = two_branches(make_node, tweaks=tweaks, passphrase=passphrase)
    done = resolve(two, keep)
    assert (done.path, done.kept_as) == ("n.md", ())
    assert settled(one, two) == {"n.md": kept}
    other = b"from one\n" if keep == "ours" else b"from two\n"
    assert other in two.trashed()


def test_a_revision_can_be_named(make_node: MakeNode) -> None:
    one, two = two_branches(make_node)
    ours = two.records.file("n.md")
    assert ours is not None
    (theirs,) = (rev for rev in conflict_of(two).revs if rev != ours.rev)
    assert resolve(two, theirs).kept == theirs
    assert settled(one, two) == {"n.md": b"from one\n"}


def test_both_branches_are_kept_as_two_files(make_node: MakeNode) -> None:
    one, two = two_branches(make_node)
    done = resolve(two, "both")
    (beside,) = done.kept_as
    assert settled(one, two) == {"n.md": b"from two\n", beside: b"from one\n"}


@pytest.mark.parametrize("keep", ["mine", "", "2-0123456789abcdef0123456789abcdef"])
def test_an_unknown_version_changes_nothing(make_node: MakeNode, keep: str) -> None:
    _, two = two_branches(make_node)
    before = conflict_of(two)
    with pytest.raises(InvalidArgument):
        resolve(two, keep)
    assert conflict_of(two) == before
    assert two.couch.get("n.md", rev=before.revs[1]) is not None


def test_a_version_that_cannot_be_read_is_not_dropped(make_node: MakeNode) -> None:
    one, two = two_branches(make_node)
    for row in two.couch.list_ids(start="h:", end="h:\U0010ffff", limit=100):
        two.couch.bulk_docs([{"_id": row[0], "_rev": row[1], "_deleted": True}])
    with pytest.raises(LivesyncUnreadable):
        resolve(two, "ours")
    assert len(conflict_of(two).revs) == 2
    assert one.files() == {"n.md": b"from one\n"}


def test_a_node_that_only_reads_drops_no_branch(make_node: MakeNode) -> None:
    _, two = two_branches(make_node)
    with pytest.raises(ReadOnly):
        resolve(two, "theirs", is_read_only=True)


def test_a_vault_with_neither_version_must_name_one(make_node: MakeNode) -> None:
    _, two = two_branches(make_node)
    two.records.forget("n.md")
    two.write("n.md", "something else\n")
    with pytest.raises(LivesyncConflict):
        resolve(two, "ours")
    with pytest.raises(LivesyncConflict):
        resolve(two, "theirs")


def test_three_versions_have_more_than_one_other(make_node: MakeNode) -> None:
    _, two = two_branches(make_node)
    document = two.couch.get("n.md", rev=conflict_of(two).revs[0])
    assert document is not None
    rev = f"2-{'f' * 32}"
    rival = {**document, "_rev": rev, "_revisions": {"start": 2, "ids": ["f" * 32]}}
    two.couch.bulk_docs([rival], new_edits=False)
    with pytest.raises(InvalidArgument) as caught:
        resolve(two, "theirs")
    assert rev in caught.value.suggestion


def two_files(make_node: MakeNode) -> tuple[TestNode, TestNode]:
    """Two devices that changed the same line; the second one kept its version beside."""
    one, two = changed_apart(make_node, "from one\n", "from two\n")
    two.sync()
    assert conflict_of(two).kept_as is not None
    return one, two


@pytest.mark.parametrize(("keep", "kept"), [("ours", b"from two\n"), ("theirs", b"from one\n")])
def test_of_two_files_one_stays(make_node: MakeNode, keep: str, kept: bytes) -> None:
    one, two = two_files(make_node)
    resolve(two, keep)
    assert settled(one, two) == {"n.md": kept}
    assert {b"from one\n", b"from two\n"} - {kept} <= set(two.trashed())


def test_two_files_may_both_stay(make_node: MakeNode) -> None:
    one, two = two_files(make_node)
    done = resolve(two, "both")
    assert settled(one, two) == {"n.md": b"from one\n", done.kept_as[0]: b"from two\n"}


def test_the_revision_in_the_note_is_theirs(make_node: MakeNode) -> None:
    one, two = two_files(make_node)
    resolve(two, conflict_of(two).revs[0])
    assert settled(one, two) == {"n.md": b"from one\n"}


def test_our_version_cannot_be_kept_after_it_was_removed_by_hand(make_node: MakeNode) -> None:
    _, two = two_files(make_node)
    kept_as = conflict_of(two).kept_as
    assert kept_as is not None
    (two.root / kept_as).unlink()
    with pytest.raises(NotFound):
        resolve(two, "ours")
    assert resolve(two, "theirs").kept_as == ()


def unsent(make_node: MakeNode) -> tuple[TestNode, TestNode]:
    """A device that may only take has an edit of its own."""
    one, two = changed_apart(make_node, "from one\n", "from two\n")
    two.sync(is_read_only=True)
    assert two.files() == {"n.md": b"from two\n"}
    return one, two


def test_an_edit_that_may_not_be_sent_goes_to_the_trash_for_theirs(make_node: MakeNode) -> None:
    _, two = unsent(make_node)
    resolve(two, "theirs", is_read_only=True)
    assert two.files() == {"n.md": b"from one\n"}
    assert two.trashed() == [b"from two\n"]
    two.sync(is_read_only=True)
    assert two.records.conflicts() == []


def test_an_edit_that_may_not_be_sent_can_stay_beside(make_node: MakeNode) -> None:
    _, two = unsent(make_node)
    done = resolve(two, "both", is_read_only=True)
    assert two.files() == {"n.md": b"from one\n", done.kept_as[0]: b"from two\n"}


def test_an_edit_that_may_not_be_sent_cannot_win(make_node: MakeNode) -> None:
    _, two = unsent(make_node)
    with pytest.raises(ReadOnly):
        resolve(two, "ours", is_read_only=True)
    assert two.files() == {"n.md": b"from two\n"}


def test_a_conflict_that_is_over_is_forgotten(make_node: MakeNode) -> None:
    one = make_node("one")
    one.sync()
    one.records.add_conflict("gone.md", "gone.md", ("1-a", "1-b"))
    assert resolve(one, "theirs") == Resolved("gone.md", "theirs")
    assert one.records.conflicts() == []


def test_a_rival_that_moved_on_is_not_dropped(make_node: MakeNode) -> None:
    _, two = two_branches(make_node)
    conflict = conflict_of(two)
    late = replace(resolver(two), couch=_Late(two))  # type: ignore[arg-type]
    with pytest.raises(ObsidianRagError) as caught:
        late.resolve(conflict, "ours")
    assert caught.value.code == "LIVESYNC_CONFLICT"
    assert two.records.conflicts() == [conflict]


class _Late:
    """A client that is always a moment too late: another device writes just before it does."""

    def __init__(self, node: TestNode) -> None:
        self._couch = node.couch

    def __getattr__(self, name: str) -> object:
        return getattr(self._couch, name)

    def bulk_docs(self, documents: list[dict[str, object]]) -> object:
        for document in documents:
            present = self._couch.get(str(document["_id"]), rev=str(document["_rev"]))
            assert present is not None
            self._couch.bulk_docs([{**present, "mtime": 1}])
        return self._couch.bulk_docs(documents)


def test_both_sides_of_a_conflict_can_be_looked_at(make_node: MakeNode) -> None:
    _, two = two_branches(make_node)
    sides = resolver(two).versions(conflict_of(two))
    assert [(one.is_ours, one.content) for one in sides] == [
        (True, b"from two\n"),
        (False, b"from one\n"),
    ]
    assert all(one.mtime_ms and one.rev for one in sides)
    assert len(conflict_of(two).revs) == 2


def test_a_merge_reaches_both_devices_and_every_version_is_in_the_trash(
    make_node: MakeNode,
) -> None:
    one, two = two_branches(make_node)
    done = resolver(two).merge(conflict_of(two), b"from one\nfrom two\n")
    assert done == Resolved("n.md", "merged")
    assert settled(one, two) == {"n.md": b"from one\nfrom two\n"}
    assert [file.path for file in two.records.trash()] == ["n.md", "n.md"]


def test_a_conflict_kept_as_a_file_is_merged_into_the_note(make_node: MakeNode) -> None:
    one, two = two_files(make_node)
    two.sync()
    conflict = conflict_of(two)
    sides = resolver(two).versions(conflict)
    assert [one.content for one in sides] == [b"from two\n", b"from one\n"]
    resolver(two).merge(conflict, b"both\n")
    assert settled(one, two) == {"n.md": b"both\n"}


def test_a_node_that_sends_nothing_merges_nothing(make_node: MakeNode) -> None:
    _, two = two_branches(make_node)
    with pytest.raises(ReadOnly):
        resolver(two, is_read_only=True).merge(conflict_of(two), b"x")
