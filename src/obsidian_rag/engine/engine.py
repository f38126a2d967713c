"""The composition root: builds the parts of one installation, hands them out, closes them."""

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from obsidian_rag.config import Config
from obsidian_rag.embed import Embedder, make_embedder
from obsidian_rag.engine.events import Bus
from obsidian_rag.engine.health import Health
from obsidian_rag.engine.jobs import Jobs
from obsidian_rag.index import INDEX_VERSION, Guarded, Workplace
from obsidian_rag.notes import ChunkLimits
from obsidian_rag.store import ChunkStore, Database
from obsidian_rag.vault import Rules

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from obsidian_rag.engine.livesync_state import LivesyncState
    from obsidian_rag.relations import Loaded

_MAX_CHARS = 2000
# Room for the title and the headings in front of a chunk's text.
_TITLE_TOKENS = 52
_FEWEST_TOKENS = 16
_QUERIES_KEPT = 512

_Part = TypeVar("_Part")
_making = threading.RLock()


@dataclass(frozen=True, slots=True)
class Live:
    """What an engine has besides when its process stays: a daemon, or an MCP server alone."""

    bus: Bus
    jobs: Jobs
    health: Health
    is_watching: Callable[[], bool] = lambda: False
    watch_trouble: Callable[[], str | None] = lambda: None
    look_soon: Callable[[], None] = lambda: None
    # None where no node is to run.
    livesync: Callable[[], "LivesyncState | None"] = lambda: None


def _once(make: Callable[["Engine"], _Part]) -> Callable[["Engine"], _Part]:
    """Make a part once, also when threads meet at its first use: `cached_property` has no lock."""

    @functools.wraps(make)
    def made(engine: "Engine") -> _Part:
        parts: dict[str, _Part] = engine.__dict__
        with _making:
            if make.__name__ not in parts:
                parts[make.__name__] = make(engine)
            return parts[make.__name__]

    return made


class Engine:
    """Everything that works on one data folder; parts are made when they are first used."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.live: Live | None = None
        self.relations: Loaded | None = None
        self.seen_version: str | None = None
        self.looked_for_changes: tuple[float, bool] | None = None
        self._database_file: tuple[int, int] | None = None
        self._abandoned: list[Database] = []
        self._query_vectors: dict[str, NDArray[np.float32]] = {}

    @cached_property
    @_once
    def database(self) -> Database:
        """The SQLite file."""
        database = Database(self.config.database)
        self._database_file = file_identity(self.config.database)
        return database

    @cached_property
    @_once
    def chunks(self) -> ChunkStore:
        """The chunk table in use."""
        return ChunkStore(self.config.vector_uri)

    @cached_property
    @_once
    def embedder(self) -> Embedder:
        """The configured embedder; nothing is loaded yet."""
        settings = self.config.settings
        return make_embedder(self.config.embedding, settings.security, self.config.home)

    def follow_database(self) -> None:
        """Let go of a database whose file another process has replaced, or the user removed."""
        identity = file_identity(self.config.database)
        if "database" in self.__dict__ and identity != self._database_file:
            # Not closed: SQLite would delete the journal of that name, which is the new file's.
            self._abandoned.append(self.__dict__.pop("database"))

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

    def let_go_of_relations(self) -> None:
        """Forget the indexes of related notes; they are loaded again when needed."""
        if self.relations is not None:
            self.relations.rows.close()
            self.relations = None

    def close(self) -> None:
        """Let go of files and connections."""
        self.let_go_of_relations()
        for name in ("database", "chunks", "embedder"):
            if name in self.__dict__:
                self.__dict__.pop(name).close()


def index_version(engine: Engine) -> str:
    """A name for the present state of the index; it changes when the index does."""
    return engine.database.get(INDEX_VERSION) or "0"


def file_identity(file: Path) -> tuple[int, int] | None:
    """What tells a file from another one of the same name; None if there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
