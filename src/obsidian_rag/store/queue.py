"""What we owe: one row per file and consumer that does not know of its change yet.

A row is written before any work starts and removed after the outcome is recorded, so a crash at
any point leaves the row, and the next run takes it up: for this consumer, and for no other. What
failed is tried again by the next runs, and after `MOST_ATTEMPTS` of them is `failed`: then only a
change to the file, or a look at the whole vault, tries it once more.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
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


class Consumer(StrEnum):
    """What is made of parsed notes."""

    CHUNKS = "chunks"
    RELATIONS = "relations"


@dataclass(frozen=True, slots=True)
class Change:
    """One file's owed work. `attempts` above zero means an earlier run may have half done it."""

    rel_path: str
    change_type: ChangeType
    old_path: str | None = None
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class QueuedFile:
    """A row of the queue as it is shown: what waits, how often it was tried, and why it failed."""

    rel_path: str
    change_type: str
    status: str
    attempts: int
    reason: str | None
    enqueued_at: str
    updated_at: str


class Queue:
    """The rows of `sync_queue` that are owed to one consumer."""

    def __init__(self, database: Database, consumer: Consumer = Consumer.CHUNKS) -> None:
        self._database = database
        self._consumer = consumer.value

    def add(self, link_id: str, changes: Iterable[Change]) -> None:
        """Owe these changes; a file that waits already waits once.

        What waits tells what the store may still hold, so it is kept: a rename stays a rename,
        and a file that came back before its deletion was processed is an update.
        """
        at = now()
        self._database.run_many(
            "INSERT INTO sync_queue"
            " (link_id, rel_path, consumer, change_type, old_path, enqueued_at, updated_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET"
            " change_type = CASE WHEN excluded.change_type IN ('delete', 'rename')"
            " THEN excluded.change_type WHEN change_type IN ('create', 'rename')"
            " THEN change_type ELSE 'update' END,"
            " old_path = coalesce(excluded.old_path, old_path),"
            " status = 'queued', attempts = min(attempts, 1), reason = NULL,"
            " updated_at = excluded.updated_at",
            (
                (
                    link_id,
                    change.rel_path,
                    self._consumer,
                    change.change_type.value,
                    change.old_path,
                    at,
                    at,
                )
                for change in changes
            ),
        )

    def split_renames(self, link_id: str) -> None:
        """Turn renames an earlier run left behind into a removal and an update.

        Either path may have been taken by another file since, so neither can be trusted to
        describe the other.
        """
        at = now()
        with self._database.transaction():
            self._database.run(
                "INSERT INTO sync_queue"
                " (link_id, rel_path, consumer, change_type, attempts, enqueued_at, updated_at)"
                " SELECT link_id, old_path, consumer, 'delete', attempts + 1, ?, ? FROM sync_queue"
                " WHERE link_id = ? AND consumer = ? AND old_path IS NOT NULL"
                " ON CONFLICT DO UPDATE SET attempts = attempts + 1",
                (at, at, link_id, self._consumer),
            )
            self._database.run(
                "UPDATE sync_queue SET old_path = NULL, attempts = attempts + 1,"
                " change_type = iif(change_type = 'rename', 'update', change_type)"
                " WHERE link_id = ? AND consumer = ? AND old_path IS NOT NULL",
                (link_id, self._consumer),
            )

    def owed_at(self, link_id: str, paths: Sequence[str]) -> list[Change]:
        """The work not yet done for the files at these paths."""
        condition = "rel_path IN (SELECT value FROM json_each(?))"
        return [change for _, change in self._found(link_id, condition, (json.dumps(paths),))]

    def pages(
        self, link_id: str, size: int, *, with_failed: bool = True, is_alone: bool = False
    ) -> Iterator[list[Change]]:
        """The work not yet done, oldest first, so many files at a time (-1: all).

        Each file comes once, however it ends; what has failed too often only `with_failed`.
        `is_alone` leaves out the files for which any other consumer waits too.
        """
        condition = "queue_id > ? AND (? OR status <> 'failed')"
        if is_alone:
            condition += (
                " AND NOT EXISTS (SELECT 1 FROM sync_queue AS other WHERE"
                " other.link_id = sync_queue.link_id AND other.rel_path = sync_queue.rel_path"
                " AND other.consumer <> sync_queue.consumer)"
            )
        last = 0
        while page := self._found(
            link_id, f"{condition} ORDER BY queue_id LIMIT ?", (last, with_failed, size)
        ):
            last = page[-1][0]
            yield [change for _, change in page]

    def _found(
        self, link_id: str, condition: str, values: tuple[object, ...]
    ) -> list[tuple[int, Change]]:
        rows = self._database.rows(
            "SELECT queue_id, rel_path, change_type, old_path, attempts FROM sync_queue"
            f" WHERE link_id = ? AND consumer = ? AND {condition}",
            (link_id, self._consumer, *values),
        )
        with self._database.decoding():
            return [
                (
                    int(str(number)),
                    Change(
                        str(path),
                        _CHANGE_TYPES[str(kind)],
                        None if old is None else str(old),
                        int(str(attempts)),
                    ),
                )
                for number, path, kind, old, attempts in rows
            ]

    def start(self, link_id: str, paths: Iterable[str]) -> None:
        """Say that the store is about to be changed for these files."""
        at = now()
        self._database.run_many(
            "UPDATE sync_queue SET status = 'processing', attempts = attempts + 1, updated_at = ?"
            " WHERE link_id = ? AND rel_path = ? AND consumer = ?",
            ((at, link_id, path, self._consumer) for path in paths),
        )

    def finish(self, link_id: str, paths: Iterable[str]) -> None:
        """Clear work that is done."""
        self._database.run_many(
            "DELETE FROM sync_queue WHERE link_id = ? AND rel_path = ? AND consumer = ?",
            ((link_id, path, self._consumer) for path in paths),
        )

    def fail(self, link_id: str, path: str, reason: str) -> None:
        """Keep work that may succeed next time, with the reason it did not."""
        self._database.run(
            "UPDATE sync_queue SET status = iif(attempts >= ?, 'failed', 'queued'), reason = ?,"
            " updated_at = ? WHERE link_id = ? AND rel_path = ? AND consumer = ?",
            (MOST_ATTEMPTS, reason, now(), link_id, path, self._consumer),
        )

    def clear(self, link_id: str) -> None:
        """Owe nothing to this consumer."""
        self._database.run(
            "DELETE FROM sync_queue WHERE link_id = ? AND consumer = ?", (link_id, self._consumer)
        )

    def size(self, link_id: str | None = None) -> int:
        """How many files wait, of one vault or of all."""
        condition, values = of_link(link_id)
        row = self._database.row(
            f"SELECT count(*) FROM sync_queue WHERE consumer = ? AND {condition}",
            (self._consumer, *values),
        )
        return int(str(row[0])) if row else 0

    def rows(self, link_id: str, limit: int) -> list[QueuedFile]:
        """The first rows of a vault, those in trouble before those that wait."""
        found = self._database.rows(
            "SELECT rel_path, change_type, status, attempts, reason, enqueued_at, updated_at"
            " FROM sync_queue WHERE link_id = ? AND consumer = ?"
            " ORDER BY reason IS NULL, queue_id LIMIT ?",
            (link_id, self._consumer, limit),
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
        """Whether any file waits to be looked at; one that failed has been looked at."""
        condition, values = of_link(link_id)
        found = self._database.row(
            "SELECT 1 FROM sync_queue WHERE consumer = ? AND status <> 'failed' AND reason IS NULL"
            f" AND {condition} LIMIT 1",
            (self._consumer, *values),
        )
        return found is not None

    def unsearchable(self) -> int:
        """How many files that wait have never been searchable; of very many, a moment ago."""
        return self._database.seldom(f"unsearchable {self._consumer}", self._unsearchable)

    def _unsearchable(self) -> int:
        row = self._database.row(
            "SELECT count(*) FROM sync_queue AS owed WHERE consumer = ? AND status <> 'failed'"
            " AND reason IS NULL AND change_type <> 'delete'"
            # What is new, as most of an import is, needs no look.
            " AND (change_type = 'create' OR NOT EXISTS (SELECT 1 FROM vault_file_index_state"
            " AS state WHERE state.link_id = owed.link_id AND embedding_status = 'indexed'"
            " AND state.rel_path IN (owed.rel_path, owed.old_path)))",
            (self._consumer,),
        )
        return int(str(row[0])) if row else 0
