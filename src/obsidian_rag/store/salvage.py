"""Take out of a damaged state.db what no vault can give back: facts, LiveSync's records, links.

Rows are read one by one from both ends of a table, so that a broken page costs what lies on it. A
row that cannot be decoded or that the new file refuses is left behind; the old file is kept.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from obsidian_rag.store.database import Database

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


def salvage(damaged: Path, into: Database) -> dict[str, int]:
    """Copy what can be read; how many rows of which table were saved."""
    saved: dict[str, int] = {}
    with contextlib.closing(_opened(damaged)) as source:
        for table in KEPT_TABLES:
            columns = _shared_columns(source, into, table)
            keys = [str(row[1]) for row in into.rows(f"PRAGMA table_info({table})") if row[5]]
            count = 0
            for row in _rows(source, table, columns, keys):
                count += _put(into, table, columns, row)
            if count:
                saved[table] = count
    return saved


def _shared_columns(source: sqlite3.Connection, into: Database, table: str) -> list[str]:
    """The columns of the new table that the old one has too; a file of before has fewer."""
    wanted = [str(row[1]) for row in into.rows(f"PRAGMA table_info({table})")]
    had: set[str] = set()
    with contextlib.suppress(sqlite3.Error, MemoryError):
        found = source.execute(f"PRAGMA table_info({table})")
        had = {bytes(row[1]).decode(errors="replace") for row in found}
    return [column for column in wanted if column in had] or wanted


def _opened(damaged: Path) -> sqlite3.Connection:
    # Its log is beside it under the same name, so what was committed last is read too.
    connection = sqlite3.connect(damaged)
    connection.text_factory = bytes  # decoding is ours, row by row
    return connection


def _rows(
    source: sqlite3.Connection, table: str, columns: list[str], keys: list[str]
) -> Iterator[_Row]:
    names, order = ", ".join(columns), ", ".join(keys)
    found: dict[_Row, None] = {}
    for direction in ("ASC", "DESC"):
        by = ", ".join(f"{key} {direction}" for key in order.split(", "))
        with contextlib.suppress(sqlite3.Error, MemoryError, OverflowError, UnicodeDecodeError):
            cursor = source.execute(f"SELECT {names} FROM {table} ORDER BY {by}")
            while (row := cursor.fetchone()) is not None:
                if row in found:
                    break  # met what was read from the other end
                found[row] = None
    for row in found:
        with contextlib.suppress(UnicodeDecodeError):
            yield tuple(_decoded(value, name) for value, name in zip(row, columns, strict=True))


def _decoded(value: object, column: str) -> object:
    return value.decode("utf-8") if isinstance(value, bytes) and column != "vector" else value


def _put(into: Database, table: str, columns: list[str], row: _Row) -> int:
    marks = ", ".join("?" * len(columns))
    with contextlib.suppress(sqlite3.Error):
        return into.run(
            f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})", row
        )
    return 0
