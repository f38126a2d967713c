"""The SQLite file: its tables, transactions, and what damage and a full disk look like."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest

from obsidian_rag.errors import IndexCorrupted, IndexerFailed, ReadOnly
from obsidian_rag.store import Database

SEED_COLUMNS = {
    "vault_link": "link_id provider root_path mode enabled created_at updated_at last_scan_at"
    " last_error",
    "vault_file_manifest": "link_id rel_path size_bytes mtime_ns file_id content_hash exists"
    " deleted_at last_seen_at",
    "vault_file_index_state": "link_id rel_path index_hash indexed_at embedding_status parse_error",
    "sync_queue": "queue_id link_id rel_path change_type status attempts reason enqueued_at"
    " updated_at",
}


@pytest.mark.parametrize("table", SEED_COLUMNS)
def test_the_tables_of_the_design_have_their_columns(database: Database, table: str) -> None:
    columns = {str(row[1]) for row in database.rows(f"PRAGMA table_info({table})")}
    assert set(SEED_COLUMNS[table].split()) <= columns


def test_the_folder_is_made_and_writing_goes_through_a_log(database: Database) -> None:
    assert database.row("PRAGMA journal_mode") == ("wal",)
    assert database.row("PRAGMA foreign_keys") == (1,)
    assert database.path.parent.stat().st_mode & 0o077 == 0


def test_tables_are_made_once_with_their_version(database: Database, path: Path) -> None:
    steps = database.row("PRAGMA user_version")
    assert steps is not None
    assert int(str(steps[0])) >= 1
    database.put("a", "1")
    with closing(Database(path)) as again:
        assert again.row("PRAGMA user_version") == steps
        assert again.get("a") == "1"


def test_a_new_file_may_be_opened_by_several_at_once(tmp_path: Path) -> None:
    def opened(at: int) -> int:
        ready.wait()
        with closing(Database(tmp_path / f"{at}.db")) as database:
            return len(database.rows("SELECT name FROM sqlite_schema"))

    ready = threading.Barrier(4)
    with ThreadPoolExecutor(4) as several:
        for at in range(40):
            assert len(set(several.map(opened, [at] * 4))) == 1


def test_a_file_of_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA user_version = 999")
        raw.execute("CREATE TABLE from_the_future (x)")
    with pytest.raises(IndexerFailed) as caught:
        Database(path)
    assert "newer" in caught.value.message
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT name FROM sqlite_master").fetchall() == [("from_the_future",)]


def test_facts_are_kept_replaced_and_forgotten(database: Database) -> None:
    assert database.get("a") is None
    database.put("a", "1")
    database.put("a", "2")
    assert database.get("a") == "2"
    database.put("a", None)
    assert database.get("a") is None


def test_a_transaction_is_all_or_nothing(database: Database) -> None:
    with pytest.raises(ZeroDivisionError), database.transaction():
        database.put("a", "1")
        _ = 1 / 0
    assert database.get("a") is None
    with database.transaction():
        database.put("a", "2")
    assert database.get("a") == "2"


def test_an_inner_transaction_is_part_of_the_outer_one(database: Database) -> None:
    with pytest.raises(ZeroDivisionError), database.transaction():
        with database.transaction():
            database.put("a", "1")
        _ = 1 / 0
    assert database.get("a") is None


def test_what_is_not_committed_is_not_seen_by_others(database: Database, path: Path) -> None:
    with closing(Database(path)) as other:
        with database.transaction():
            database.put("a", "1")
            assert other.get("a") is None
        assert other.get("a") == "1"


def test_threads_share_one_connection(database: Database) -> None:
    def count() -> None:
        for _ in range(50):
            with database.transaction():
                database.put("n", str(int(database.get("n") or 0) + 1))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert database.get("n") == "200"


def test_a_file_that_is_no_database_is_damage(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"this is not a database" * 500)
    with pytest.raises(IndexCorrupted) as caught:
        Database(path)
    assert "reindex" in caught.value.suggestion


def test_overwritten_pages_are_damage(path: Path) -> None:
    with closing(Database(path)) as database:
        database.run_many(
            "INSERT INTO meta (key, value) VALUES (?, ?)",
            ((f"key {number}", "x" * 500) for number in range(500)),
        )
        assert database.check() is None
    size = path.stat().st_size
    with path.open("r+b") as stream:
        stream.seek(size // 2)
        stream.write(b"\xff" * 40_960)
    with closing(Database(path)) as database:
        # Some damage is described, some stops SQLite before it can describe it.
        with suppress(IndexCorrupted):
            assert database.check() is not None
        with pytest.raises(IndexCorrupted):
            database.rows("SELECT * FROM meta")


def test_a_missing_table_is_damage(database: Database) -> None:
    database.run("DROP TABLE meta")
    with pytest.raises(IndexCorrupted):
        database.get("a")


def test_a_column_that_is_called_otherwise_is_damage(database: Database) -> None:
    assert database.check(is_deep=True) is None
    database.run("ALTER TABLE memory RENAME COLUMN source TO origin")
    assert database.check() is None
    assert database.check(is_deep=True) == "memory has no column source"


def test_a_stamp_tells_of_every_change(database: Database, path: Path) -> None:
    before = database.stamp
    assert database.stamp == before
    database.put("one", "1")
    own = database.stamp
    assert own != before
    with closing(Database(path)) as other:
        other.put("two", "2")
    assert database.stamp != own
    with database.transaction():
        assert database.stamp is None


def test_a_folder_in_the_place_of_the_file_cannot_be_used(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(IndexerFailed) as caught:
        Database(path)
    assert str(path) in caught.value.message


def test_a_full_disk_is_told_and_leaves_the_database_usable(database: Database) -> None:
    database.put("before", "1")
    pages = database.row("PRAGMA page_count")
    assert pages is not None
    database.run(f"PRAGMA max_page_count = {pages[0]}")
    with pytest.raises(IndexerFailed) as caught, database.transaction():
        database.put("small", "1")
        database.put("large", "x" * 1_000_000)
    assert "disk" in caught.value.suggestion
    assert (database.get("before"), database.get("small")) == ("1", None)
    database.run("PRAGMA max_page_count = 1000000")
    database.put("large", "x" * 1_000_000)


def test_a_file_that_may_not_be_written_is_told(database: Database) -> None:
    database.run("PRAGMA query_only = ON")
    with pytest.raises(ReadOnly):
        database.put("a", "1")


def test_a_mistake_of_ours_is_not_called_damage(database: Database) -> None:
    with pytest.raises(sqlite3.ProgrammingError):
        database.rows("SELECT ?", ("one", "too many"))
