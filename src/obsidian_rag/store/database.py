"""The SQLite file: connection, migrations, transactions, and corruption told apart from bugs."""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

from obsidian_rag.errors import IndexCorrupted, IndexerFailed

_PATIENCE_S = 30.0
_SUGGESTION = "Run `obsidian-rag reindex`: it keeps the broken file aside and builds a new index."


def now() -> str:
    """The present, as every timestamp in the store is written."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Database:
    """One SQLite file in WAL mode, shared by the threads of this process through one lock."""

    def __init__(self, path: Path, scripts: str = "obsidian_rag.store") -> None:
        """Open or make the file; `scripts` is the package whose `sql` folder describes it."""
        self.path = path
        self._scripts = scripts
        self._lock = threading.RLock()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with explained(path):
            self._connection = sqlite3.connect(
                path, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self) -> None:
        self._use_a_log()
        for pragma in (
            "synchronous = NORMAL",
            "foreign_keys = ON",
            "temp_store = MEMORY",
            "cache_size = -32768",
        ):
            self._connection.execute(f"PRAGMA {pragma}")
        done = self._version()
        steps = _migrations(self._scripts)
        if done > len(steps):
            raise IndexerFailed(
                f"{self.path} was written by a newer version of obsidian-rag.",
                "Upgrade obsidian-rag, or point OBSIDIAN_RAG_HOME at another folder.",
            )
        for number, script in enumerate(steps[done:], start=done + 1):
            # The step and its record are one transaction: a crash repeats or skips it whole.
            self._connection.execute("BEGIN IMMEDIATE")
            # Another process may have opened the new file at the same moment, and been faster.
            if self._version() >= number:
                self._connection.execute("ROLLBACK")
                continue
            for statement in _statements(script):
                self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version = {number}")
            self._connection.execute("COMMIT")

    def _use_a_log(self) -> None:
        # Who switches a new file needs it alone, and SQLite does not wait for that by itself.
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _version(self) -> int:
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; nests into the transaction that is already open."""
        with self._lock, explained(self.path):
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.rollback()
                raise
            self._connection.commit()

    def rows(self, sql: str, values: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        """Every row of a query."""
        with self._lock, explained(self.path):
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, values: tuple[object, ...] = ()) -> tuple[object, ...] | None:
        """The first row of a query, if any."""
        with self._lock, explained(self.path):
            found: tuple[object, ...] | None = self._connection.execute(sql, values).fetchone()
            return found

    def run(self, sql: str, values: tuple[object, ...] = ()) -> int:
        """Change something; the number of rows changed."""
        with self._lock, explained(self.path):
            return self._connection.execute(sql, values).rowcount

    def run_many(self, sql: str, values: Iterable[tuple[object, ...]]) -> None:
        """Change something once per value."""
        with self._lock, explained(self.path):
            self._connection.executemany(sql, values)

    def get(self, key: str) -> str | None:
        """A small fact about this installation, by name."""
        found = self.row("SELECT value FROM meta WHERE key = ?", (key,))
        return str(found[0]) if found else None

    def put(self, key: str, value: str | None) -> None:
        """Remember a small fact, or forget it."""
        if value is None:
            self.run("DELETE FROM meta WHERE key = ?", (key,))
        else:
            self.run("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))

    def add_to(self, key: str, amount: int) -> None:
        """Raise a number that is remembered under a name."""
        self.put(key, str(int(self.get(key) or 0) + amount))

    def check(self) -> str | None:
        """What SQLite finds wrong with the file, if anything."""
        found = self.row("PRAGMA quick_check(1)")
        return None if found and found[0] == "ok" else str(found and found[0])

    def close(self) -> None:
        """Close the connection; the object cannot be used afterwards."""
        with self._lock:
            self._connection.close()


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's failures into ours.

    Raises:
        IndexCorrupted: the file is damaged.
        IndexerFailed: the disk is full or the file cannot be written.
    """
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
        raise  # our own mistake, not the file's
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and not _is_damage(error):
            raise IndexerFailed(
                f"{path} cannot be used: {error}.",
                "Check free disk space and permissions, then run the command again.",
            ) from error
        raise IndexCorrupted(f"{path} is damaged: {error}.", _SUGGESTION) from error


def _is_damage(error: sqlite3.OperationalError) -> bool:
    return any(word in str(error) for word in ("no such table", "no such column", "malformed"))


def _statements(script: str) -> Iterator[str]:
    """The statements of a script: `executescript` would end the transaction that is open."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _migrations(package: str) -> list[str]:
    folder = resources.files(package) / "sql"
    files = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".sql")),
        key=lambda entry: entry.name,
    )
    return [file.read_text(encoding="utf-8") for file in files]
