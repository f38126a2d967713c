"""The settings and what is built from them: replaced together when the settings change."""

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
    """Settings and the parts built from them."""

    config: Config
    embedding: Embedding = field(repr=False)
    chunks: ChunkStore = field(repr=False)
    transformer: Transformer = field(repr=False)

    @classmethod
    def of(cls, config: Config, before: "Parts | None" = None) -> "Parts":
        """The parts for these settings; reuses those of `before` that still fit."""
        if before is None:
            return cls(config, Embedding(config), _chunks(config), Transformer(config))
        has_chunks = before.chunks.uri == config.vector_uri
        return cls(
            config,
            before.embedding if before.embedding.fits(config) else Embedding(config),
            before.chunks if has_chunks else _chunks(config),
            before.transformer if before.transformer.fits(config) else Transformer(config),
        )

    @property
    def limits(self) -> ChunkLimits:
        """The chunk limits for the configured embedder."""
        return limits_for(self.config.settings, self.embedding.embedder)


def _chunks(config: Config) -> ChunkStore:
    return ChunkStore(config.vector_uri, home=config.home)


class CurrentParts:
    """The current parts; a thread can hold on to its parts while settings change."""

    def __init__(self, config: Config) -> None:
        self._newest = Parts.of(config)
        self._lock = threading.Lock()
        self._thread = threading.local()

    @property
    def now(self) -> Parts:
        """The parts held by this thread, or the newest."""
        held: Parts | None = getattr(self._thread, "parts", None)
        return held or self._newest

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep the same parts for this thread inside the block."""
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
        """Switch to these settings; closes parts that no thread holds."""
        with self._lock:
            before = self._newest
            if config is not before.config:
                self._newest = Parts.of(config, before)
                self._close_unused(before.embedding)
                if self._newest.transformer is not before.transformer:
                    before.transformer.close()  # reopens itself if still used

    def _close_unused(self, embedding: Embedding) -> None:
        if embedding is not self._newest.embedding and embedding.users == 0:
            embedding.close()
