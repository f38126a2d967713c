"""The embedder that some settings ask for, and the vectors of the last questions."""

import threading
from typing import TYPE_CHECKING

from obsidian_rag.config import Config
from obsidian_rag.embed import Choice, Embedder, choose, make_embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_QUERIES_KEPT = 512


def embedder_choice(config: Config) -> Choice:
    """Which embedder the settings mean."""
    return choose(config.embedding, config.settings.model)


class Embedding:
    """An embedder, made at its first use, and the vectors of the last questions."""

    def __init__(self, config: Config) -> None:
        self.users = 0
        self._config = config
        self._lock = threading.RLock()
        self._embedder: Embedder | None = None
        self._query_vectors: dict[str, NDArray[np.float32]] = {}

    @property
    def embedder(self) -> Embedder:
        """The embedder; nothing is loaded yet.

        Raises:
            ConfigInvalid, SecurityViolation: the settings do not allow it.
        """
        with self._lock:
            if self._embedder is None:
                config = self._config
                settings = config.settings
                self._embedder = make_embedder(
                    config.embedding, settings.security, config.home, settings.model
                )
            return self._embedder

    @embedder.setter
    def embedder(self, other: Embedder) -> None:
        """Use another one than the settings ask for."""
        self._embedder = other

    def query_vector(self, question: str) -> "NDArray[np.float32]":
        """The vector of a question; the last few hundred are remembered."""
        vector = self._query_vectors.get(question)
        if vector is None:
            vector = self.embedder.embed_query(question)
            if len(self._query_vectors) >= _QUERIES_KEPT:
                self._query_vectors.clear()
            self._query_vectors[question] = vector
        return vector

    def fits(self, config: Config) -> bool:
        """Whether other settings would make the same embedder."""
        mine, other = self._config.settings.security, config.settings.security
        is_same = embedder_choice(self._config) == embedder_choice(config)
        return is_same and mine.local_only == other.local_only

    def close(self) -> None:
        """Let go of connections and weights; a later use takes them up again."""
        with self._lock:
            if self._embedder is not None:
                self._embedder.close()
                self._embedder = None
