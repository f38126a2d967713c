"""The tables of our SQLite files: created in one step, or taken over from an older version.

No version was released before `STATE`, so there are no steps from one to the next. What can be
built from the vault is built again by the next index run; of an older file only rows are copied,
by the columns that both versions have. All of it is one transaction in the file itself: a process
that dies meanwhile leaves the older file as it was.
"""

import contextlib
import functools
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources

# In `meta`: what was taken over from an older version, until an index run has reported it.
TAKEN_OVER = "taken_over"
# Counted in that message.
_NAMES = {
    "memory": ("fact", "facts"),
    "vault_link": ("vault", "vaults"),
    "livesync_file": ("LiveSync record", "LiveSync records"),
    "livesync_conflict": ("conflict", "conflicts"),
    "livesync_trash": ("file in the trash", "files in the trash"),
}
_OLD = "old_"
# Trash ids are not used twice: somebody may have noted one down.
_KEEP_IDS = (
    "INSERT INTO sqlite_sequence (name, seq) SELECT substr(name, 5), seq FROM sqlite_sequence"
    " WHERE name = ?"
)
_ALL_COLUMNS = (
    "SELECT one.name, column.name FROM sqlite_master AS one"
    " JOIN pragma_table_info(one.name) AS column WHERE one.type = 'table'"
)


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables in `sql/schema.sql` of a package, and their version.

    `kept` has the tables whose rows are taken over from an older file, each with the first version
    whose rows can be used; tables that others refer to come first.
    """

    package: str
    version: int
    kept: Mapping[str, int] = field(default_factory=dict)


# Of the tables of state.db and of the columns of the chunk table: an index of another version is
# rebuilt.
SCHEMA_VERSION = 9
# The first with several vaults; its index can still be searched.
_FIRST_INDEX = 6
STATE = Schema(
    "obsidian_rag.store",
    SCHEMA_VERSION,
    {
        "vault_link": _FIRST_INDEX,
        "link_fact": _FIRST_INDEX,
        "vault_file_manifest": _FIRST_INDEX,
        "vault_file_index_state": _FIRST_INDEX,
        "note": _FIRST_INDEX,
        "property_name": _FIRST_INDEX,
        "property_value": _FIRST_INDEX,
        "note_property": _FIRST_INDEX,
        "meta": _FIRST_INDEX,
        "memory": 2,
        "livesync_fact": 3,
        "livesync_file": 3,
        "livesync_quarantine": 3,
        "livesync_conflict": 3,
        "livesync_trash": 3,
    },
)


def version_of(connection: sqlite3.Connection) -> int:
    """The version of an open file; 0 if it has no tables yet."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def bring_up_to_date(connection: sqlite3.Connection, schema: Schema) -> str | None:
    """Create the tables, or take them over from an older version; returns a message if it did.

    The file must not be of a newer version.
    """
    if version_of(connection) == schema.version:
        return None
    # Neither can be set in a transaction. Dropping and renaming must not change other tables.
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("PRAGMA legacy_alter_table = ON")
    try:
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have been first.
        message = _replace_tables(connection, schema, version_of(connection))
        connection.execute("COMMIT")
        return message
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    finally:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("PRAGMA legacy_alter_table = OFF")
            connection.execute("PRAGMA foreign_keys = ON")


def _replace_tables(connection: sqlite3.Connection, schema: Schema, before: int) -> str | None:
    if before == schema.version:
        return None
    old = _set_tables_aside(connection) if before else []
    for statement in _statements(schema.package):
        connection.execute(statement)
    kept = {
        table: _copy_rows(connection, table)
        for table, since in schema.kept.items()
        if table in old and since <= before
    }
    for table in old:
        connection.execute(f'DROP TABLE "{_OLD}{table}"')
    connection.execute(f"PRAGMA user_version = {schema.version}")
    if not (before and schema.kept):
        return None
    message = _message(kept)
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (TAKEN_OVER, message))
    return message


def _set_tables_aside(connection: sqlite3.Connection) -> list[str]:
    """Rename all tables, and drop their indexes, whose names would be taken."""
    entries = connection.execute(
        "SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
    ).fetchall()
    for kind, name in entries:
        if kind == "index":
            connection.execute(f'DROP INDEX "{name}"')
    tables = [str(name) for kind, name in entries if kind == "table"]
    for table in tables:
        connection.execute(f'ALTER TABLE "{table}" RENAME TO "{_OLD}{table}"')
    return tables


def _copy_rows(connection: sqlite3.Connection, table: str) -> int:
    """Copy the rows of a table that was set aside; one that does not fit is left out."""
    had = _columns(connection, _OLD + table)
    columns = ", ".join(f'"{name}"' for name in _columns(connection, table) if name in had)
    connection.execute(_KEEP_IDS, (_OLD + table,))
    return connection.execute(
        f"INSERT OR IGNORE INTO {table} ({columns}) SELECT {columns} FROM {_OLD}{table}"
    ).rowcount


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]


def _message(kept: Mapping[str, int]) -> str:
    counts = [
        f"{kept[table]:,} {one if kept[table] == 1 else many}"
        for table, (one, many) in _NAMES.items()
        if kept.get(table)
    ]
    return (
        "The data folder was made by an older version of obsidian-rag; taken over from it:"
        f" {', '.join(counts) or 'the settings'}."
    )


def missing_column(connection: sqlite3.Connection, schema: Schema) -> str | None:
    """What is wrong with the columns, if anything: SQLite does not notice a damaged name."""
    missing = _new_columns(schema.package).difference(connection.execute(_ALL_COLUMNS))
    if not missing:
        return None
    table, column = min(missing)
    return f"{table} has no column {column}"


@functools.cache
def _new_columns(package: str) -> frozenset[tuple[str, str]]:
    """Every (table, column) of a new file."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for statement in _statements(package):
            connection.execute(statement)
        return frozenset(connection.execute(_ALL_COLUMNS))


def _statements(package: str) -> Iterator[str]:
    """The statements of the script: `executescript` would commit the open transaction."""
    script = (resources.files(package) / "sql" / "schema.sql").read_text(encoding="utf-8")
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
