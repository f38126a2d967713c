"""The configured embedder, and a cache of query vectors."""

import threading
from typing import TYPE_CHECKING

from obsidian_rag.config import Config
from obsidian_rag.embed import Choice, Embedder, choose, make_embedder

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

_MAX_QUERIES_KEPT = 512


def embedder_choice(config: Config) -> Choice:
    """The embedder that the settings select."""
    return choose(config.embedding, config.settings.model)


class QueryVectors:
    """A cache of the last few hundred query vectors."""

    def __init__(self) -> None:
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def of(
        self, question: str, make: "Callable[[str], NDArray[np.float32]]"
    ) -> "NDArray[np.float32]":
        """The vector of a query, from the cache or from `make`."""
        vector = self._vectors.get(question)
        if vector is None:
            vector = make(question)
            if len(self._vectors) >= _MAX_QUERIES_KEPT:
                self._vectors.clear()
            self._vectors[question] = vector
        return vector


class Embedding:
    """An embedder, created at first use, and a cache of query vectors."""

    def __init__(self, config: Config) -> None:
        self.users = 0
        self._config = config
        self._lock = threading.RLock()
        self._embedder: Embedder | None = None
        self._query_vectors = QueryVectors()

    @property
    def embedder(self) -> Embedder:
        """The embedder; its weights are loaded at first use.

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
        """Replace the configured embedder."""
        self._embedder = other

    def query_vector(self, question: str) -> "NDArray[np.float32]":
        """The vector of a query; the last few hundred are cached."""
        return self._query_vectors.of(question, self.embedder.embed_query)

    def fits(self, config: Config) -> bool:
        """Whether these settings would create the same embedder."""
        mine, other = self._config.settings.security, config.settings.security
        is_same = embedder_choice(self._config) == embedder_choice(config)
        return is_same and mine.local_only == other.local_only

    def close(self) -> None:
        """Release connections and weights; they are reloaded when needed."""
        with self._lock:
            if self._embedder is not None:
                self._embedder.close()
                self._embedder = None
