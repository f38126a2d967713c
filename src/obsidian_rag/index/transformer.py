"""The transformer of an installation, the store of its meaning vectors, and what is wrong with it.

It may be installed, replaced and removed at any time, and broken: then there are no meaning
vectors, and everything goes on with the static ones.
"""

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from obsidian_rag.config import Config
from obsidian_rag.embed import Embedder, make_meaning_embedder
from obsidian_rag.errors import ObsidianRagError, ProviderFailed
from obsidian_rag.index.embedding import QueryVectors, embedder_choice
from obsidian_rag.store import MeaningStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_REPAIR = "Run `obsidian-rag model get` or `model add` again; search goes on with static vectors."
_Stamp = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class _Made:
    """What was made of the model's folder as it was then."""

    stamp: _Stamp
    embedder: Embedder | None = None
    store: MeaningStore | None = None
    trouble: ObsidianRagError | None = None


class Transformer:
    """The embedder of meaning vectors, if one is installed and wanted; any thread may ask."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.RLock()
        self._made: _Made | None = None
        self._query_vectors = QueryVectors()

    @property
    def embedder(self) -> Embedder | None:
        """The embedder; nothing is loaded yet."""
        return self._now().embedder

    @property
    def store(self) -> MeaningStore | None:
        """The vectors that it made."""
        return self._now().store

    @property
    def trouble(self) -> ObsidianRagError | None:
        """Why an installed transformer cannot be used, as far as is known."""
        return self._now().trouble

    def query_vector(self, question: str) -> "NDArray[np.float32] | None":
        """The vector of a question, or None if none can be made; the last few are remembered."""
        made = self._now()
        if made.embedder is None:
            return None
        try:
            return self._query_vectors.of(question, made.embedder.embed_query)
        except (ObsidianRagError, OSError) as error:
            self.fail(error)
            return None

    def fail(self, error: ObsidianRagError | OSError) -> None:
        """It does not work as it is now: it is tried again when its files have changed."""
        with self._lock:
            if self._made is not None:
                self._made = _Made(self._made.stamp, trouble=_known(error))

    def fits(self, config: Config) -> bool:
        """Whether other settings would make the same one."""
        return _wish(self._config) == _wish(config)

    def close(self) -> None:
        """Let go of weights and files; a later use takes them up again."""
        with self._lock:
            made, self._made = self._made, None
            self._query_vectors = QueryVectors()
        if made is not None and made.embedder is not None:
            made.embedder.close()
        if made is not None and made.store is not None:
            made.store.close()

    def _now(self) -> _Made:
        with self._lock:
            stamp = self._stamp()
            if self._made is None or self._made.stamp != stamp:
                self.close()
                self._made = self._make(stamp)
            return self._made

    def _make(self, stamp: _Stamp) -> _Made:
        home = self._config.home
        try:
            embedder = make_meaning_embedder(self._config.settings, home)
            if embedder is None:
                return _Made(stamp)
            return _Made(stamp, embedder, MeaningStore(home / "meaning", embedder.fingerprint))
        except (ObsidianRagError, OSError) as error:
            return _Made(stamp, trouble=_known(error))

    def _stamp(self) -> _Stamp:
        """What tells that the model's files are others; a few questions to the file system."""
        folder = self._config.home / "models" / self._config.settings.meaning.model
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            found = [(entry.name, entry.stat()) for entry in entries]
        except OSError:
            return ()
        return tuple((name, at.st_ino, at.st_size, at.st_mtime_ns) for name, at in found)


def _wish(config: Config) -> tuple[object, ...]:
    meaning = config.settings.meaning
    provider = embedder_choice(config).settings.provider
    return config.home, meaning.enabled, meaning.model, provider


def _known(error: ObsidianRagError | OSError) -> ObsidianRagError:
    if isinstance(error, ObsidianRagError):
        return error
    what = error.strerror or type(error).__name__
    return ProviderFailed(f"The transformer's files cannot be read ({what}).", _REPAIR)
