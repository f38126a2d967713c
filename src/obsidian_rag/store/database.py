"""The SQLite file: connection, migrations, transactions, and corruption told apart from bugs."""

import contextlib
import functools
import shutil
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

from obsidian_rag.errors import IndexCorrupted, IndexerFailed, ObsidianRagError, ReadOnly
from obsidian_rag.store.folder import own_folder

_PATIENCE_S = 30.0
# What is wrong with the place of a file, not with the file; all else that SQLite says is damage.
_OF_THE_PLACE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}
_UNDECODABLE = (ValueError, TypeError, LookupError, OverflowError, MemoryError, zlib.error)
_UNWRITABLE = _OF_THE_PLACE - {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
# A log that a bulk run made long is cut when it has been taken over.
_LOG_KEPT_BYTES = 4_000_000
_LITTLE_SPACE = 100_000
# So many times as long as a count took, it is taken for true.
_PAUSE_SHARE = 20
_COLUMNS = (
    "SELECT one.name, column.name FROM sqlite_master AS one"
    " JOIN pragma_table_info(one.name) AS column WHERE one.type = 'table'"
)
_SHORT_READ = sqlite3.SQLITE_IOERR_SHORT_READ
_SUGGESTION = "Run `obsidian-rag reindex`: it builds a new index and keeps what cannot be built."


def now() -> str:
    """The present, as every timestamp in the store is written."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def of_link(link_id: str | None) -> tuple[str, tuple[str, ...]]:
    """A condition on rows, and its values: those of one vault, or all."""
    return ("true", ()) if link_id is None else ("link_id = ?", (link_id,))


def file_identity(file: Path) -> tuple[int, int] | None:
    """What tells a file from another one of the same name; None if there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Database:
    """One SQLite file in WAL mode, shared by the threads of this process through one lock."""

    def __init__(self, path: Path, scripts: str = "obsidian_rag.store") -> None:
        """Open or make the file; `scripts` is the package whose `sql` folder describes it.

        One that cannot be written, as on a full or a read-only disk, is opened for reading.
        """
        self.path = path
        self.is_read_only = False
        self._scripts = scripts
        self._lock = threading.RLock()
        self._counts: dict[str, tuple[int, float]] = {}
        own_folder(path.parent)
        with explained(path):
            try:
                self._open()
            except sqlite3.OperationalError as error:
                if not (_code(error) in _UNWRITABLE and path.is_file()):
                    raise
                self._open_to_read(error)

    def _open(self) -> None:
        self._connection = sqlite3.connect(
            self.path, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _open_to_read(self, cause: sqlite3.OperationalError) -> None:
        """Read what is there; without a log beside it the file is all there is."""
        log = self.path.with_name(self.path.name + "-wal")
        has_log = log.exists() and log.stat().st_size > 0
        for how in ("mode=ro",) if has_log else ("mode=ro", "immutable=1"):
            connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?{how}",
                uri=True,
                timeout=_PATIENCE_S,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            except sqlite3.OperationalError:
                connection.close()
                continue
            if version != len(_migrations(self._scripts)):
                connection.close()
                break
            self._connection = connection
            self.is_read_only = True
            return
        raise cause

    def _prepare(self) -> None:
        self._use_a_log()
        for pragma in (
            "synchronous = NORMAL",
            "foreign_keys = ON",
            "temp_store = MEMORY",
            "cache_size = -32768",
            f"journal_size_limit = {_LOG_KEPT_BYTES}",
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
        with self._lock, self._explained():
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
        with self._lock, self._explained():
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, values: tuple[object, ...] = ()) -> tuple[object, ...] | None:
        """The first row of a query, if any."""
        with self._lock, self._explained():
            found: tuple[object, ...] | None = self._connection.execute(sql, values).fetchone()
            return found

    def seldom(self, name: str, count: Callable[[], int]) -> int:
        """A count for people to read, taken again when it was cheap or some time ago."""
        number, until = self._counts.get(name, (0, 0.0))
        began = time.monotonic()
        if began >= until:
            number = count()
            until = time.monotonic() + _PAUSE_SHARE * (time.monotonic() - began)
            self._counts[name] = number, until
        return number

    def run(self, sql: str, values: tuple[object, ...] = ()) -> int:
        """Change something; the number of rows changed."""
        with self._lock, self._explained():
            return self._connection.execute(sql, values).rowcount

    def run_many(self, sql: str, values: Iterable[tuple[object, ...]]) -> None:
        """Change something once per value."""
        with self._lock, self._explained():
            self._connection.executemany(sql, values)

    @property
    def stamp(self) -> tuple[int, int] | None:
        """Another one when anything has changed, by whomever; None while changes are under way."""
        with self._lock, self._explained():
            if self._connection.in_transaction:
                return None
            version = self._connection.execute("PRAGMA data_version").fetchone()
            return int(version[0]), self._connection.total_changes

    def get(self, key: str) -> str | None:
        """A small fact about this installation, by name."""
        found = self.row("SELECT value FROM meta WHERE key = ?", (key,))
        return str(found[0]) if found else None

    def facts(self) -> dict[str, str]:
        """All small facts at once, as of one moment."""
        return {str(key): str(value) for key, value in self.rows("SELECT key, value FROM meta")}

    def put(self, key: str, value: str | None) -> None:
        """Remember a small fact, or forget it."""
        if value is None:
            self.run("DELETE FROM meta WHERE key = ?", (key,))
        else:
            self.run("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))

    def add_to(self, key: str, amount: int) -> None:
        """Raise a number that is remembered under a name."""
        before = self.get(key) or ""
        self.put(key, str((int(before) if before.isdecimal() else 0) + amount))

    def check(self, *, is_deep: bool = False) -> str | None:
        """What is wrong with the file, if anything; `is_deep` compares tables and columns too."""
        found = self.row(f"PRAGMA {'integrity' if is_deep else 'quick'}_check(1)")
        if not found or found[0] != "ok":
            return str(found and found[0])
        if is_deep and (row := self.row("PRAGMA foreign_key_check")) is not None:
            return f"rows of {row[0]} refer to nothing"
        # SQLite itself does not mind when a column is called otherwise.
        missing = _columns_of(self._scripts).difference(self.rows(_COLUMNS)) if is_deep else set()
        if missing:
            table, column = min(missing)
            return f"{table} has no column {column}"
        return None

    @contextlib.contextmanager
    def decoding(self) -> Iterator[None]:
        """Values that are not of their kind are damage: SQLite checks none.

        Raises:
            IndexCorrupted: a value could not be used.
        """
        try:
            yield
        except _UNDECODABLE as error:
            raise _damaged(self.path, type(error).__name__) from error

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            with explained(self.path):
                yield
        except sqlite3.IntegrityError as error:
            # Our own mistake, unless the rows that are in the way should not be there.
            with explained(self.path):
                found = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
            if found[0] != "ok":
                raise _damaged(self.path, error.sqlite_errorname) from error
            raise

    def close(self) -> None:
        """Close the connection; the object cannot be used afterwards."""
        with self._lock:
            self._connection.close()


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's failures into ours; their texts may quote a row, so none is passed on.

    Raises:
        IndexCorrupted: the file is damaged.
        ReadOnly: it may not be written.
        IndexerFailed: the disk is full or the file cannot be used.
    """
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
        raise  # our own mistake, not the file's
    except sqlite3.DatabaseError as error:
        raise _told(path, error) from error
    except (MemoryError, UnicodeDecodeError) as error:
        # A schema that is no text cannot even be complained about.
        raise _damaged(path, type(error).__name__) from error


def _told(path: Path, error: sqlite3.DatabaseError) -> ObsidianRagError:
    code = _code(error)
    if code is None:
        return _damaged(path, "text that cannot be decoded")
    name = error.sqlite_errorname
    if code not in _OF_THE_PLACE or error.sqlite_errorcode == _SHORT_READ:
        return _damaged(path, name)
    if code == sqlite3.SQLITE_FULL or shutil.disk_usage(path.parent).free < _LITTLE_SPACE:
        return IndexerFailed(
            f"The disk is full; {path} could not be written.",
            "Free some disk space and run `obsidian-rag sync`: it goes on where it stopped.",
        )
    if code == sqlite3.SQLITE_READONLY:
        return ReadOnly(
            f"{path} may not be written: the file, its folder or its disk is read-only.",
            "Searching works. To index, give yourself the right to write there.",
        )
    return IndexerFailed(
        f"{path} cannot be used ({name}).",
        "Check free disk space and permissions, then run the command again.",
    )


def _code(error: sqlite3.DatabaseError) -> int | None:
    """SQLite's code without its details; None for what Python made of a value."""
    found: int | None = getattr(error, "sqlite_errorcode", None)
    return None if found is None else found & 0xFF


def _damaged(path: Path, why: str) -> IndexCorrupted:
    return IndexCorrupted(f"{path} is damaged ({why}).", _SUGGESTION)


def _statements(script: str) -> Iterator[str]:
    """The statements of a script: `executescript` would end the transaction that is open."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@functools.cache
def _columns_of(package: str) -> frozenset[tuple[str, str]]:
    """Every table and column of a new file."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for script in _migrations(package):
            connection.executescript(script)
        return frozenset(connection.execute(_COLUMNS))


def _migrations(package: str) -> list[str]:
    folder = resources.files(package) / "sql"
    files = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".sql")),
        key=lambda entry: entry.name,
    )
    return [file.read_text(encoding="utf-8") for file in files]
