"""What LiveSync knows of one remote: each document's last synced state, and what waits.

The records are never more than a memory. Without them nothing is lost: files and documents are
compared by content, and what cannot be told apart is kept. Only the trash has no second source,
so nothing but its own methods ever removes from it.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from obsidian_rag.store.database import Database, now

# What is about one making of a database, and nothing in another.
_PASSING_FACTS = ("since", "ignored", "held_deletions", "held_answer")
# A file of the year 2400 must not stop the others; it is read again each time instead.
_LAST_MTIME_NS = 2**63 - 1
_FILE_COLUMNS = "doc_id, path, rev, content_hash, size_bytes, mtime_ns"


@dataclass(frozen=True, slots=True)
class SyncedFile:
    """A document and its file as they were when they last agreed."""

    doc_id: str
    path: str
    rev: str
    content_hash: str | None  # None: they agreed that it is deleted
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A document that was left alone because it cannot be read or must not be applied."""

    doc_id: str
    rev: str
    path: str | None
    code: str
    message: str
    since: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A document with several living revisions, or a file whose other version lies beside it."""

    doc_id: str
    path: str
    revs: tuple[str, ...]
    kept_as: str | None
    since: str


@dataclass(frozen=True, slots=True)
class TrashedFile:
    """A file that was taken out of the vault and can be restored."""

    trash_id: int
    path: str
    stored_as: str
    size: int
    removed_at: str
    reason: str

    def fields(self) -> dict[str, object]:
        """What is told of it; where it is kept is nobody's business."""
        return {
            "id": self.trash_id,
            "path": self.path,
            "size": self.size,
            "removed_at": self.removed_at,
            "reason": self.reason,
        }


class LivesyncRecords:
    """The tables `livesync_*`, as far as they are about one remote."""

    def __init__(self, database: Database, remote: str) -> None:
        self.remote = remote
        self._database = database

    def get_fact(self, key: str) -> str | None:
        """A small fact about the remote, by name."""
        found = self._database.row(
            "SELECT value FROM livesync_fact WHERE remote = ? AND key = ?", (self.remote, key)
        )
        return str(found[0]) if found else None

    def put_fact(self, key: str, value: str | None) -> None:
        """Remember a small fact, or forget it."""
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

    def files(self) -> Iterator[SyncedFile]:
        """Every document ever synced, the deleted ones included, in the order of their ids."""
        rows = self._database.rows(
            f"SELECT {_FILE_COLUMNS} FROM livesync_file WHERE remote = ? ORDER BY doc_id",
            (self.remote,),
        )
        return map(_synced_file, rows)

    def put(self, *files: SyncedFile) -> None:
        """Record that these documents and files agree now; all of them or none."""
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
                        min(file.mtime_ns, _LAST_MTIME_NS),
                    )
                    for file in files
                ),
            )

    def forget(self, doc_id: str) -> None:
        """Drop the record of a document that exists no more."""
        self._delete("livesync_file", doc_id)

    def count(self) -> int:
        """How many files should be on the disk."""
        row = self._database.row(
            "SELECT count(*) FROM livesync_file WHERE remote = ? AND content_hash IS NOT NULL",
            (self.remote,),
        )
        return int(str(row[0])) if row else 0

    def quarantine(self, doc_id: str, rev: str, path: str | None, code: str, message: str) -> None:
        """Remember that this revision was left alone, and why."""
        self._database.run(
            "INSERT INTO livesync_quarantine (remote, doc_id, rev, path, code, message, since)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET rev = excluded.rev,"
            " path = excluded.path, code = excluded.code, message = excluded.message",
            (self.remote, doc_id, rev, path, code, message, now()),
        )

    def quarantined(self) -> list[Quarantined]:
        """Every document that was left alone, the longest waiting first."""
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
        """Say that a document is no longer left alone."""
        self._delete("livesync_quarantine", doc_id)

    def add_conflict(
        self, doc_id: str, path: str, revs: Iterable[str], kept_as: str | None = None
    ) -> None:
        """Remember a conflict; `kept_as` is the file beside the note, if there is one."""
        self._database.run(
            "INSERT INTO livesync_conflict (remote, doc_id, path, revs, kept_as, since)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET path = excluded.path,"
            " revs = excluded.revs, kept_as = coalesce(excluded.kept_as, kept_as)",
            (self.remote, doc_id, path, json.dumps(list(revs)), kept_as, now()),
        )

    def conflicts(self) -> list[Conflict]:
        """Every conflict that waits for the user, the oldest first."""
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
        """Say that a conflict is over."""
        self._delete("livesync_conflict", doc_id)

    def add_trash(self, path: str, stored_as: str, size: int, removed_at: str, reason: str) -> int:
        """Remember a file in the trash, by the name it is stored as; the number of the row."""
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
        """Everything that can be restored, the latest first."""
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
        """Forget a file of the trash that was restored or removed for good."""
        self._database.run(
            "DELETE FROM livesync_trash WHERE remote = ? AND trash_id = ?",
            (self.remote, trash_id),
        )

    def clear(self) -> None:
        """Begin anew with a database that was rebuilt; the trash and other facts stay."""
        with self._database.transaction():
            for table in ("livesync_file", "livesync_quarantine", "livesync_conflict"):
                self._database.run(f"DELETE FROM {table} WHERE remote = ?", (self.remote,))
            for key in _PASSING_FACTS:
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
