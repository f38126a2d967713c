"""Facts that the user asked to remember, found by key, by words and by meaning."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from obsidian_rag.embed import Embedder
from obsidian_rag.errors import (
    EmbeddingMismatch,
    ObsidianRagError,
    OllamaUnreachable,
    ProviderFailed,
)
from obsidian_rag.store import Database, Fact, Memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

# As much of a fact is embedded as of a chunk.
_EMBEDDED_CHARS = 2000
_WORDS_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class FoundFact:
    """A fact, and how well it matches the query: 0 to 1."""

    fact: Fact
    score: float = 1.0


class Facts:
    """The facts of one installation."""

    def __init__(self, database: Database, embedder: Callable[[], Embedder]) -> None:
        """`embedder` is called only when facts are searched by meaning."""
        self._memory = Memory(database)
        self._embedder = embedder

    def store(self, key: str, value: str, source: str, link_id: str) -> None:
        """Store a fact of a note, replacing any with the same key."""
        self._memory.store(key, value, source, link_id)

    def get(self, key: str) -> FoundFact | None:
        """The fact with exactly this key, if there is one."""
        fact = self._memory.get(key)
        return FoundFact(fact) if fact else None

    def all(self) -> list[FoundFact]:
        """Every fact, newest first."""
        return [FoundFact(fact) for fact in self._memory.all()]

    def forget(self, key: str) -> bool:
        """Remove a fact; return whether there was one."""
        return self._memory.forget(key)

    def nearest(self, query: str) -> tuple[list[FoundFact], ObsidianRagError | None]:
        """Facts by meaning and words; if the embedder fails, by words alone, with its error."""
        shares = {fact.key: share for fact, share in self._memory.search(query)}
        facts = self._memory.all()
        trouble: ObsidianRagError | None = None
        try:
            meanings = self._similarities(facts, query)
        except (OllamaUnreachable, ProviderFailed, EmbeddingMismatch) as error:
            meanings, trouble = {}, error
        scored = [
            FoundFact(fact, _score(shares.get(fact.key, 0.0), meanings.get(fact.key)))
            for fact in facts
        ]
        found = [one for one in scored if one.score > 0]
        return sorted(found, key=lambda one: -one.score), trouble

    def _similarities(self, facts: Sequence[Fact], query: str) -> dict[str, float]:
        """The cosine of each fact with the query."""
        embedder = self._embedder()
        # A fact may come from a private note, and private text must not leave the machine.
        if embedder.is_external or not facts:
            return {}
        asked = embedder.embed_query(query)
        rows = self._vectors(facts, len(asked))
        return dict(zip((fact.key for fact in facts), (rows @ asked).tolist(), strict=True))

    def _vectors(self, facts: Sequence[Fact], width: int) -> "NDArray[np.float32]":
        """One row per fact; vectors that this embedder has not made yet are made and stored."""
        embedder = self._embedder()
        known = {
            key: row
            for key, data in self._memory.vectors(embedder.fingerprint).items()
            if len(row := np.frombuffer(data, dtype=np.float32)) == width
        }
        missing = [fact for fact in facts if fact.key not in known]
        if missing:
            made = embedder.embed_documents([fact.text[:_EMBEDDED_CHARS] for fact in missing])
            known |= {fact.key: row for fact, row in zip(missing, made, strict=True)}
            self._memory.keep_vectors(
                embedder.fingerprint, ((fact, known[fact.key].tobytes()) for fact in missing)
            )
        return np.stack([known[fact.key] for fact in facts])


def _score(share: float, meaning: float | None) -> float:
    if meaning is None or share == 1.0:
        return share
    return _WORDS_SHARE * share + (1 - _WORDS_SHARE) * min(max(meaning, 0.0), 1.0)
