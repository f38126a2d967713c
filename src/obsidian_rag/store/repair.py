"""The first step of `reindex`: set damaged files aside, save what cannot be rebuilt."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from obsidian_rag.errors import IndexCorrupted, ObsidianRagError
from obsidian_rag.store.database import Database, now

# Links first: other tables refer to them.
KEPT_TABLES = (
    "vault_link",
    "memory",
    "livesync_fact",
    "livesync_file",
    "livesync_quarantine",
    "livesync_conflict",
    "livesync_trash",
)
_Row = tuple[object, ...]
# A damaged schema may end up in SQLite's message, which then is not UTF-8.
_UNREADABLE = (sqlite3.Error, MemoryError, OverflowError, UnicodeDecodeError)


def salvage(damaged: Path, into: Database) -> dict[str, int]:
    """Copy readable rows; returns the number of rows saved, by table."""
    saved: dict[str, int] = {}
    with contextlib.closing(_open_damaged(damaged)) as source:
        for table in KEPT_TABLES:
            columns = _shared_columns(source, into, table)
            keys = [str(row[1]) for row in into.rows(f"PRAGMA table_info({table})") if row[5]]
            count = 0
            for row in _read_rows(source, table, columns, keys):
                count += _insert(into, table, columns, row)
            if count:
                saved[table] = count
    return saved


def _shared_columns(source: sqlite3.Connection, into: Database, table: str) -> list[str]:
    """The columns that both files have; one of an older version has fewer."""
    wanted = [str(row[1]) for row in into.rows(f"PRAGMA table_info({table})")]
    had: set[str] = set()
    with contextlib.suppress(*_UNREADABLE):
        found = source.execute(f"PRAGMA table_info({table})")
        had = {bytes(row[1]).decode(errors="replace") for row in found}
    return [column for column in wanted if column in had] or wanted


def _open_damaged(damaged: Path) -> sqlite3.Connection:
    # Its WAL lies beside it under the same name, so the last commits are read too.
    connection = sqlite3.connect(damaged)
    connection.text_factory = bytes  # decoding is ours, row by row
    return connection


def _read_rows(
    source: sqlite3.Connection, table: str, columns: list[str], keys: list[str]
) -> Iterator[_Row]:
    names, order = ", ".join(columns), ", ".join(keys)
    found: dict[_Row, None] = {}
    for direction in ("ASC", "DESC"):
        by = ", ".join(f"{key} {direction}" for key in order.split(", "))
        with contextlib.suppress(*_UNREADABLE):
            cursor = source.execute(f"SELECT {names} FROM {table} ORDER BY {by}")
            while (row := cursor.fetchone()) is not None:
                if row in found:
                    break  # reached the rows already read from the other end
                found[row] = None
    for row in found:
        with contextlib.suppress(UnicodeDecodeError):
            yield tuple(_decode(value, name) for value, name in zip(row, columns, strict=True))


def _decode(value: object, column: str) -> object:
    return value.decode("utf-8") if isinstance(value, bytes) and column != "vector" else value


def _insert(into: Database, table: str, columns: list[str], row: _Row) -> int:
    marks = ", ".join("?" * len(columns))
    with contextlib.suppress(sqlite3.Error):
        return into.run(
            f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})", row
        )
    return 0


_SUFFIXES = ("", "-wal", "-shm")
_NAMES = {
    "memory": "facts",
    "vault_link": "links",
    "livesync_file": "LiveSync records",
    "livesync_trash": "entries of the trash",
}


def repair(file: Path, opened: Callable[[], Database], close: Callable[[], None]) -> str:
    """Make a rebuild possible, whatever is damaged; returns a message if anything was done.

    `opened` opens the file, or creates a new one; `close` closes it.
    """
    if _is_sound(opened):
        return ""
    close()
    aside = _set_aside(file)
    saved: dict[str, int] = {}
    with contextlib.suppress(ObsidianRagError, sqlite3.Error, OSError):
        saved = salvage(aside, opened())
    counts = ", ".join(f"{count} {_NAMES[name]}" for name, count in saved.items() if name in _NAMES)
    return f"state.db was damaged and is kept as {aside}; saved from it: {counts or 'nothing'}."


def _is_sound(opened: Callable[[], Database]) -> bool:
    with contextlib.suppress(IndexCorrupted):
        return opened().check(is_deep=True) is None
    return False


def _set_aside(file: Path) -> Path:
    """Keep a damaged file under another name, with its WAL, for a later rescue."""
    stamp = now()[:19].replace(":", "")
    aside = file.with_name(f"{file.name}.damaged-{stamp}")
    for suffix in _SUFFIXES:
        part = file.with_name(file.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    return aside
