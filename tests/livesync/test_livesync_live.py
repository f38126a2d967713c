"""Nodes at work: what they do while they run, when they stop, and what they never do."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests.livesync.faults import Crash, crashing, meddling
from tests.livesync.nodes import MakeNode, TestNode, changed_apart, sync
from tests.livesync.pouch import Server
from tests.livesync.proxy import FaultyProxy
from tests.livesync.third import ThirdClient
from tests.waiting import PATIENCE_S, until

from obsidian_rag.errors import (
    IndexerFailed,
    LivesyncBrake,
    LivesyncIncompatible,
    LivesyncLocked,
    LivesyncPassphrase,
    LivesyncUnreadable,
    ObsidianRagError,
)
from obsidian_rag.livesync import transfer
from obsidian_rag.livesync.codec.tweaks import Tweaks
from obsidian_rag.livesync.couchdb.couch import Couch
from obsidian_rag.livesync.couchdb.remote import Remote
from obsidian_rag.livesync.milestone import MILESTONE_NAME, VERSION_ID
from obsidian_rag.livesync.node import Node, Pace
from obsidian_rag.livesync.site import Direction
from obsidian_rag.livesync.sync import Policy

QUICK = Pace(refresh_s=0.1, owed_s=0.1)
# Nothing happens by itself, so what happens was brought about.
PATIENT = Pace(refresh_s=3600, owed_s=3600, rescan_s=3600)


def seen(device: TestNode) -> dict[str, bytes]:
    """The files of a vault, less those that are just being written."""
    return {path: content for path, content in device.files().items() if "/." not in f"/{path}"}


class Running:
    """A node at work in a thread; `failure` is what ended it."""

    def __init__(self, device: TestNode, pace: Pace) -> None:
        self.device = device
        self.node: Node = device.node()
        self.node.plan = replace(self.node.plan, pace=pace)
        self.stop = threading.Event()
        self.failure: ObsidianRagError | None = None
        self.is_asked = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.node.run(self.stop)
        except ObsidianRagError as error:
            self.failure = error

    def write(self, path: str, content: str | bytes) -> None:
        self.device.write(path, content)
        self.node.changed()

    def ended(self) -> ObsidianRagError | None:
        self.is_asked = True
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        return self.failure

    def leave(self) -> None:
        self.stop.set()
        self._thread.join(PATIENCE_S)


@contextmanager
def running(*devices: TestNode, pace: Pace = PATIENT) -> Iterator[list[Running]]:
    started = [Running(device, pace) for device in devices]
    try:
        for one in started:
            until(lambda one=one: one.node.state.is_connected or one.failure)  # type: ignore[misc]
        yield started
    finally:
        for one in started:
            one.leave()
    assert not [one.failure for one in started if one.failure and not one.is_asked]


def change_papers(couch: Couch, **changes: object) -> None:
    milestone = couch.get_local(MILESTONE_NAME)
    assert milestone is not None
    couch.put_local(MILESTONE_NAME, milestone | changes)


# -- changes as they come


def test_what_is_done_on_one_device_is_done_on_the_other(make_node: MakeNode) -> None:
    one, two = make_node("one"), make_node("two")
    with running(one, two) as (first, second):
        first.write("Note.md", "new")
        until(lambda: seen(two) == {"Note.md": b"new"})
        second.write("Note.md", "edited")
        until(lambda: seen(one) == {"Note.md": b"edited"})
        first.write("other.png", b"\x00\xff")
        (one.root / "Note.md").rename(one.root / "note.md")
        first.node.changed()
        until(lambda: seen(two) == {"note.md": b"edited", "other.png": b"\x00\xff"})
        (two.root / "note.md").unlink()
        second.node.changed()
        until(lambda: seen(one) == {"other.png": b"\x00\xff"})
        assert one.trashed() == [b"edited"]
        assert first.node.state.trouble is None


def test_a_server_that_comes_back_is_caught_up_with(
    make_node: MakeNode, far_remote: Remote, proxy: FaultyProxy
) -> None:
    near, far = make_node("near"), make_node("far", far_remote)
    with running(near, far) as (first, second):
        first.write("before.md", "before")
        until(lambda: seen(far) == {"before.md": b"before"})
        proxy.refuse()
        until(lambda: not second.node.state.is_connected)
        assert second.node.state.trouble is not None
        first.write("meanwhile.md", "there")
        second.write("own.md", "here")
        proxy.heal()
        until(lambda: len(seen(near)) == len(seen(far)) == 3)
        until(lambda: second.node.state.is_connected)
        assert seen(near) == seen(far)


def test_chunks_that_come_late_are_waited_for(make_node: MakeNode, third: ThirdClient) -> None:
    one = make_node("one")
    with running(one, pace=QUICK):
        third.save("late.md", b"late", is_late=True)
        until(lambda: one.records.quarantined())
        third.deliver()
        until(lambda: seen(one) == {"late.md": b"late"})
        until(lambda: not one.records.quarantined())


# -- what stops a node


def test_a_lock_stops_a_running_node(make_node: MakeNode, couch: Couch) -> None:
    one = make_node("one")
    with running(one, pace=QUICK) as (first,):
        change_papers(couch, locked=True, accepted_nodes=["another"])
        assert isinstance(first.ended(), LivesyncLocked)
        assert first.node.state.trouble is first.failure


def test_a_lock_is_seen_before_anything_is_sent(
    make_node: MakeNode, couch: Couch, third: ThirdClient
) -> None:
    one = make_node("one")
    with running(one) as (first,):
        change_papers(couch, locked=True, accepted_nodes=["another"])
        before = third.update_seq()
        first.write("a.md", "a")
        assert isinstance(first.ended(), LivesyncLocked)
    assert third.update_seq() == before
    assert seen(one) == {"a.md": b"a"}


def test_a_newer_version_stops_a_running_node(make_node: MakeNode, couch: Couch) -> None:
    one = make_node("one")
    with running(one) as (first,):
        version = couch.get(VERSION_ID, conflicts=False)
        assert version is not None
        couch.bulk_docs([version | {"version": 13}])
        assert isinstance(first.ended(), LivesyncIncompatible)


def test_a_removed_device_stops_and_one_written_over_signs_again(
    make_node: MakeNode, couch: Couch
) -> None:
    one = make_node("one")
    one.sync()
    change_papers(couch, node_info={})  # by a device that had not seen our first lines
    sync(one, one)
    assert (couch.get_local(MILESTONE_NAME) or {})["node_info"]
    change_papers(couch, node_info={})
    with pytest.raises(LivesyncLocked):
        one.sync()


def test_the_wrong_passphrase_is_refused_before_anything_is_written(
    make_node: MakeNode, couch: Couch, third: ThirdClient
) -> None:
    tweaks = Tweaks(encrypt=True, use_path_obfuscation=True)
    one = make_node("one", tweaks=tweaks, passphrase="right")
    one.write("a.md", "a")
    one.sync()
    two = make_node("two", tweaks=tweaks, passphrase="wrong")
    two.write("b.md", "b")
    before = (third.update_seq(), couch.get_local(MILESTONE_NAME))
    with pytest.raises(LivesyncPassphrase):
        two.sync()
    none = make_node("none", tweaks=tweaks)
    with pytest.raises(LivesyncPassphrase):
        none.sync()
    assert (third.update_seq(), couch.get_local(MILESTONE_NAME)) == before
    assert seen(two) == {"b.md": b"b"}


def test_an_empty_database_stays_empty_without_the_passphrase(
    make_node: MakeNode, couch: Couch, third: ThirdClient
) -> None:
    one = make_node("one", tweaks=Tweaks(encrypt=True))
    with pytest.raises(LivesyncPassphrase):
        one.sync()
    assert couch.get_local(MILESTONE_NAME) is None
    assert couch.get(VERSION_ID) is None


# -- a database that was made anew


def test_a_rebuilt_database_deletes_nothing_and_is_compared_again(
    make_node: MakeNode, pouch: Server, remote: Remote
) -> None:
    one = make_node("one")
    for name in ("same.md", "missing.md", "other.md", "deleted.md"):
        one.write(name, f"our {name}")
    one.sync()
    pouch.request("DELETE", f"/{remote.database}")
    two = make_node("two")
    two.write("same.md", "our same.md")
    two.write("other.md", "their other.md")
    two.write("deleted.md", "x")
    two.write("new.md", "new")
    two.sync()
    (two.root / "deleted.md").unlink()
    two.sync()
    reconciler = one.sync()
    assert reconciler.sync.member.is_rebuilt
    files = seen(one)
    assert files["missing.md"] == b"our missing.md"
    assert files["deleted.md"] == b"our deleted.md"
    assert files["other.md"] == b"their other.md"
    assert b"our other.md" in files.values()
    assert one.trashed() == []
    two.sync()
    assert seen(two) == files


def test_a_running_node_rejoins_a_rebuilt_database(
    make_node: MakeNode, couch: Couch, third: ThirdClient
) -> None:
    one = make_node("one")
    with running(one) as (first,):
        first.write("a.md", "ours, synced with what is no more")
        until(lambda: "a.md" in third.entries())
        change_papers(couch, created=1)
        third.save("a.md", b"theirs")
        until(lambda: seen(one).get("a.md") == b"theirs")
        assert b"ours, synced with what is no more" in seen(one).values()
        first.write("b.md", "b")
        until(lambda: "b.md" in third.entries())


# -- what is no deletion


def test_a_folder_that_cannot_be_read_is_not_deleted(
    make_node: MakeNode, third: ThirdClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = make_node("one")
    one.write("closed/a.md", "a")
    one.write("closed/b.md", "b")
    one.write("open.md", "open")
    one.sync()
    real = os.scandir

    def refused(path: Any = ".") -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refused)
        third.save("closed/a.md", b"edited elsewhere")
        reconciler = one.sync()
        assert "closed" in reconciler.sync.disk.left_out
    assert not any(entry.get("deleted") for entry in third.entries().values())
    one.sync()  # as a new process: what was owed is not forgotten
    assert seen(one)["closed/a.md"] == b"edited elsewhere"


def test_a_file_that_grows_too_large_is_not_deleted(
    make_node: MakeNode, third: ThirdClient
) -> None:
    tweaks = Tweaks(sync_max_size_in_mb=1)
    one, two = make_node("one", tweaks=tweaks), make_node("two", tweaks=tweaks)
    for number in range(20):
        one.write(f"{number}.bin", b"small")
    sync(one, two)
    for number in range(20):
        one.write(f"{number}.bin", b"x" * (2**20 + 1))
    reconciler = one.sync()
    assert len(reconciler.sync.disk.left_out) == 20
    two.sync()
    assert len(seen(two)) == 20 and not two.trashed()
    one.write("0.bin", b"x" * 2**20)
    sync(one, two)
    assert seen(two)["0.bin"] == b"x" * 2**20


def test_a_size_limit_of_zero_means_no_limit(make_node: MakeNode) -> None:
    one = make_node("one", tweaks=Tweaks(sync_max_size_in_mb=0))
    one.write("a.md", "a")
    assert one.sync().sync.disk.left_out == {}


def test_a_text_that_is_not_utf_8_is_reported_and_the_rest_goes_on(
    make_node: MakeNode, third: ThirdClient
) -> None:
    one = make_node("one")
    one.write("bad.md", b"\xff\xfe")
    one.write("good.md", "good")
    one.sync()
    assert set(third.entries()) == {"good.md"}
    assert [(q.path, q.code) for q in one.records.quarantined()] == [
        ("bad.md", LivesyncUnreadable.code)
    ]
    one.write("bad.md", "better")
    one.sync()
    assert set(third.entries()) == {"good.md", "bad.md"}
    assert one.records.quarantined() == []


# -- the brake


@pytest.mark.parametrize(("files", "gone"), [(60, 12), (12, 10)])
def test_a_few_deletions_are_sent(
    files: int, gone: int, make_node: MakeNode, third: ThirdClient
) -> None:
    one = _with_files(make_node, files)
    for number in range(gone):
        (one.root / f"{number}.md").unlink()
    one.sync()
    assert sum(bool(one.get("deleted")) for one in third.entries().values()) == gone


@pytest.mark.parametrize(("files", "gone"), [(60, 13), (12, 11)])
def test_the_brake_holds_when_more_than_a_fifth_of_many_files_is_gone(
    files: int, gone: int, make_node: MakeNode, third: ThirdClient
) -> None:
    one = _with_files(make_node, files)
    for number in range(gone):
        (one.root / f"{number}.md").unlink()
    before = third.update_seq()
    with pytest.raises(LivesyncBrake):
        one.sync()
    with running(one) as (first,):
        assert isinstance(first.ended(), LivesyncBrake)
    assert third.update_seq() == before


def test_the_brake_holds_when_the_files_go_during_a_sync(
    make_node: MakeNode, third: ThirdClient
) -> None:
    """As when a disk is pulled out between the look and the act."""
    one = _with_files(make_node, 30)
    for number in range(30):
        one.write(f"{number}.md", f"edited {number}")
        third.save(f"{number}.md", f"edited there {number}".encode())

    def vanish() -> None:
        for file in one.root.iterdir():
            if file.is_file():
                file.unlink()

    with pytest.raises(LivesyncBrake), meddling(30, vanish):
        one.sync()
    assert not any(entry.get("deleted") for entry in third.entries().values())


def _with_files(make_node: MakeNode, count: int) -> TestNode:
    one = make_node("one")
    for number in range(count):
        one.write(f"{number}.md", f"note {number}")
    (one.root / "folder").mkdir()
    one.sync()
    return one


# -- one way only


def test_a_read_only_node_takes_and_sends_nothing(
    make_node: MakeNode, couch: Couch, third: ThirdClient
) -> None:
    one, reader = make_node("one"), make_node("reader")
    one.write("a.md", "a")
    one.write("b.md", "b")
    one.sync()
    reader.sync(is_read_only=True)
    reader.write("own.md", "own")
    reader.write("a.md", "edited here")
    (reader.root / "b.md").unlink()
    third.save("a.md", b"edited there")
    before = (third.update_seq(), couch.get_local(MILESTONE_NAME))
    reader.sync(is_read_only=True)
    assert (third.update_seq(), couch.get_local(MILESTONE_NAME)) == before
    assert seen(reader) == {"a.md": b"edited here", "own.md": b"own"}
    assert [conflict.path for conflict in reader.records.conflicts()] == ["a.md"]
    third.save("c.md", b"c")
    reader.sync(direction=Direction.PULL)
    assert seen(reader)["c.md"] == b"c"
    reader.sync()
    assert {"own.md", "a.md", "c.md"} <= set(third.entries())
    assert b"edited here" in seen(reader).values()
    assert seen(reader)["a.md"] == b"edited there"


def test_what_a_sending_node_did_not_take_is_taken_later(
    make_node: MakeNode, third: ThirdClient
) -> None:
    one = make_node("one")
    one.write("a.md", "a")
    one.write("b.md", "b")
    one.sync()
    third.save("new.md", b"new")
    third.save("a.md", b"edited there")
    third.delete("b.md")
    one.write("own.md", "own")
    one.sync(direction=Direction.PUSH)
    assert seen(one) == {"a.md": b"a", "b.md": b"b", "own.md": b"own"}
    assert "own.md" in third.entries()
    one.write("a.md", "edited here")
    one.sync(direction=Direction.PUSH)
    assert [conflict.path for conflict in one.records.conflicts()] == ["a.md"]
    one.sync()
    files = seen(one)
    assert files["new.md"] == b"new" and "b.md" not in files
    assert {b"edited here", b"edited there"} <= set(files.values())


def test_a_dry_run_reports_and_changes_nothing(
    make_node: MakeNode, couch: Couch, third: ThirdClient
) -> None:
    one = make_node("one")
    for name in ("edited", "deleted", "gone"):
        one.write(f"{name}.md", name)
    one.sync()
    one.write("edited.md", "anew")
    one.write("new.md", "new")
    (one.root / "gone.md").unlink()
    third.save("theirs.md", b"theirs")
    third.delete("deleted.md")
    third.save("late.md", b"late", is_late=True)
    files = seen(one)
    before = (third.update_seq(), couch.get_local(MILESTONE_NAME), one.records.get_fact("since"))
    one.policy = replace(one.policy, is_dry=True)
    planned = one.sync().planned
    assert set(planned) == {
        "push edited.md",
        "push new.md",
        "soft_delete gone.md",
        "trash deleted.md",
        "write theirs.md",
    }
    assert seen(one) == files and one.trashed() == []
    after = (third.update_seq(), couch.get_local(MILESTONE_NAME), one.records.get_fact("since"))
    assert after == before
    assert one.records.quarantined() == []


def test_a_restart_without_changes_fetches_and_writes_nothing(
    make_node: MakeNode, far_remote: Remote, proxy: FaultyProxy, third: ThirdClient
) -> None:
    one, two = make_node("one", far_remote), make_node("two")
    for number in range(30):
        one.write(f"{number}.md", f"note {number}")
    two.write("theirs.md", "theirs")
    sync(two, one, two, one)
    before = third.update_seq()
    proxy.requests.clear()
    stats = one.sync().sync.state
    assert (stats.pulled, stats.pushed, stats.chunks_fetched) == (0, 0, 0)
    assert third.update_seq() == before
    # The papers and the changes: no document is looked at.
    asked = [request.line for request in proxy.requests]
    assert not [line for line in asked if "_all_docs" in line or "_bulk" in line]


# -- single files that go wrong


def test_a_file_that_the_server_refuses_stops_no_other(
    make_node: MakeNode, far_remote: Remote, proxy: FaultyProxy, third: ThirdClient
) -> None:
    one = make_node("one", far_remote)
    one.sync()
    one.write("large.md", "too large")
    one.write("small.md", "small")
    proxy.answer(413, lambda request: b"too large" in request.body)
    one.sync()
    assert set(third.entries()) == {"small.md"}
    assert [q.doc_id for q in one.records.quarantined()] == ["large.md"]
    proxy.heal()
    one.sync()
    assert set(third.entries()) == {"small.md", "large.md"}
    assert one.records.quarantined() == []


def test_an_edit_that_looks_like_the_old_file_is_taken_after_a_crash(
    make_node: MakeNode, third: ThirdClient
) -> None:
    """The same size and the same time: only the content tells."""
    one = make_node("one")
    third.save("a.md", b"one")
    one.sync()
    third.save("a.md", b"two", is_timed=False)
    for at in range(1, 12):
        with pytest.raises(Crash), crashing(at):
            one.sync()
        if seen(one)["a.md"] == b"two":
            break
    reconciler = one.sync()
    assert seen(one) == {"a.md": b"two"}
    assert not reconciler.owed
    one.write("a.md", "six")
    one.sync()
    two = make_node("two")
    two.sync()
    assert seen(two) == {"a.md": b"six"}


def test_a_disk_that_keeps_its_spelling_gets_the_content(
    make_node: MakeNode, third: ThirdClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keeps_it(*_: object) -> None:
        raise IndexerFailed("The disk keeps the old spelling.", "Rename the file by hand.")

    # No disk of the tests is like that.
    monkeypatch.setattr(transfer, "rename_file", keeps_it)
    one = make_node("one")
    third.save("note.md", b"old")
    one.sync()
    third.save("Note.md", b"new")
    one.sync()
    assert seen(one) == {"note.md": b"new"}
    before = third.update_seq()
    one.sync()
    assert third.update_seq() == before
    one.write("note.md", "newest")
    one.sync()
    assert third.leaf(third.entries()["note.md"]).content == b"newest"


def test_a_conflict_of_a_note_with_a_long_name_is_kept(make_node: MakeNode) -> None:
    one, two = changed_apart(make_node, "ours\n", "theirs\n", name="ä" * 120 + ".md")
    sync(two, one)
    assert sorted(seen(one).values()) == [b"ours\n", b"theirs\n"]
    assert seen(one) == seen(two)


def test_a_conflict_is_over_when_its_file_is_gone(make_node: MakeNode) -> None:
    _, two = changed_apart(make_node, "ours\n", "theirs\n")
    two.sync()
    (conflict,) = two.records.conflicts()
    two.sync()
    assert len(two.records.conflicts()) == 1
    assert conflict.kept_as is not None
    (two.root / conflict.kept_as).unlink()
    two.sync()
    assert two.records.conflicts() == []


def test_one_portion_after_the_other_gives_the_same(
    make_node: MakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("obsidian_rag.livesync.reconcile._MAX_BATCH_BYTES", 100)
    one, two = make_node("one"), make_node("two")
    for number in range(12):
        one.write(f"{number}.md", "x" * (number * 17))
    sync(one, two)
    assert seen(one) == seen(two)


def test_conflicts_are_kept_as_branches_if_the_settings_say_so(make_node: MakeNode) -> None:
    policy = Policy(keeps_conflicts_as_files=False)
    one, two = changed_apart(make_node, "ours\n", "theirs\n", policy=policy)
    sync(two, one)
    assert (seen(one), seen(two)) == ({"n.md": b"ours\n"}, {"n.md": b"theirs\n"})
    assert len(one.records.conflicts()) == len(two.records.conflicts()) == 1
