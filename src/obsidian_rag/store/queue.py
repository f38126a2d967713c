"""The work queue: one row per file whose change is not yet in the index and the related notes.

A row is written before any work starts and removed after the outcome is recorded, so it survives a
crash at any point and the next run processes it. Failures are retried by later runs, and become
`failed` after `MOST_ATTEMPTS`: then only a change to the file or a scan of the whole vault retries.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from obsidian_rag.store.database import Database, now, of_link

MOST_ATTEMPTS = 5


class ChangeType(StrEnum):
    """What happened to a file."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    RENAME = "rename"


_CHANGE_TYPES = {one.value: one for one in ChangeType}


@dataclass(frozen=True, slots=True)
class Change:
    """One file's pending work. If `attempts` is above zero it may be half done."""

    rel_path: str
    change_type: ChangeType
    old_path: str | None = None
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class QueuedFile:
    """A queue row for display: the pending change, its attempts, and why it failed."""

    rel_path: str
    change_type: str
    status: str
    attempts: int
    reason: str | None
    enqueued_at: str
    updated_at: str


class Queue:
    """The rows of `sync_queue`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, link_id: str, changes: Iterable[Change]) -> None:
        """Queue these changes, one row per file.

        A pending change says what the store may still hold, so it is merged: a rename stays a
        rename, and a file that came back before its deletion was processed becomes an update.
        """
        at = now()
        self._database.run_many(
            "INSERT INTO sync_queue"
            " (link_id, rel_path, change_type, old_path, enqueued_at, updated_at)"
            " VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET"
            " change_type = CASE WHEN excluded.change_type IN ('delete', 'rename')"
            " THEN excluded.change_type WHEN change_type IN ('create', 'rename')"
            " THEN change_type ELSE 'update' END,"
            " old_path = coalesce(excluded.old_path, old_path),"
            " status = 'queued', attempts = min(attempts, 1), reason = NULL,"
            " updated_at = excluded.updated_at",
            (
                (link_id, change.rel_path, change.change_type.value, change.old_path, at, at)
                for change in changes
            ),
        )

    def split_renames(self, link_id: str) -> None:
        """Turn unprocessed renames of an earlier run into a removal and an update.

        Another file may have taken either path since, so the pair can no longer be trusted.
        """
        at = now()
        if not self.size(link_id):
            return
        with self._database.transaction():
            self._database.run(
                "INSERT INTO sync_queue"
                " (link_id, rel_path, change_type, attempts, enqueued_at, updated_at)"
                " SELECT link_id, old_path, 'delete', attempts + 1, ?, ? FROM sync_queue"
                " WHERE link_id = ? AND old_path IS NOT NULL"
                " ON CONFLICT DO UPDATE SET attempts = attempts + 1",
                (at, at, link_id),
            )
            self._database.run(
                "UPDATE sync_queue SET old_path = NULL, attempts = attempts + 1,"
                " change_type = iif(change_type = 'rename', 'update', change_type)"
                " WHERE link_id = ? AND old_path IS NOT NULL",
                (link_id,),
            )

    def pages(self, link_id: str, size: int, *, with_failed: bool = True) -> Iterator[list[Change]]:
        """Pending work, oldest first, in pages of `size` files (-1: all).

        Each file is returned once, whatever its outcome; `failed` ones only `with_failed`.
        """
        last = 0
        while rows := self._database.rows(
            "SELECT queue_id, rel_path, change_type, old_path, attempts FROM sync_queue"
            " WHERE link_id = ? AND queue_id > ? AND (? OR status <> 'failed')"
            " ORDER BY queue_id LIMIT ?",
            (link_id, last, with_failed, size),
        ):
            with self._database.decoding():
                last = int(str(rows[-1][0]))
                page = [
                    Change(
                        str(path),
                        _CHANGE_TYPES[str(kind)],
                        None if old is None else str(old),
                        int(str(attempts)),
                    )
                    for _, path, kind, old, attempts in rows
                ]
            yield page
            if len(page) < size or size < 0:
                return

    def start(self, link_id: str, paths: Iterable[str]) -> None:
        """Mark these files as being processed, before the store is changed."""
        self._database.run(
            "UPDATE sync_queue SET status = 'processing', attempts = attempts + 1, updated_at = ?"
            " WHERE link_id = ? AND rel_path IN (SELECT value FROM json_each(?))",
            (now(), link_id, json.dumps(list(paths))),
        )

    def finish(self, link_id: str, paths: Iterable[str]) -> None:
        """Remove finished work."""
        self._database.run_many(
            "DELETE FROM sync_queue WHERE link_id = ? AND rel_path = ?",
            ((link_id, path) for path in paths),
        )

    def fail(self, link_id: str, path: str, reason: str) -> None:
        """Keep failed work for a retry, with the reason."""
        self._database.run(
            "UPDATE sync_queue SET status = iif(attempts >= ?, 'failed', 'queued'), reason = ?,"
            " updated_at = ? WHERE link_id = ? AND rel_path = ?",
            (MOST_ATTEMPTS, reason, now(), link_id, path),
        )

    def clear(self, link_id: str) -> None:
        """Remove all work of a vault."""
        self._database.run("DELETE FROM sync_queue WHERE link_id = ?", (link_id,))

    def size(self, link_id: str | None = None) -> int:
        """Number of queued files, of one vault or of all."""
        condition, values = of_link(link_id)
        row = self._database.row(f"SELECT count(*) FROM sync_queue WHERE {condition}", values)
        return int(str(row[0])) if row else 0

    def rows(self, link_id: str, limit: int) -> list[QueuedFile]:
        """The first rows of a vault, failures first."""
        found = self._database.rows(
            "SELECT rel_path, change_type, status, attempts, reason, enqueued_at, updated_at"
            " FROM sync_queue WHERE link_id = ? ORDER BY reason IS NULL, queue_id LIMIT ?",
            (link_id, limit),
        )
        with self._database.decoding():
            return [
                QueuedFile(
                    str(path),
                    str(kind),
                    str(status),
                    int(str(attempts)),
                    None if reason is None else str(reason),
                    str(enqueued_at),
                    str(updated_at),
                )
                for path, kind, status, attempts, reason, enqueued_at, updated_at in found
            ]

    def is_waiting(self, link_id: str | None = None) -> bool:
        """Whether any file waits for its first attempt; failures do not count."""
        condition, values = of_link(link_id)
        found = self._database.row(
            "SELECT 1 FROM sync_queue WHERE status <> 'failed' AND reason IS NULL"
            f" AND {condition} LIMIT 1",
            values,
        )
        return found is not None

    def unsearchable(self) -> int:
        """Number of queued files that were never searchable; cached if slow to count."""
        return self._database.seldom("unsearchable", self._count_unsearchable)

    def _count_unsearchable(self) -> int:
        row = self._database.row(
            "SELECT count(*) FROM sync_queue AS owed WHERE status <> 'failed'"
            " AND reason IS NULL AND change_type <> 'delete'"
            # New files, the bulk of an import, need no lookup.
            " AND (change_type = 'create' OR NOT EXISTS (SELECT 1 FROM vault_file_index_state"
            " AS state WHERE state.link_id = owed.link_id AND embedding_status = 'indexed'"
            " AND state.rel_path IN (owed.rel_path, owed.old_path)))"
        )
        return int(str(row[0])) if row else 0
