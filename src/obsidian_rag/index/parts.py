"""One set of settings and what is made from it: replaced as a whole when the settings change."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from obsidian_rag.config import Config
from obsidian_rag.index.embedding import Embedding
from obsidian_rag.index.limits import limits_for
from obsidian_rag.index.transformer import Transformer
from obsidian_rag.notes import ChunkLimits
from obsidian_rag.store import ChunkStore


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
        if before is None:
            return cls(
                config, Embedding(config), ChunkStore(config.vector_uri), Transformer(config)
            )
        has_chunks = before.chunks.uri == config.vector_uri
        return cls(
            config,
            before.embedding if before.embedding.fits(config) else Embedding(config),
            before.chunks if has_chunks else ChunkStore(config.vector_uri),
            before.transformer if before.transformer.fits(config) else Transformer(config),
        )

    @property
    def limits(self) -> ChunkLimits:
        """How notes are cut, for the configured embedder."""
        return limits_for(self.config.settings, self.embedding.embedder)


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
