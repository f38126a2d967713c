"""The known files: cheap metadata that shows which ones to read again."""

from collections.abc import Iterable
from typing import NamedTuple

from obsidian_rag.store.database import Database, now

_KEEP_DELETED_DAYS = 30


class KnownFile(NamedTuple):
    """Stored metadata of a file."""

    size_bytes: int
    mtime_ns: int
    file_id: int | None
    content_hash: str | None


class Manifest:
    """The table `vault_file_manifest`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def known(self, link_id: str) -> dict[str, KnownFile]:
        """Every file believed to exist, by path."""
        return self._load('link_id = ? AND "exists"', (link_id,))

    def known_at(self, link_id: str, paths: Iterable[str]) -> dict[str, KnownFile]:
        """Known files at these paths and below them."""
        ours = 'link_id = ? AND "exists" AND'
        found: dict[str, KnownFile] = {}
        for path in paths:
            # One condition with OR would scan every file of the vault.
            found |= self._load(f"{ours} rel_path = ?", (link_id, path))
            # "0" follows "/": all paths below a folder sort between the two.
            below = (link_id, f"{path}/", f"{path}0")
            found |= self._load(f"{ours} rel_path > ? AND rel_path < ?", below)
        return found

    def exactly(self, link_id: str, paths: Iterable[str]) -> dict[str, KnownFile]:
        """Known files at exactly these paths, if their content hash is known."""
        wanted = tuple(paths)
        marks = ", ".join("?" * len(wanted))
        ours = f'link_id = ? AND "exists" AND content_hash IS NOT NULL AND rel_path IN ({marks})'
        return self._load(ours, (link_id, *wanted))

    def ends(self, link_id: str, most: int) -> dict[str, KnownFile]:
        """The first and last known files, by path; cheap."""
        condition = 'link_id = ? AND "exists" ORDER BY rel_path'
        first = self._load(f"{condition} LIMIT ?", (link_id, most))
        return first | self._load(f"{condition} DESC LIMIT ?", (link_id, most))

    def some(self, link_id: str, most: int) -> dict[str, KnownFile]:
        """A sample of the known files from the whole vault."""
        known = self.known(link_id)
        paths = sorted(known)
        return {path: known[path] for path in paths[:: len(paths) // most + 1]}

    def count(self, link_id: str) -> int:
        """Number of known files."""
        row = self._database.row(
            'SELECT count(*) FROM vault_file_manifest WHERE link_id = ? AND "exists"', (link_id,)
        )
        return int(str(row[0])) if row else 0

    def _load(self, condition: str, values: tuple[object, ...]) -> dict[str, KnownFile]:
        rows = self._database.rows(
            "SELECT rel_path, size_bytes, mtime_ns, file_id, content_hash"
            f" FROM vault_file_manifest WHERE {condition}",
            values,
        )
        with self._database.decoding():
            return {_text(row[0]): KnownFile._make(row[1:]) for row in rows}

    def record(self, link_id: str, files: Iterable[tuple[str, int, int, int | None]]) -> None:
        """Store files as (path, size, mtime, file id), without a content hash."""
        seen = now()
        self._database.run_many(
            "INSERT INTO vault_file_manifest"
            " (link_id, rel_path, size_bytes, mtime_ns, file_id, last_seen_at)"
            " VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET size_bytes = excluded.size_bytes,"
            " mtime_ns = excluded.mtime_ns, file_id = excluded.file_id, content_hash = NULL,"
            ' "exists" = 1, deleted_at = NULL, last_seen_at = excluded.last_seen_at',
            ((link_id, *file, seen) for file in files),
        )

    def confirm(
        self, link_id: str, files: Iterable[tuple[str, int, int, int | None, str | None]]
    ) -> None:
        """Store files with their content hash, as they were when read."""
        seen = now()
        self._database.run_many(
            "UPDATE vault_file_manifest SET size_bytes = ?, mtime_ns = ?, file_id = ?,"
            ' content_hash = ?, "exists" = 1, deleted_at = NULL, last_seen_at = ?'
            " WHERE link_id = ? AND rel_path = ?",
            ((*file[1:], seen, link_id, file[0]) for file in files),
        )

    def forget(self, link_id: str, paths: Iterable[str]) -> None:
        """Mark files as deleted; the rows are kept for 30 days, for diagnosis."""
        at = now()
        gone = [(at, link_id, path) for path in paths]
        if not gone:
            return
        self._database.run_many(
            'UPDATE vault_file_manifest SET "exists" = 0, deleted_at = ?'
            " WHERE link_id = ? AND rel_path = ?",
            gone,
        )
        self._database.run(
            'DELETE FROM vault_file_manifest WHERE NOT "exists"'
            " AND julianday(deleted_at) < julianday('now') - ?",
            (_KEEP_DELETED_DAYS,),
        )

    def has_folder(self, link_id: str, folder: str) -> bool:
        """Whether the vault has a known file below `folder`."""
        row = self._database.row(
            'SELECT 1 FROM vault_file_manifest WHERE link_id = ? AND "exists" AND rel_path > ?'
            " AND rel_path < ? LIMIT 1",
            (link_id, f"{folder}/", f"{folder}0"),
        )
        return row is not None

    def clear(self, link_id: str) -> None:
        """Forget every file of a vault."""
        self._database.run("DELETE FROM vault_file_manifest WHERE link_id = ?", (link_id,))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a path is not text")
    return value
