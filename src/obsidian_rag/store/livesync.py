"""LiveSync's records of one remote: each document's last synced state, and pending problems.

The records are only a cache. Without them nothing is lost: files and documents are compared by
content, and in doubt both are kept. Only the trash cannot be rebuilt, so only its own methods
remove entries.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from obsidian_rag.store.database import Database, now

_ADDRESS = "address"
# Facts that are invalid once the remote database is rebuilt.
_FACTS_OF_ONE_DATABASE = ("since", "ignored", "held_deletions", "held_answer")
# SQLite's largest integer. A file dated later must not stop the others; it is just reread.
_MAX_MTIME_NS = 2**63 - 1
# SQLite limits the number of values in one statement.
_MAX_IDS_PER_QUERY = 500
_FILE_COLUMNS = "doc_id, path, rev, content_hash, size_bytes, mtime_ns"


@dataclass(frozen=True, slots=True)
class SyncedFile:
    """A document and its file when they last agreed."""

    doc_id: str
    path: str
    rev: str
    content_hash: str | None  # None: they agreed that it is deleted
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A document that was skipped because it is unreadable or must not be applied."""

    doc_id: str
    rev: str
    path: str | None
    code: str
    message: str
    since: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A document with several live revisions, or a file with its other version beside it."""

    doc_id: str
    path: str
    revs: tuple[str, ...]
    kept_as: str | None
    since: str


@dataclass(frozen=True, slots=True)
class TrashedFile:
    """A file that was removed from the vault and can be restored."""

    trash_id: int
    path: str
    stored_as: str
    size: int
    removed_at: str
    reason: str

    def fields(self) -> dict[str, object]:
        """The fields shown to users; not where the file is stored."""
        return {
            "id": self.trash_id,
            "path": self.path,
            "size": self.size,
            "removed_at": self.removed_at,
            "reason": self.reason,
        }


class LivesyncRecords:
    """The rows of one remote in the tables `livesync_*`.

    A remote is one database, whatever its address. Its name here is the key of its first address;
    the fact `address` is the key of the last one used.
    """

    def __init__(self, database: Database, remote: str) -> None:
        self.remote = remote
        self._database = database

    @classmethod
    def at_address(cls, database: Database, address: str) -> "LivesyncRecords":
        """The records of the database that was last reached at this address."""
        found = database.row(
            "SELECT remote FROM livesync_fact WHERE key = ? AND value = ?", (_ADDRESS, address)
        )
        return cls(database, str(found[0]) if found else address)

    @property
    def address(self) -> str | None:
        """The key of the database's last address."""
        return self.get_fact(_ADDRESS)

    def use_address(self, address: str) -> None:
        """Set the database's address; no other remote keeps it.

        After a change of address everything is compared again: feed positions of two servers are
        not comparable.
        """
        if self.address == address:
            return
        with self._database.transaction():
            self._database.run(
                "DELETE FROM livesync_fact WHERE key = ? AND value = ?", (_ADDRESS, address)
            )
            if (self.address or self.remote) != address:
                self.put_fact("since", None)
            self.put_fact(_ADDRESS, address)

    def with_facts(self, facts: Mapping[str, str]) -> "LivesyncRecords | None":
        """The records of another remote with all these facts, if there is one."""
        found: set[str] | None = None
        for key, value in facts.items():
            rows = self._database.rows(
                "SELECT remote FROM livesync_fact WHERE key = ? AND value = ?", (key, value)
            )
            remotes = {str(remote) for (remote,) in rows}
            found = remotes if found is None else found & remotes
        others = sorted((found or set()) - {self.remote})
        return LivesyncRecords(self._database, others[0]) if others else None

    def separate(self, name: str) -> "LivesyncRecords":
        """Separate records for another database, under a name derived from this one."""
        return LivesyncRecords(self._database, f"{self.remote}-{name}")

    def get_fact(self, key: str) -> str | None:
        """The value of one fact about the remote."""
        found = self._database.row(
            "SELECT value FROM livesync_fact WHERE remote = ? AND key = ?", (self.remote, key)
        )
        return str(found[0]) if found else None

    def put_fact(self, key: str, value: str | None) -> None:
        """Store a fact; None deletes it."""
        if value is None:
            self._database.run(
                "DELETE FROM livesync_fact WHERE remote = ? AND key = ?", (self.remote, key)
            )
        else:
            self._database.run(
                "INSERT OR REPLACE INTO livesync_fact (remote, key, value) VALUES (?, ?, ?)",
                (self.remote, key, value),
            )

    def file(self, doc_id: str) -> SyncedFile | None:
        """The last synced state of one document."""
        row = self._database.row(
            f"SELECT {_FILE_COLUMNS} FROM livesync_file WHERE remote = ? AND doc_id = ?",
            (self.remote, doc_id),
        )
        return _synced_file(row) if row else None

    def files_of(self, doc_ids: Iterable[str]) -> dict[str, SyncedFile]:
        """The last synced states of those of these documents that have one."""
        found: dict[str, SyncedFile] = {}
        ids = list(doc_ids)
        for at in range(0, len(ids), _MAX_IDS_PER_QUERY):
            some = ids[at : at + _MAX_IDS_PER_QUERY]
            rows = self._database.rows(
                f"SELECT {_FILE_COLUMNS} FROM livesync_file WHERE remote = ?"
                f" AND doc_id IN ({', '.join('?' * len(some))})",
                (self.remote, *some),
            )
            found |= {file.doc_id: file for file in map(_synced_file, rows)}
        return found

    def files(self) -> Iterator[SyncedFile]:
        """Every document ever synced, including deleted ones, ordered by id."""
        rows = self._database.rows(
            f"SELECT {_FILE_COLUMNS} FROM livesync_file WHERE remote = ? ORDER BY doc_id",
            (self.remote,),
        )
        return map(_synced_file, rows)

    def put(self, *files: SyncedFile) -> None:
        """Record that these documents and files agree now, in one transaction."""
        with self._database.transaction():
            self._database.run_many(
                f"INSERT OR REPLACE INTO livesync_file (remote, {_FILE_COLUMNS})"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    (
                        self.remote,
                        file.doc_id,
                        file.path,
                        file.rev,
                        file.content_hash,
                        file.size,
                        min(file.mtime_ns, _MAX_MTIME_NS),
                    )
                    for file in files
                ),
            )

    def forget(self, doc_id: str) -> None:
        """Drop the record of a document that no longer exists."""
        self._delete("livesync_file", doc_id)

    def count(self) -> int:
        """Number of files that should be on disk."""
        row = self._database.row(
            "SELECT count(*) FROM livesync_file WHERE remote = ? AND content_hash IS NOT NULL",
            (self.remote,),
        )
        return int(str(row[0])) if row else 0

    def quarantine(self, doc_id: str, rev: str, path: str | None, code: str, message: str) -> None:
        """Record that this revision was skipped, and why."""
        self._database.run(
            "INSERT INTO livesync_quarantine (remote, doc_id, rev, path, code, message, since)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET rev = excluded.rev,"
            " path = excluded.path, code = excluded.code, message = excluded.message",
            (self.remote, doc_id, rev, path, code, message, now()),
        )

    def quarantined(self) -> list[Quarantined]:
        """Every skipped document, oldest first."""
        rows = self._database.rows(
            "SELECT doc_id, rev, path, code, message, since FROM livesync_quarantine"
            " WHERE remote = ? ORDER BY since, doc_id",
            (self.remote,),
        )
        return [
            Quarantined(str(doc_id), str(rev), _text(path), str(code), str(message), str(since))
            for doc_id, rev, path, code, message, since in rows
        ]

    def release(self, doc_id: str) -> None:
        """Remove a document from quarantine."""
        self._delete("livesync_quarantine", doc_id)

    def add_conflict(
        self, doc_id: str, path: str, revs: Iterable[str], kept_as: str | None = None
    ) -> None:
        """Record a conflict; `kept_as` is the file beside the note, if there is one."""
        self._database.run(
            "INSERT INTO livesync_conflict (remote, doc_id, path, revs, kept_as, since)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET path = excluded.path,"
            " revs = excluded.revs, kept_as = coalesce(excluded.kept_as, kept_as)",
            (self.remote, doc_id, path, json.dumps(list(revs)), kept_as, now()),
        )

    def conflicts(self) -> list[Conflict]:
        """Every unresolved conflict, oldest first."""
        rows = self._database.rows(
            "SELECT doc_id, path, revs, kept_as, since FROM livesync_conflict"
            " WHERE remote = ? ORDER BY since, doc_id",
            (self.remote,),
        )
        return [
            Conflict(
                str(doc_id), str(path), tuple(json.loads(str(revs))), _text(kept_as), str(since)
            )
            for doc_id, path, revs, kept_as, since in rows
        ]

    def settle_conflict(self, doc_id: str) -> None:
        """Remove a resolved conflict."""
        self._delete("livesync_conflict", doc_id)

    def add_trash(self, path: str, stored_as: str, size: int, removed_at: str, reason: str) -> int:
        """Record a file in the trash, with its stored name; returns the row id."""
        with self._database.transaction():
            self._database.run(
                "INSERT INTO livesync_trash (remote, path, stored_as, size_bytes, removed_at,"
                " reason) VALUES (?, ?, ?, ?, ?, ?)",
                (self.remote, path, stored_as, size, removed_at, reason),
            )
            row = self._database.row("SELECT last_insert_rowid()")
        assert row is not None
        return int(str(row[0]))

    def trash(self) -> list[TrashedFile]:
        """Everything that can be restored, latest first."""
        rows = self._database.rows(
            "SELECT trash_id, path, stored_as, size_bytes, removed_at, reason"
            " FROM livesync_trash WHERE remote = ? ORDER BY removed_at DESC, trash_id DESC",
            (self.remote,),
        )
        return [
            TrashedFile(
                int(str(trash_id)),
                str(path),
                str(stored_as),
                int(str(size)),
                str(removed_at),
                str(reason),
            )
            for trash_id, path, stored_as, size, removed_at, reason in rows
        ]

    def drop_trash(self, trash_id: int) -> None:
        """Drop the record of a trashed file that was restored or deleted for good."""
        self._database.run(
            "DELETE FROM livesync_trash WHERE remote = ? AND trash_id = ?",
            (self.remote, trash_id),
        )

    def clear(self) -> None:
        """Start over after the remote database was rebuilt; the trash and other facts stay."""
        with self._database.transaction():
            for table in ("livesync_file", "livesync_quarantine", "livesync_conflict"):
                self._database.run(f"DELETE FROM {table} WHERE remote = ?", (self.remote,))
            for key in _FACTS_OF_ONE_DATABASE:
                self.put_fact(key, None)

    def _delete(self, table: str, doc_id: str) -> None:
        self._database.run(
            f"DELETE FROM {table} WHERE remote = ? AND doc_id = ?", (self.remote, doc_id)
        )


def _synced_file(row: tuple[object, ...]) -> SyncedFile:
    doc_id, path, rev, content_hash, size, mtime_ns = row
    return SyncedFile(
        str(doc_id), str(path), str(rev), _text(content_hash), int(str(size)), int(str(mtime_ns))
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)
