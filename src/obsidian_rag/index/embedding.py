"""The embedder that some settings ask for, and the vectors of the last questions."""

import threading
from typing import TYPE_CHECKING

from obsidian_rag.config import Config
from obsidian_rag.embed import Choice, Embedder, choose, make_embedder

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

_QUERIES_KEPT = 512


def embedder_choice(config: Config) -> Choice:
    """Which embedder the settings mean."""
    return choose(config.embedding, config.settings.model)


class QueryVectors:
    """The vectors of the last few hundred questions."""

    def __init__(self) -> None:
        self._known: dict[str, NDArray[np.float32]] = {}

    def of(
        self, question: str, make: "Callable[[str], NDArray[np.float32]]"
    ) -> "NDArray[np.float32]":
        """The vector of a question, made unless it is known."""
        vector = self._known.get(question)
        if vector is None:
            vector = make(question)
            if len(self._known) >= _QUERIES_KEPT:
                self._known.clear()
            self._known[question] = vector
        return vector


class Embedding:
    """An embedder, made at its first use, and the vectors of the last questions."""

    def __init__(self, config: Config) -> None:
        self.users = 0
        self._config = config
        self._lock = threading.RLock()
        self._embedder: Embedder | None = None
        self._query_vectors = QueryVectors()

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
        return self._query_vectors.of(question, self.embedder.embed_query)

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
