"""Facts the user asked us to remember: the only table that cannot be rebuilt from the vault.

A fact's vector is stored beside it with its embedder's fingerprint; it can always be recomputed.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from obsidian_rag.notes import WORD_PART
from obsidian_rag.store.database import Database, now

_COLUMNS = "key, value, source, created_at, updated_at, link_id"


@dataclass(frozen=True, slots=True)
class Fact:
    """Something to remember, and the note it comes from."""

    key: str
    value: str
    source: str
    created_at: str
    updated_at: str
    # The note's vault; None for facts from before linked vaults: the primary one.
    link_id: str | None = None

    @property
    def text(self) -> str:
        """The fact as one line."""
        return f"{self.key}: {self.value}"


class Memory:
    """The table `memory`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def store(self, key: str, value: str, source: str, link_id: str | None = None) -> Fact:
        """Store a fact, replacing one with the same key."""
        at = now()
        with self._database.transaction():
            self._database.run(
                "INSERT INTO memory (key, value, source, created_at, updated_at, link_id)"
                " VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET value = excluded.value, source = excluded.source,"
                " link_id = excluded.link_id, updated_at = excluded.updated_at, vector = NULL,"
                " embedder = NULL",
                (key, value, source, at, at, link_id),
            )
            found = self.get(key)
        assert found is not None
        return found

    def get(self, key: str) -> Fact | None:
        """The fact with exactly this key."""
        row = self._database.row(f"SELECT {_COLUMNS} FROM memory WHERE key = ?", (key,))
        return _fact(row) if row else None

    def all(self) -> list[Fact]:
        """Every fact, the latest first."""
        rows = self._database.rows(f"SELECT {_COLUMNS} FROM memory ORDER BY updated_at DESC, key")
        return [_fact(row) for row in rows]

    def search(self, query: str) -> list[tuple[Fact, float]]:
        """Facts that share words with `query`, best first, with the share of its words (0 to 1)."""
        scored = [(fact, _word_overlap(query, fact)) for fact in self.all()]
        found = [(fact, share) for fact, share in scored if share > 0]
        return sorted(found, key=lambda pair: -pair[1])

    def forget(self, key: str) -> bool:
        """Remove a fact; returns whether it existed."""
        return self._database.run("DELETE FROM memory WHERE key = ?", (key,)) > 0

    def vectors(self, embedder: str) -> dict[str, bytes]:
        """The vectors made by the embedder with this fingerprint, by key."""
        rows = self._database.rows(
            "SELECT key, vector FROM memory WHERE embedder = ? AND vector IS NOT NULL", (embedder,)
        )
        return {str(key): bytes(vector) for key, vector in rows}  # type: ignore[call-overload]  # a BLOB

    def keep_vectors(self, embedder: str, vectors: Iterable[tuple[Fact, bytes]]) -> None:
        """Store vectors of facts, unless a fact has changed since or the file is read-only."""
        if self._database.is_read_only:
            return
        with self._database.transaction():
            self._database.run_many(
                "UPDATE memory SET vector = ?, embedder = ? WHERE key = ? AND value = ?",
                ((vector, embedder, fact.key, fact.value) for fact, vector in vectors),
            )


def _word_overlap(query: str, fact: Fact) -> float:
    """The share of the words of `query` that the fact has; 1 if `query` is its key."""
    if query.strip().casefold() == fact.key.casefold():
        return 1.0
    wanted = set(WORD_PART.findall(query.casefold()))
    if not wanted:
        return 0.0
    text = fact.text.casefold()
    known = set(WORD_PART.findall(text))
    # Scripts without spaces have no words to compare: match substrings instead.
    shared = sum(word in known or (not word.isascii() and word in text) for word in wanted)
    return shared / len(wanted)


def _fact(row: tuple[object, ...]) -> Fact:
    *values, link_id = row
    key, value, source, created_at, updated_at = map(str, values)
    of = None if link_id is None else str(link_id)
    return Fact(key, value, source, created_at, updated_at, of)
