"""What LiveSync knows: kept per remote, all or nothing, and still there in the next process."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from obsidian_rag.store import Database, LivesyncRecords, SyncedFile

NOTE = SyncedFile("notes/a.md", "Notes/A.md", "1-abc", "h" * 32, 12, 1_700_000_000_123_456_789)
GONE = SyncedFile("notes/gone.md", "Notes/Gone.md", "3-def", None, 0, 0)


@pytest.fixture
def records(database: Database) -> LivesyncRecords:
    return LivesyncRecords(database, "remote")


def test_a_record_comes_back_as_it_was_put(records: LivesyncRecords) -> None:
    assert records.file(NOTE.doc_id) is None
    records.put(NOTE, GONE)
    assert records.file(NOTE.doc_id) == NOTE
    assert list(records.files()) == [NOTE, GONE]


def test_a_record_is_replaced_and_forgotten(records: LivesyncRecords) -> None:
    newer = replace(NOTE, rev="2-x", path="Notes/a.md", content_hash=None)
    records.put(NOTE)
    records.put(newer)
    assert list(records.files()) == [newer]
    records.forget(NOTE.doc_id)
    records.forget("never known")
    assert list(records.files()) == []


def test_only_files_that_should_be_on_the_disk_are_counted(records: LivesyncRecords) -> None:
    assert records.count() == 0
    records.put(NOTE, GONE)
    assert records.count() == 1


def test_several_records_are_put_together_or_not_at_all(records: LivesyncRecords) -> None:
    broken = replace(GONE, rev=None)  # type: ignore[arg-type]  # what a bug would pass
    with pytest.raises(sqlite3.IntegrityError):
        records.put(NOTE, broken)
    assert list(records.files()) == []


def test_a_file_from_the_far_future_is_recorded_all_the_same(records: LivesyncRecords) -> None:
    records.put(replace(NOTE, mtime_ns=2**64))
    found = records.file(NOTE.doc_id)
    assert found is not None
    assert found.mtime_ns != 2**64, "so the file is read again, which is safe"


def test_a_file_and_the_place_in_the_feed_are_recorded_together(
    database: Database, records: LivesyncRecords
) -> None:
    records.put_fact("since", "1")
    with pytest.raises(ZeroDivisionError), database.transaction():
        records.put(NOTE)
        records.put_fact("since", "2")
        _ = 1 / 0
    assert records.file(NOTE.doc_id) is None
    assert records.get_fact("since") == "1"


def test_facts_are_kept_replaced_and_forgotten(records: LivesyncRecords) -> None:
    assert records.get_fact("node_id") is None
    records.put_fact("node_id", "a")
    records.put_fact("node_id", "b")
    assert records.get_fact("node_id") == "b"
    records.put_fact("node_id", None)
    assert records.get_fact("node_id") is None


def test_what_is_left_alone_is_listed_once_with_its_latest_reason(
    records: LivesyncRecords,
) -> None:
    records.quarantine("x", "1-a", None, "LIVESYNC_UNREADABLE", "No path.")
    first = records.quarantined()[0]
    records.quarantine("y", "1-b", "Y.md", "LIVESYNC_UNREADABLE", "Too large.")
    records.quarantine("x", "2-a", "X.md", "LIVESYNC_UNREADABLE", "Two chunks are missing.")
    found, other = records.quarantined()
    assert (found.doc_id, found.rev, found.path) == ("x", "2-a", "X.md")
    assert (found.code, found.message) == ("LIVESYNC_UNREADABLE", "Two chunks are missing.")
    assert found.since == first.since, "it waits since the first time"
    assert other.doc_id == "y"
    records.release("x")
    assert [left.doc_id for left in records.quarantined()] == ["y"]


def test_a_conflict_waits_until_it_is_settled(records: LivesyncRecords) -> None:
    records.add_conflict("x", "X.md", ["2-a", "2-b"], "X (conflict).md")
    records.add_conflict("x", "X.md", ["3-a", "2-b"])
    (found,) = records.conflicts()
    assert (found.path, found.revs) == ("X.md", ("3-a", "2-b"))
    assert found.kept_as == "X (conflict).md", "where the other version lies is not forgotten"
    records.settle_conflict("x")
    assert records.conflicts() == []


def test_the_trash_lists_the_latest_first_and_drops_one(records: LivesyncRecords) -> None:
    old = records.add_trash("A.md", "1/A.md", 5, "2026-01-01T00:00:00.000000Z", "deleted remotely")
    new = records.add_trash("A.md", "2/A.md", 6, "2026-01-02T00:00:00.000000Z", "deleted remotely")
    assert [file.trash_id for file in records.trash()] == [new, old]
    found = records.trash()[1]
    assert (found.path, found.stored_as, found.size) == ("A.md", "1/A.md", 5)
    assert (found.removed_at[:10], found.reason) == ("2026-01-01", "deleted remotely")
    records.drop_trash(new)
    assert [file.trash_id for file in records.trash()] == [old]
    third = records.add_trash("B.md", "3/B.md", 1, "2026-01-03T00:00:00.000000Z", "conflict")
    assert third not in (old, new), "a number is never used twice"


def test_a_rebuilt_database_begins_anew_but_the_trash_and_our_name_stay(
    records: LivesyncRecords,
) -> None:
    _fill(records)
    records.clear()
    assert (list(records.files()), records.quarantined(), records.conflicts()) == ([], [], [])
    assert records.get_fact("since") is None
    assert records.get_fact("node_id") == "node"
    assert len(records.trash()) == 1


def test_two_remotes_never_mix(database: Database, records: LivesyncRecords) -> None:
    other = LivesyncRecords(database, "another")
    _fill(records)
    assert (list(other.files()), other.quarantined(), other.conflicts()) == ([], [], [])
    assert (other.trash(), other.get_fact("since"), other.count()) == ([], None, 0)
    other.put(replace(NOTE, rev="9-z"))
    other.drop_trash(records.trash()[0].trash_id)
    other.release("x")
    other.settle_conflict("x")
    other.clear()
    assert records.file(NOTE.doc_id) == NOTE
    assert len(records.trash()) == len(records.quarantined()) == len(records.conflicts()) == 1


def test_the_records_are_there_in_the_next_process(path: Path) -> None:
    with closing(Database(path)) as first:
        _fill(LivesyncRecords(first, "remote"))
    with closing(Database(path)) as second:
        again = LivesyncRecords(second, "remote")
        assert list(again.files()) == [NOTE]
        assert again.get_fact("since") == "42"
        assert len(again.trash()) == 1


def test_a_database_from_before_livesync_keeps_its_facts_and_gains_the_tables(
    path: Path,
) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA user_version = 2")
        raw.execute(
            "CREATE TABLE memory (key TEXT PRIMARY KEY, value TEXT NOT NULL, source TEXT NOT NULL,"
            " created_at TEXT NOT NULL, updated_at TEXT NOT NULL, vector BLOB, embedder TEXT)"
            " WITHOUT ROWID"
        )
        raw.execute("INSERT INTO memory VALUES ('k', 'v', 's', 't', 't', NULL, NULL)")
        raw.commit()
    with closing(Database(path)) as database:
        assert database.row("SELECT key FROM memory") == ("k",)
        records = LivesyncRecords(database, "remote")
        records.put(NOTE)
        assert records.count() == 1
        assert database.check() is None


def _fill(records: LivesyncRecords) -> None:
    records.put(NOTE)
    records.put_fact("since", "42")
    records.put_fact("node_id", "node")
    records.quarantine("x", "1-a", None, "LIVESYNC_UNREADABLE", "No path.")
    records.add_conflict("x", "X.md", ["1-a", "1-b"])
    records.add_trash("A.md", "1/A.md", 5, "2026-01-01T00:00:00.000000Z", "deleted remotely")
