"""The SQLite file: connection, transactions, key-value facts; distinguishes damage from bugs."""

import contextlib
import errno
import logging
import shutil
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from obsidian_rag.errors import (
    IndexCorrupted,
    IndexerFailed,
    ObsidianRagError,
    ReadOnly,
    disk_fault,
)
from obsidian_rag.store.folder import own_folder
from obsidian_rag.store.schema import (
    STATE,
    Schema,
    bring_up_to_date,
    missing_column,
    version_of,
)

_log = logging.getLogger(__name__)
_BUSY_TIMEOUT_S = 30.0
# Errors of the disk, permissions or locking; any other SQLite error means damage.
_ENVIRONMENT_CODES = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}
_DECODE_ERRORS = (ValueError, TypeError, LookupError, OverflowError, MemoryError, zlib.error)
_UNWRITABLE_CODES = _ENVIRONMENT_CODES - {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
# The WAL is truncated to this size after a checkpoint; bulk runs make it long.
_MAX_WAL_BYTES = 4_000_000
_LOW_SPACE_BYTES = 100_000
# A count is cached for this many times as long as it took.
_COUNT_CACHE_FACTOR = 20
_SHORT_READ = sqlite3.SQLITE_IOERR_SHORT_READ
# The next step, once there is space or permission.
GO_ON = "run `obsidian-rag sync`: it goes on where it stopped; searching works meanwhile"
_SUGGESTION = "Run `obsidian-rag reindex`: it builds a new index and keeps what cannot be built."


def now() -> str:
    """The current time as the store writes timestamps."""
    return timestamp(datetime.now(UTC))


def timestamp(moment: datetime) -> str:
    """A UTC time as text that sorts by time."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def of_link(link_id: str | None) -> tuple[str, tuple[str, ...]]:
    """SQL condition and values for the rows of one vault, or of all."""
    return ("true", ()) if link_id is None else ("link_id = ?", (link_id,))


def file_identity(file: Path) -> tuple[int, int] | None:
    """Identifies a file even if another takes its name; None if it does not exist."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Database:
    """One SQLite file in WAL mode, shared by the threads of this process through one lock."""

    def __init__(self, path: Path, schema: Schema = STATE) -> None:
        """Open or create the file, or take over what an older version left in it.

        If it cannot be written, as on a full or read-only disk, it is opened read-only.
        """
        self.path = path
        self.is_read_only = False
        self._schema = schema
        self._lock = threading.RLock()
        self._counts: dict[str, tuple[int, float]] = {}
        # `meta`, and the stamp it was read at.
        self._facts: tuple[tuple[int, int], Mapping[str, str]] | None = None
        own_folder(path.parent)
        with translate_errors(path):
            try:
                self._open()
            except sqlite3.OperationalError as error:
                if not (_primary_code(error) in _UNWRITABLE_CODES and path.is_file()):
                    raise
                self._open_read_only(error)

    def _open(self) -> None:
        self._connection = sqlite3.connect(
            self.path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _open_read_only(self, cause: sqlite3.OperationalError) -> None:
        """Open read-only; without a WAL beside it the file is complete and can be immutable."""
        log = self.path.with_name(self.path.name + "-wal")
        has_log = log.exists() and log.stat().st_size > 0
        for how in ("mode=ro",) if has_log else ("mode=ro", "immutable=1"):
            connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?{how}",
                uri=True,
                timeout=_BUSY_TIMEOUT_S,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                version = version_of(connection)
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            except sqlite3.OperationalError:
                connection.close()
                continue
            if version != self._schema.version:
                connection.close()
                self._refuse_newer(version)
                raise ReadOnly(
                    f"{self.path} was made by an older version of obsidian-rag, and taking it over"
                    " needs to write to it.",
                    "Check free disk space and permissions, then run the command again.",
                ) from cause
            self._connection = connection
            self.is_read_only = True
            return
        raise cause

    def _prepare(self) -> None:
        self._switch_to_wal()
        for pragma in (
            "synchronous = NORMAL",
            "foreign_keys = ON",
            "temp_store = MEMORY",
            "cache_size = -32768",
            f"journal_size_limit = {_MAX_WAL_BYTES}",
        ):
            self._connection.execute(f"PRAGMA {pragma}")
        self._refuse_newer(version_of(self._connection))
        message = bring_up_to_date(self._connection, self._schema)
        if message is not None:
            _log.warning("%s", message)

    def _refuse_newer(self, version: int) -> None:
        if version > self._schema.version:
            raise IndexerFailed(
                f"{self.path} was written by a newer version of obsidian-rag.",
                "Upgrade obsidian-rag, or point OBSIDIAN_RAG_HOME at another folder.",
            )

    def _switch_to_wal(self) -> None:
        # Switching to WAL needs an exclusive lock, and busy_timeout does not cover it: retry.
        deadline = time.monotonic() + _BUSY_TIMEOUT_S
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all or nothing; joins a transaction that is already open."""
        with self._lock, self._translate_errors():
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
        with self._lock, self._translate_errors():
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, values: tuple[object, ...] = ()) -> tuple[object, ...] | None:
        """The first row of a query, if any."""
        with self._lock, self._translate_errors():
            found: tuple[object, ...] | None = self._connection.execute(sql, values).fetchone()
            return found

    def seldom(self, name: str, count: Callable[[], int]) -> int:
        """A cached count for display; the slower it was, the longer it is reused."""
        number, until = self._counts.get(name, (0, 0.0))
        began = time.monotonic()
        if began >= until:
            number = count()
            until = time.monotonic() + _COUNT_CACHE_FACTOR * (time.monotonic() - began)
            self._counts[name] = number, until
        return number

    def run(self, sql: str, values: tuple[object, ...] = ()) -> int:
        """Execute a statement; returns the number of changed rows."""
        with self._lock, self._translate_errors():
            return self._connection.execute(sql, values).rowcount

    def run_many(self, sql: str, values: Iterable[tuple[object, ...]]) -> None:
        """Execute a statement once per tuple of values."""
        with self._lock, self._translate_errors():
            self._connection.executemany(sql, values)

    @property
    def stamp(self) -> tuple[int, int] | None:
        """Changes whenever any process writes; None inside a transaction."""
        with self._lock, self._translate_errors():
            if self._connection.in_transaction:
                return None
            version = self._connection.execute("PRAGMA data_version").fetchone()
            return int(version[0]), self._connection.total_changes

    def get(self, key: str) -> str | None:
        """The value stored under this key in `meta`."""
        found = self.row("SELECT value FROM meta WHERE key = ?", (key,))
        return str(found[0]) if found else None

    def facts(self) -> Mapping[str, str]:
        """All of `meta`; read again only when the file has changed."""
        stamp, read = self.stamp, self._facts
        if read is not None and read[0] == stamp:
            return read[1]
        found = {str(key): str(value) for key, value in self.rows("SELECT key, value FROM meta")}
        self._facts = None if stamp is None else (stamp, found)
        return found

    def put(self, key: str, value: str | None) -> None:
        """Store a value under this key; None deletes it."""
        if value is None:
            self.run("DELETE FROM meta WHERE key = ?", (key,))
        else:
            self.run("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))

    def add_to(self, key: str, amount: int) -> int:
        """Add to a number stored under this key; returns the new value."""
        found = self.row(
            "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE"
            " SET value = CAST(CAST(value AS INTEGER) + ?2 AS TEXT) RETURNING value",
            (key, amount),
        )
        return int(str(found[0])) if found else 0

    def check(self, *, is_deep: bool = False) -> str | None:
        """What is wrong with the file, if anything; `is_deep` compares tables and columns too."""
        found = self.row(f"PRAGMA {'integrity' if is_deep else 'quick'}_check(1)")
        if not found or found[0] != "ok":
            return str(found and found[0])
        if is_deep and (row := self.row("PRAGMA foreign_key_check")) is not None:
            return f"rows of {row[0]} refer to nothing"
        if not is_deep:
            return None
        with self._lock, self._translate_errors():
            return missing_column(self._connection, self._schema)

    @contextlib.contextmanager
    def decoding(self) -> Iterator[None]:
        """Treat values of the wrong type as damage: SQLite does not check types.

        Raises:
            IndexCorrupted: a value could not be used.
        """
        try:
            yield
        except _DECODE_ERRORS as error:
            raise _damage_error(self.path, type(error).__name__) from error

    @contextlib.contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            with translate_errors(self.path):
                yield
        except sqlite3.IntegrityError as error:
            # A bug of ours, unless the conflicting rows are damage.
            with translate_errors(self.path):
                found = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
            if found[0] != "ok":
                raise _damage_error(self.path, error.sqlite_errorname) from error
            raise

    def close(self) -> None:
        """Close the connection for good."""
        with self._lock:
            self._connection.close()


class FollowedDatabase:
    """A database that is opened at its first use and reopened if replaced; thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._database: Database | None = None
        self._identity: tuple[int, int] | None = None
        self._abandoned: list[Database] = []

    @property
    def path(self) -> Path:
        """The file, which may not exist yet."""
        return self._path

    @property
    def now(self) -> Database:
        """The open database; the file is created if it does not exist."""
        with self._lock:
            if self._database is None:
                self._database = Database(self._path)
                self._identity = file_identity(self._path)
            return self._database

    @property
    def exists(self) -> bool:
        """Whether the file is there; without a look if it is open (see `follow`)."""
        return self._database is not None or self._path.exists()

    def follow(self) -> None:
        """Drop a database whose file another process has replaced, or the user removed."""
        identity = file_identity(self._path)
        with self._lock:
            if self._database is not None and identity != self._identity:
                # Not closed: SQLite would delete the journal of that name, now the new file's.
                self._abandoned.append(self._database)
                self._database = None

    def close(self) -> None:
        """Close the file; it is reopened when needed."""
        with self._lock:
            database, self._database = self._database, None
        if database is not None:
            database.close()


@contextlib.contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Translate SQLite errors into ours; their texts may quote a row, so none is passed on.

    Raises:
        IndexCorrupted: the file is damaged.
        ReadOnly: it cannot be written.
        IndexerFailed: the disk is full or the file cannot be used.
    """
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
        raise  # a bug of ours, not damage
    except sqlite3.DatabaseError as error:
        raise _to_domain_error(path, error) from error
    except (MemoryError, UnicodeDecodeError) as error:
        # If the schema is not valid text, building SQLite's error message fails too.
        raise _damage_error(path, type(error).__name__) from error


def _to_domain_error(path: Path, error: sqlite3.DatabaseError) -> ObsidianRagError:
    code = _primary_code(error)
    if code is None:
        return _damage_error(path, "text that cannot be decoded")
    name = error.sqlite_errorname
    if code not in _ENVIRONMENT_CODES or error.sqlite_errorcode == _SHORT_READ:
        return _damage_error(path, name)
    if code == sqlite3.SQLITE_FULL or shutil.disk_usage(path.parent).free < _LOW_SPACE_BYTES:
        return disk_fault(OSError(errno.ENOSPC, name), str(path), GO_ON)
    if code == sqlite3.SQLITE_READONLY:
        return disk_fault(
            OSError(errno.EROFS, "it, its folder or its disk is read-only"), str(path), GO_ON
        )
    return disk_fault(OSError(errno.EIO, name), str(path), GO_ON, "used")


def _primary_code(error: sqlite3.DatabaseError) -> int | None:
    """SQLite's primary error code; None if Python raised the error itself."""
    found: int | None = getattr(error, "sqlite_errorcode", None)
    return None if found is None else found & 0xFF


def _damage_error(path: Path, why: str) -> IndexCorrupted:
    return IndexCorrupted(f"{path} is damaged ({why}).", _SUGGESTION)
