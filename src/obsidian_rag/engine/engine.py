"""The composition root: builds the parts of one installation, hands them out, closes them."""

from functools import cached_property
from typing import TYPE_CHECKING

from obsidian_rag.config import Config
from obsidian_rag.embed import Embedder, make_embedder
from obsidian_rag.index import Guarded, Workplace
from obsidian_rag.notes import ChunkLimits
from obsidian_rag.store import ChunkStore, Database
from obsidian_rag.vault import Rules

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAX_CHARS = 2000
# Room for the title and the headings in front of a chunk's text.
_TITLE_TOKENS = 52
_FEWEST_TOKENS = 16
_QUERIES_KEPT = 512


class Engine:
    """Everything that works on one data folder; parts are made when they are first used."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.seen_version: str | None = None
        self.looked_for_changes: tuple[float, bool] | None = None
        self._query_vectors: dict[str, NDArray[np.float32]] = {}

    @cached_property
    def database(self) -> Database:
        """The SQLite file."""
        return Database(self.config.database)

    @cached_property
    def chunks(self) -> ChunkStore:
        """The chunk table in use."""
        return ChunkStore(self.config.vector_uri)

    @cached_property
    def embedder(self) -> Embedder:
        """The configured embedder; nothing is loaded yet."""
        settings = self.config.settings
        return make_embedder(self.config.embedding, settings.security, self.config.home)

    def query_vector(self, question: str) -> "NDArray[np.float32]":
        """The vector of a question; the last few hundred are remembered."""
        vector = self._query_vectors.get(question)
        if vector is None:
            vector = self.embedder.embed_query(question)
            if len(self._query_vectors) >= _QUERIES_KEPT:
                self._query_vectors.clear()
            self._query_vectors[question] = vector
        return vector

    @property
    def rules(self) -> Rules:
        """Which files of a vault are notes."""
        return Rules.from_settings(self.config.settings.indexing)

    @property
    def limits(self) -> ChunkLimits:
        """How notes are cut, for the configured embedder."""
        indexing = self.config.settings.indexing
        fits = self.embedder.max_tokens
        most = indexing.chunk_size
        if fits is not None:
            most = min(most, max(fits - _TITLE_TOKENS, fits // 2, _FEWEST_TOKENS))
        return ChunkLimits(
            max_chars=_MAX_CHARS,
            max_tokens=most,
            overlap_tokens=min(indexing.chunk_overlap, most // 2),
            strip_code=self.config.settings.security.strip_code_blocks,
        )

    @property
    def workplace(self) -> Workplace:
        """What an index run of the primary vault needs."""
        settings = self.config.settings
        return Workplace(
            database=self.database,
            chunks=self.chunks,
            embedder=self.embedder,
            root=self.config.vault_root,
            rules=self.rules,
            limits=self.limits,
            guarded=Guarded(settings.memory.patterns, settings.security.sensitive_sections),
        )

    def close(self) -> None:
        """Let go of files and connections."""
        for name in ("database", "chunks", "embedder"):
            if name in self.__dict__:
                self.__dict__.pop(name).close()
