"""Links, manifest, index state and queue: what we have seen, have and owe."""

import itertools
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.waiting import until

from obsidian_rag.store import (
    REBUILD,
    Change,
    ChangeType,
    Database,
    EmbeddingStatus,
    FileState,
    IndexState,
    KnownFile,
    Links,
    Manifest,
    Queue,
)

CREATE, UPDATE, DELETE, RENAME = (
    ChangeType.CREATE,
    ChangeType.UPDATE,
    ChangeType.DELETE,
    ChangeType.RENAME,
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(tmp_path / "state.db")) as made:
        yield made


@pytest.fixture
def link(database: Database) -> str:
    return Links(database).set_primary(Path("/vault")).link_id


def owed(queue: Queue, link_id: str) -> list[Change]:
    return next(queue.pages(link_id, -1), [])


def test_there_is_no_primary_vault_before_one_is_set(database: Database) -> None:
    assert Links(database).primary() is None


def test_a_moved_vault_keeps_its_link(database: Database) -> None:
    links = Links(database)
    first = links.set_primary(Path("/old place"))
    assert links.set_primary(Path("/old place")) == first
    moved = links.set_primary(Path("/new place"))
    assert moved.link_id == first.link_id
    assert moved.root_path == Path("/new place")
    assert links.primary() == moved
    assert (moved.mode, moved.enabled, moved.is_primary) == ("read_write", True, True)


def test_a_scan_is_recorded_and_a_failed_one_keeps_the_time_of_the_last_good_one(
    database: Database, link: str
) -> None:
    links = Links(database)
    links.scanned(link, None)
    good = links.primary()
    assert good is not None
    assert good.last_scan_at is not None
    assert good.last_error is None
    links.scanned(link, "The disk is gone.")
    failed = links.primary()
    assert failed is not None
    assert (failed.last_scan_at, failed.last_error) == (good.last_scan_at, "The disk is gone.")


def test_files_are_recorded_confirmed_and_forgotten(database: Database, link: str) -> None:
    manifest = Manifest(database)
    manifest.record(link, [("a.md", 1, 2_000_000_000, 3), ("b 'q' 🎉.md", 4, 5, None)])
    assert manifest.known(link) == {
        "a.md": KnownFile(1, 2_000_000_000, 3, None),
        "b 'q' 🎉.md": KnownFile(4, 5, None, None),
    }
    manifest.confirm(link, [("a.md", 10, 20, 30, "hash")])
    assert manifest.known(link)["a.md"] == KnownFile(10, 20, 30, "hash")
    manifest.record(link, [("a.md", 11, 20, 30)])
    assert manifest.known(link)["a.md"] == KnownFile(11, 20, 30, None)
    manifest.forget(link, ["a.md"])
    assert set(manifest.known(link)) == {"b 'q' 🎉.md"}
    manifest.record(link, [("a.md", 1, 1, 1)])
    assert manifest.known(link)["a.md"] == KnownFile(1, 1, 1, None)
    manifest.clear(link)
    assert manifest.known(link) == {}


def test_inode_numbers_up_to_63_bits_fit(database: Database, link: str) -> None:
    Manifest(database).record(link, [("a.md", 2**40, 2**62, 2**63 - 1)])
    assert Manifest(database).known(link)["a.md"] == KnownFile(2**40, 2**62, 2**63 - 1, None)


def test_a_row_of_a_file_long_gone_is_dropped(database: Database, link: str) -> None:
    manifest = Manifest(database)
    manifest.record(link, [("old.md", 1, 1, 1), ("new.md", 1, 1, 2)])
    manifest.forget(link, ["old.md"])
    database.run("UPDATE vault_file_manifest SET deleted_at = '2020-01-01T00:00:00.000000Z'"
                 " WHERE rel_path = 'old.md'")  # fmt: skip
    manifest.forget(link, ["new.md"])
    assert database.rows("SELECT rel_path FROM vault_file_manifest") == [("new.md",)]


def test_outcomes_are_counted_and_the_troubled_ones_listed(database: Database, link: str) -> None:
    state = IndexState(database)
    assert state.totals() == (0, 0)
    good = FileState("good.md", EmbeddingStatus.INDEXED, "h1", 3)
    torn = FileState("torn.md", EmbeddingStatus.INDEXED, "h2", 2, parse_error="line 3")
    bad = FileState("bad.md", EmbeddingStatus.FAILED, reason="not_utf8")
    left = FileState("left.md", EmbeddingStatus.SKIPPED, "h3", reason="rag_false")
    state.put(link, [good, torn, bad, left])
    assert state.totals() == (2, 5)
    assert state.troubled(link) == [bad, left, torn]
    assert state.hashes(link) == {
        "good.md": "h1",
        "torn.md": "h2",
        "bad.md": None,
        "left.md": "h3",
    }
    state.put(link, [FileState("bad.md", EmbeddingStatus.INDEXED, "h4", 1)])
    state.remove(link, ["torn.md", "left.md"])
    assert state.totals() == (2, 4)
    assert state.troubled(link) == []


def test_a_finished_rebuild_takes_the_place_of_the_old_state(database: Database, link: str) -> None:
    live, rebuilt = IndexState(database), IndexState(database, REBUILD)
    live.put(link, [FileState("old.md", EmbeddingStatus.INDEXED, "h", 9)])
    fresh = FileState("new.md", EmbeddingStatus.FAILED, reason="not_utf8")
    rebuilt.put(link, [fresh, FileState("a.md", EmbeddingStatus.INDEXED, "h2", 2)])
    live.adopt(rebuilt)
    assert live.hashes(link) == {"new.md": None, "a.md": "h2"}
    assert live.totals() == (1, 2)
    assert live.troubled(link) == [fresh]
    assert rebuilt.hashes(link) == {}


def test_the_two_states_do_not_touch_each_other(database: Database, link: str) -> None:
    live, rebuilt = IndexState(database), IndexState(database, REBUILD)
    live.put(link, [FileState("a.md", EmbeddingStatus.INDEXED, "h", 1)])
    rebuilt.clear()
    assert live.totals() == (1, 1)
    rebuilt.put(link, [FileState("b.md", EmbeddingStatus.INDEXED, "h", 5)])
    assert live.totals() == (1, 1)


@pytest.mark.parametrize(
    ("waiting", "added", "result"),
    [
        (CREATE, CREATE, CREATE),
        (CREATE, UPDATE, CREATE),
        (CREATE, DELETE, DELETE),
        (UPDATE, CREATE, UPDATE),
        (UPDATE, UPDATE, UPDATE),
        (UPDATE, DELETE, DELETE),
        (DELETE, CREATE, UPDATE),
        (DELETE, UPDATE, UPDATE),
        (DELETE, DELETE, DELETE),
        (RENAME, CREATE, RENAME),
        (RENAME, UPDATE, RENAME),
        (RENAME, DELETE, DELETE),
    ],
)
def test_a_second_change_of_a_waiting_file_is_one_piece_of_work(
    database: Database, link: str, waiting: ChangeType, added: ChangeType, result: ChangeType
) -> None:
    queue = Queue(database)
    old = "before.md" if waiting is RENAME else None
    queue.add(link, [Change("a.md", waiting, old)])
    queue.add(link, [Change("a.md", added)])
    assert owed(queue, link) == [Change("a.md", result, old)]


def test_a_file_renamed_to_the_name_of_a_waiting_deletion_is_a_rename(
    database: Database, link: str
) -> None:
    queue = Queue(database)
    queue.add(link, [Change("a.md", DELETE)])
    queue.add(link, [Change("a.md", RENAME, "b.md")])
    assert owed(queue, link) == [Change("a.md", RENAME, "b.md")]


def test_work_is_owed_in_the_order_it_came(database: Database, link: str) -> None:
    queue = Queue(database)
    queue.add(link, [Change(f"{n}.md", CREATE) for n in (3, 1, 2)])
    queue.add(link, [Change("3.md", UPDATE)])
    assert [change.rel_path for change in owed(queue, link)] == ["3.md", "1.md", "2.md"]
    assert queue.size() == 3


def test_pages_have_every_file_once_however_it_ends(database: Database, link: str) -> None:
    queue = Queue(database)
    queue.add(link, [Change(f"{n}.md", CREATE) for n in range(7)])
    seen = []
    for page in queue.pages(link, 3):
        seen.append([change.rel_path for change in page])
        queue.start(link, seen[-1])
        queue.finish(link, seen[-1][:-1])
        queue.fail(link, seen[-1][-1], "unreadable")
    assert seen == [["0.md", "1.md", "2.md"], ["3.md", "4.md", "5.md"], ["6.md"]]
    assert [change.rel_path for change in owed(queue, link)] == ["2.md", "5.md", "6.md"]


def test_begun_work_counts_its_attempts_and_stays_until_it_is_finished(
    database: Database, link: str
) -> None:
    queue = Queue(database)
    queue.add(link, [Change("a.md", CREATE), Change("b.md", CREATE)])
    queue.start(link, ["a.md"])
    queue.start(link, ["a.md"])
    assert owed(queue, link) == [Change("a.md", CREATE, attempts=2), Change("b.md", CREATE)]
    queue.add(link, [Change("a.md", UPDATE)])
    # A new change begins anew; that the store may be half changed is not forgotten.
    assert owed(queue, link)[0] == Change("a.md", CREATE, attempts=1)
    queue.fail(link, "b.md", "unreadable")
    assert database.row("SELECT status, reason FROM sync_queue WHERE rel_path = 'b.md'") == (
        "queued",
        "unreadable",
    )
    assert not Queue(database).is_waiting(link) or owed(queue, link)[0].rel_path == "a.md"
    queue.finish(link, ["a.md"])
    assert owed(queue, link) == [Change("b.md", CREATE)]
    queue.clear(link)
    assert queue.size() == 0


def test_a_count_that_took_long_is_not_taken_at_every_question(database: Database) -> None:
    taken = itertools.count(1)

    def slow() -> int:
        time.sleep(0.3)  # the count's own time: what follows is within twenty times as long
        return next(taken)

    assert [database.seldom("slow", slow) for _ in range(3)] == [1, 1, 1]
    assert until(lambda: database.seldom("quick", lambda: next(taken)) > 3)


def test_a_new_file_is_not_searchable_and_a_changed_one_is(database: Database, link: str) -> None:
    IndexState(database).put(link, [FileState("old.md", EmbeddingStatus.INDEXED)])
    queue = Queue(database)
    changes = [Change("new.md", CREATE), Change("old.md", UPDATE), Change("skipped.md", UPDATE)]
    queue.add(link, [*changes, Change("moved.md", RENAME, "old.md"), Change("gone.md", DELETE)])
    assert until(lambda: queue.unsearchable() == 2)
