"""The configured embedder, the transformer of meaning vectors, and caches of query vectors.

The transformer may be installed, replaced, removed or broken at any time: without it there are no
meaning vectors, and everything works with the static ones.
"""

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from obsidian_rag.config import Config
from obsidian_rag.embed import Choice, Embedder, choose, make_embedder, make_meaning_embedder
from obsidian_rag.errors import ObsidianRagError, ProviderFailed
from obsidian_rag.store import MeaningStore

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

_MAX_QUERIES_KEPT = 512
_REPAIR = "Run `obsidian-rag model get` or `model add` again; search goes on with static vectors."
_Stamp = tuple[tuple[str, int, int, int], ...]


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


@dataclass(frozen=True, slots=True)
class _State:
    """What was loaded from the model's folder at this stamp."""

    stamp: _Stamp
    embedder: Embedder | None = None
    store: MeaningStore | None = None
    trouble: ObsidianRagError | None = None


class Transformer:
    """The embedder of meaning vectors, if installed and enabled; thread-safe."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.RLock()
        self._state: _State | None = None
        self._query_vectors = QueryVectors()

    @property
    def embedder(self) -> Embedder | None:
        """The embedder; its weights are loaded at first use."""
        return self._current().embedder

    @property
    def store(self) -> MeaningStore | None:
        """The store of its vectors."""
        return self._current().store

    @property
    def trouble(self) -> ObsidianRagError | None:
        """Why an installed transformer cannot be used, if known."""
        return self._current().trouble

    def query_vector(self, question: str) -> "NDArray[np.float32] | None":
        """The vector of a query, or None on failure; the last ones are cached."""
        made = self._current()
        if made.embedder is None:
            return None
        try:
            return self._query_vectors.of(question, made.embedder.embed_query)
        except (ObsidianRagError, OSError) as error:
            self.fail(error)
            return None

    def fail(self, error: ObsidianRagError | OSError) -> None:
        """Mark it as broken until its files change."""
        with self._lock:
            if self._state is not None:
                self._state = _State(self._state.stamp, trouble=_to_domain_error(error))

    def fits(self, config: Config) -> bool:
        """Whether these settings would create the same transformer."""
        return _model_settings(self._config) == _model_settings(config)

    def close(self) -> None:
        """Release weights and files; they are reloaded when needed."""
        with self._lock:
            made, self._state = self._state, None
            self._query_vectors = QueryVectors()
        if made is not None and made.embedder is not None:
            made.embedder.close()
        if made is not None and made.store is not None:
            made.store.close()

    def _current(self) -> _State:
        with self._lock:
            stamp = self._stamp()
            if self._state is None or self._state.stamp != stamp:
                self.close()
                self._state = self._make(stamp)
            return self._state

    def _make(self, stamp: _Stamp) -> _State:
        home = self._config.home
        try:
            embedder = make_meaning_embedder(self._config.settings, home)
            if embedder is None:
                return _State(stamp)
            return _State(stamp, embedder, MeaningStore(home / "meaning", embedder.fingerprint))
        except (ObsidianRagError, OSError) as error:
            return _State(stamp, trouble=_to_domain_error(error))

    def _stamp(self) -> _Stamp:
        """Changes when the model's files do; costs a few stat calls."""
        folder = self._config.home / "models" / self._config.settings.meaning.model
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            found = [(entry.name, entry.stat()) for entry in entries]
        except OSError:
            return ()
        return tuple((name, at.st_ino, at.st_size, at.st_mtime_ns) for name, at in found)


def _model_settings(config: Config) -> tuple[object, ...]:
    meaning = config.settings.meaning
    provider = embedder_choice(config).settings.provider
    return config.home, meaning.enabled, meaning.model, provider


def _to_domain_error(error: ObsidianRagError | OSError) -> ObsidianRagError:
    if isinstance(error, ObsidianRagError):
        return error
    what = error.strerror or type(error).__name__
    return ProviderFailed(f"The transformer's files cannot be read ({what}).", _REPAIR)
