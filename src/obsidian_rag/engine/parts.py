"""One set of settings and what is made from it: replaced as a whole when the settings change."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from obsidian_rag.config import Config
from obsidian_rag.embed import Embedder, make_embedder
from obsidian_rag.engine.transformer import Transformer
from obsidian_rag.notes import ChunkLimits
from obsidian_rag.store import ChunkStore
from obsidian_rag.vault import Rules, Vault

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_QUERIES_KEPT = 512
_MAX_CHARS = 2000
# Room for the title and the headings in front of a chunk's text.
_TITLE_TOKENS = 52
_FEWEST_TOKENS = 16


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
                self._embedder = make_embedder(
                    config.embedding, config.settings.security, config.home
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
        return self._config.embedding == config.embedding and mine.local_only == other.local_only

    def close(self) -> None:
        """Let go of connections and weights; a later use takes them up again."""
        with self._lock:
            if self._embedder is not None:
                self._embedder.close()
                self._embedder = None


@dataclass(frozen=True)
class Parts:
    """Settings, and the parts that no other settings would make."""

    config: Config
    embedding: Embedding = field(repr=False)
    chunks: ChunkStore = field(repr=False)
    transformer: Transformer = field(repr=False)

    @classmethod
    def of(cls, config: Config, before: "Parts | None" = None) -> "Parts":
        """The parts for these settings; those of `before` that still fit are kept."""
        has_embedding = before is not None and before.embedding.fits(config)
        has_chunks = before is not None and before.chunks.uri == config.vector_uri
        has_transformer = before is not None and before.transformer.fits(config)
        return cls(
            config,
            before.embedding if before is not None and has_embedding else Embedding(config),
            before.chunks if before is not None and has_chunks else ChunkStore(config.vector_uri),
            before.transformer if before is not None and has_transformer else Transformer(config),
        )

    @cached_property
    def rules(self) -> Rules:
        """Which files of a vault are notes."""
        return Rules.from_settings(self.config.settings.indexing)

    @cached_property
    def vaults(self) -> tuple[Vault, ...]:
        """The vaults that the settings name."""
        return tuple(Vault(root, self.rules) for root in self.config.vault_roots)

    @property
    def limits(self) -> ChunkLimits:
        """How notes are cut, for the configured embedder."""
        indexing = self.config.settings.indexing
        fits = self.embedding.embedder.max_tokens
        most = indexing.chunk_size
        if fits is not None:
            most = min(most, max(fits - _TITLE_TOKENS, fits // 2, _FEWEST_TOKENS))
        return ChunkLimits(
            max_chars=_MAX_CHARS,
            max_tokens=most,
            overlap_tokens=min(indexing.chunk_overlap, most // 2),
            strip_code=self.config.settings.security.strip_code_blocks,
        )


class CurrentParts:
    """The parts of now, and for each thread that holds some those, until it lets go."""

    def __init__(self, config: Config) -> None:
        self._newest = Parts.of(config)
        self._lock = threading.Lock()
        self._thread = threading.local()

    @property
    def now(self) -> Parts:
        """What this thread holds, or the newest."""
        held: Parts | None = getattr(self._thread, "parts", None)
        return held or self._newest

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Nothing changes for this thread inside."""
        if getattr(self._thread, "parts", None) is not None:
            yield
            return
        with self._lock:
            parts = self._thread.parts = self._newest
            parts.embedding.users += 1
        try:
            yield
        finally:
            self._thread.parts = None
            with self._lock:
                parts.embedding.users -= 1
                self._close_unused(parts.embedding)

    def renew(self, config: Config) -> None:
        """From now on these settings; what nobody holds any more is closed."""
        with self._lock:
            before = self._newest
            if config is not before.config:
                self._newest = Parts.of(config, before)
                self._close_unused(before.embedding)
                if self._newest.transformer is not before.transformer:
                    before.transformer.close()  # who still uses it takes it up again

    def _close_unused(self, embedding: Embedding) -> None:
        if embedding is not self._newest.embedding and embedding.users == 0:
            embedding.close()
