"""The database of one file, also when another process replaces that file."""

import threading
from pathlib import Path

from obsidian_rag.store.database import Database, file_identity


class FollowedDatabase:
    """A database that is opened at its first use; any thread may ask for it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._open: Database | None = None
        self._identity: tuple[int, int] | None = None
        self._abandoned: list[Database] = []

    @property
    def now(self) -> Database:
        """The open database."""
        with self._lock:
            if self._open is None:
                self._open = Database(self._path)
                self._identity = file_identity(self._path)
            return self._open

    def follow(self) -> None:
        """Let go of a database whose file another process has replaced, or the user removed."""
        identity = file_identity(self._path)
        with self._lock:
            if self._open is not None and identity != self._identity:
                # Not closed: SQLite would delete the journal of that name, which is the new file's.
                self._abandoned.append(self._open)
                self._open = None

    def close(self) -> None:
        """Let go of the file; a later use opens it again."""
        with self._lock:
            database, self._open = self._open, None
        if database is not None:
            database.close()
