"""One set of settings and what is built from it: replaced together when the settings change."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from obsidian_rag.config import Config
from obsidian_rag.embed import Embedder
from obsidian_rag.index.embedding import Embedding, Transformer
from obsidian_rag.index.fingerprint import fingerprint
from obsidian_rag.index.limits import Guarded, limits_for
from obsidian_rag.notes import ChunkLimits
from obsidian_rag.relations import RelationsWriter
from obsidian_rag.store import ChunkStore, Database, FollowedDatabase


@dataclass(frozen=True, slots=True)
class Parts:
    """Settings, the parts built from them, and the database of the data folder."""

    config: Config
    file: FollowedDatabase = field(repr=False)
    embedding: Embedding = field(repr=False)
    chunks: ChunkStore = field(repr=False)
    transformer: Transformer = field(repr=False)

    @classmethod
    def of(cls, config: Config, before: "Parts | None" = None) -> "Parts":
        """The parts for these settings; reuses those of `before` that still fit."""
        if before is None:
            return cls(
                config,
                FollowedDatabase(config.database),
                Embedding(config),
                _chunks(config),
                Transformer(config),
            )
        has_chunks = before.chunks.uri == config.vector_uri
        return cls(
            config,
            before.file,
            before.embedding if before.embedding.fits(config) else Embedding(config),
            before.chunks if has_chunks else _chunks(config),
            before.transformer if before.transformer.fits(config) else Transformer(config),
        )

    @property
    def database(self) -> Database:
        """The database, open."""
        return self.file.now

    @property
    def embedder(self) -> Embedder:
        """The configured embedder; its weights are loaded at first use."""
        return self.embedding.embedder

    @property
    def limits(self) -> ChunkLimits:
        """The chunk limits for the configured embedder."""
        return limits_for(self.config.settings, self.embedder)

    @property
    def guarded(self) -> Guarded:
        """The rules for private text."""
        return Guarded.of(self.config)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of an index built now."""
        return fingerprint(self.embedder, self.limits, self.guarded)

    def relations_writer(self) -> RelationsWriter:
        """A writer for the indexes of related notes; the caller closes it."""
        settings = self.config.settings.relations
        return RelationsWriter(self.config.home, settings, self.transformer.store)

    def reopen(self) -> None:
        """Reopen the index before a run: another process may have written it since."""
        # Writing through an old handle extends the table it opened: if another process has
        # recreated the table meanwhile, that would refer to deleted files.
        self.chunks.close()
        self.file.follow()

    def close(self) -> None:
        """Close files and connections."""
        self.file.close()
        self.chunks.close()
        self.embedding.close()
        self.transformer.close()


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
