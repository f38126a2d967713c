"""Which files are searchable, with the reason for those that are not; facts about the index."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from obsidian_rag.notes import EVERYTHING, RagPolicy, Scope
from obsidian_rag.store.database import Database, now, of_link

LIVE = "vault_file_index_state"
REBUILD = "rebuild_index_state"
_MAX_SQL_VALUES = 500


class IndexFact(StrEnum):
    """Keys of the facts about the whole index in the table `meta`."""

    # What the index was made with.
    FINGERPRINT = "fingerprint"
    # Changes whenever the index does.
    VERSION = "index_version"
    # The fingerprint of an unfinished rebuild.
    REBUILDING = "rebuilding"
    # SQLite already points to a rebuilt table, whose files have yet to be swapped in.
    PROMOTING = "promoting"
    COMMITS = "commits_since_maintenance"
    MAINTAINED = "maintained_at"
    # The transformer, and how many chunks had its vectors after the last pass.
    MEANING_ADDED = "meaning_added"
    # The folder of the vault that may replace the indexed one.
    REPLACE_WITH = "replace_with"


class EmbeddingStatus(StrEnum):
    """Indexing status of a file."""

    PENDING = "pending"
    INDEXED = "indexed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class FileState:
    """The outcome for one file."""

    rel_path: str
    status: EmbeddingStatus
    index_hash: str | None = None
    chunk_count: int = 0
    reason: str | None = None
    parse_error: str | None = None
    # The note's policy when it was read; None if it could not be read.
    policy: RagPolicy | None = None


class IndexState:
    """The table `vault_file_index_state`, or its copy for an index being rebuilt."""

    def __init__(self, database: Database, table: str = LIVE) -> None:
        self._database = database
        self._table = table

    def hashes(
        self, link_id: str, paths: Sequence[str] | None = None, *, is_searchable: bool = False
    ) -> dict[str, str | None]:
        """Content hash of each file when indexed, incl. skipped ones unless `is_searchable`."""
        condition = " AND embedding_status = 'indexed'" if is_searchable else ""
        values: tuple[object, ...] = (link_id,)
        if paths is not None and len(paths) <= _MAX_SQL_VALUES:
            condition += f" AND rel_path IN ({', '.join('?' * len(paths))})"
            values += tuple(paths)
        rows = self._database.rows(
            f"SELECT rel_path, index_hash FROM {self._table} WHERE link_id = ?{condition}", values
        )
        return {str(path): None if found is None else str(found) for path, found in rows}

    def put(self, link_id: str, states: Iterable[FileState]) -> None:
        """Record outcomes, replacing earlier ones of the same files."""
        at = now()
        self._database.run_many(
            f"INSERT OR REPLACE INTO {self._table} (link_id, rel_path, index_hash, indexed_at,"
            " embedding_status, parse_error, reason, chunk_count, policy)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    link_id,
                    state.rel_path,
                    state.index_hash,
                    at,
                    state.status.value,
                    state.parse_error,
                    state.reason,
                    state.chunk_count,
                    state.policy,
                )
                for state in states
            ),
        )

    def public(self, link_id: str, paths: Iterable[str]) -> set[str]:
        """The files among these that were read and have neither `rag: private` nor `rag: false`."""
        wanted = list(paths)
        found: set[str] = set()
        for start in range(0, len(wanted), _MAX_SQL_VALUES):
            some = wanted[start : start + _MAX_SQL_VALUES]
            rows = self._database.rows(
                f"SELECT rel_path FROM {self._table} WHERE link_id = ? AND policy = ?"
                f" AND rel_path IN ({', '.join('?' * len(some))})",
                (link_id, RagPolicy.INDEX.value, *some),
            )
            found |= {str(row[0]) for row in rows}
        return found

    def remove(self, link_id: str, paths: Iterable[str]) -> None:
        """Forget files."""
        self._database.run_many(
            f"DELETE FROM {self._table} WHERE link_id = ? AND rel_path = ?",
            ((link_id, path) for path in paths),
        )

    def clear(self) -> None:
        """Forget everything."""
        self._database.run(f"DELETE FROM {self._table}")

    def total_of(self, link_id: str) -> tuple[int, int]:
        """How many files of a vault are searchable, and their chunks."""
        return self.totals(Scope(vaults=(link_id,)))

    def totals(self, scope: Scope = EVERYTHING) -> tuple[int, int]:
        """How many files in scope are searchable, and their chunks."""
        condition, values = _scope_condition(scope)
        row = self._database.row(
            f"SELECT count(*), coalesce(sum(chunk_count), 0) FROM {self._table}"
            f" WHERE embedding_status = 'indexed' AND {condition}",
            values,
        )
        assert row is not None
        with self._database.decoding():
            return int(str(row[0])), int(str(row[1]))

    def chunks_by_link(self) -> dict[str, int]:
        """Number of chunks written, by vault."""
        rows = self._database.rows(
            f"SELECT link_id, sum(chunk_count) FROM {self._table}"
            " WHERE embedding_status = 'indexed' GROUP BY link_id"
        )
        with self._database.decoding():
            return {str(link_id): int(str(count)) for link_id, count in rows}

    def counts(self, link_id: str) -> dict[EmbeddingStatus, int]:
        """Number of files of a vault, by status."""
        rows = self._database.rows(
            f"SELECT embedding_status, count(*) FROM {self._table} WHERE link_id = ?"
            " GROUP BY embedding_status",
            (link_id,),
        )
        with self._database.decoding():
            found = {EmbeddingStatus(str(status)): int(str(count)) for status, count in rows}
        return {status: found.get(status, 0) for status in EmbeddingStatus}

    def is_empty(self, link_id: str | None = None) -> bool:
        """Whether nothing is searchable, in one vault or in all."""
        condition, values = of_link(link_id)
        found = self._database.row(
            f"SELECT 1 FROM {self._table} WHERE embedding_status = 'indexed' AND {condition}"
            " LIMIT 1",
            values,
        )
        return found is None

    def searchable_after(self, link_id: str, after: str, limit: int) -> list[str]:
        """The next files with searchable text, ordered by path."""
        rows = self._database.rows(
            f"SELECT rel_path FROM {self._table} WHERE link_id = ? AND rel_path > ?"
            " AND embedding_status = 'indexed' AND chunk_count > 0 ORDER BY rel_path LIMIT ?",
            (link_id, after, limit),
        )
        return [str(row[0]) for row in rows]

    def troubled(self, link_id: str) -> list[FileState]:
        """Every file of a vault that is not fully searchable, with the reason."""
        # The unary plus stops SQLite from using the primary key, which would scan every file.
        rows = self._database.rows(
            "SELECT rel_path, embedding_status, index_hash, chunk_count, reason, parse_error"
            f" FROM {self._table} WHERE +link_id = ?"
            " AND (embedding_status <> 'indexed' OR parse_error IS NOT NULL) ORDER BY rel_path",
            (link_id,),
        )
        with self._database.decoding():
            return [
                FileState(
                    rel_path=str(path),
                    status=EmbeddingStatus(str(status)),
                    index_hash=None if index_hash is None else str(index_hash),
                    chunk_count=int(str(chunk_count)),
                    reason=None if reason is None else str(reason),
                    parse_error=None if parse_error is None else str(parse_error),
                )
                for path, status, index_hash, chunk_count, reason, parse_error in rows
            ]

    def adopt(self, other: "IndexState") -> None:
        """Move another table's rows into this one: the second half of a swap."""
        with self._database.transaction():
            self.clear()
            self._database.run(f"INSERT INTO {self._table} SELECT * FROM {other._table}")
            other.clear()


def _scope_condition(scope: Scope) -> tuple[str, tuple[str, ...]]:
    parts, values = ["true"], list[str]()
    if scope.vaults is not None:
        parts.append(f"link_id IN ({', '.join('?' for _ in scope.vaults)})")
        values += scope.vaults
    if scope.folders is not None:
        # Not LIKE, which ignores case.
        tests = ["substr(rel_path, 1, length(?)) = ?" for _ in scope.folders]
        parts.append(f"({' OR '.join(tests) or 'false'})")
        values += [f"{one}/" if one else "" for one in scope.folders for _ in range(2)]
    return " AND ".join(parts), tuple(values)
