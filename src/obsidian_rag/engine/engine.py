"""The composition root: builds the parts of one installation, hands them out, closes them."""

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from obsidian_rag.config import Config, SettingsFile
from obsidian_rag.embed import Embedder
from obsidian_rag.engine.live import OFFLINE, Live, Offline
from obsidian_rag.index import (
    CurrentParts,
    Mode,
    Sending,
    Transformer,
    Vaults,
    index_version,
    relate_anew,
    relate_now,
)
from obsidian_rag.notes import ChunkLimits
from obsidian_rag.relations import KeptIndex, RelationsWriter, refresh_meanings
from obsidian_rag.search import Facts
from obsidian_rag.store import ChunkStore, Database, FollowedDatabase, MeaningStore, writer_lock

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Engine:
    """Everything that works on one data folder; parts are made when they are first used.

    A daemon's engine follows the config file: `follow_settings` replaces all settings, and the
    parts made from them, at once. Code inside `one_set_of_settings` sees no change until it ends.
    """

    def __init__(self, config: Config) -> None:
        self.live: Live | Offline = OFFLINE
        self.relations = KeptIndex()
        self.seen_version: str | None = None
        self.looked_for_changes: tuple[float, bool] | None = None
        self.settings_file = SettingsFile(config)
        self.on_settings: Callable[[], None] = lambda: None
        self._parts = CurrentParts(config)
        self.vaults = Vaults(lambda: self.config, lambda: self.database, lambda: self.chunks)
        self._lock = threading.RLock()
        self._database = FollowedDatabase(config.database)

    @property
    def config(self) -> Config:
        """The settings."""
        return self._parts.now.config

    @contextlib.contextmanager
    def one_set_of_settings(self) -> Iterator[None]:
        """Pin the current settings for this thread inside the block."""
        self.follow_settings()
        with self._parts.held():
            yield

    def follow_settings(self) -> None:
        """Apply a changed config file, if this is a daemon's engine."""
        jobs = self.live.jobs
        if jobs is None:
            return
        with self._lock:
            if not self.settings_file.look():
                return
            self._parts.renew(self.settings_file.config)
            self.looked_for_changes = None
            jobs.use(self.settings_file.config)
        self.live.note(
            config=self.settings_file.trouble, restart=self.settings_file.restart_trouble
        )
        self.on_settings()

    @property
    def database(self) -> Database:
        """The SQLite file."""
        return self._database.now

    @property
    def chunks(self) -> ChunkStore:
        """The chunk table in use."""
        return self._parts.now.chunks

    @property
    def embedder(self) -> Embedder:
        """The configured embedder; nothing is loaded yet."""
        return self._parts.now.embedding.embedder

    @embedder.setter
    def embedder(self, other: Embedder) -> None:
        self._parts.now.embedding.embedder = other

    def follow_database(self) -> None:
        """Close a database whose file another process has replaced or the user has removed."""
        self._database.follow()

    @property
    def query_vector(self) -> "Callable[[str], NDArray[np.float32]]":
        """Embeds a query; the last few hundred vectors are cached."""
        return self._parts.now.embedding.query_vector

    @property
    def transformer(self) -> Transformer:
        """The transformer that makes meaning vectors, and its store."""
        return self._parts.now.transformer

    def relate_meanings(self, notes: Collection[tuple[str, str]] | None) -> None:
        """Update the related notes with vectors added to these notes, or to any."""
        refresh_meanings(self, notes)

    @property
    def meaning_vector(self) -> "Callable[[str], NDArray[np.float32] | None]":
        """Makes the meaning vector of a query; None without a working transformer."""
        return self.transformer.query_vector

    @property
    def meaning_store(self) -> MeaningStore | None:
        """The stored meaning vectors; None without a transformer."""
        return self.transformer.store

    @property
    def facts(self) -> Facts:
        """The facts stored for the user."""
        return Facts(self.database, lambda: self.embedder)

    @property
    def sending(self) -> Sending:
        """Whether notes may be sent to the embedder."""
        return Sending(self)

    @property
    def limits(self) -> ChunkLimits:
        """Chunk limits for the configured embedder."""
        return self._parts.now.limits

    @property
    def index_version(self) -> str:
        """Identifies the current state of the index; changes with it."""
        return index_version(self)

    def relations_writer(self) -> RelationsWriter:
        """A writer for the indexes of related notes; the caller closes it."""
        settings = self.config.settings.relations
        return RelationsWriter(self.config.home, settings, self.meaning_store)

    def make_relations(self) -> bool:
        """Rebuild lost relations of the indexed notes; False if a job will do it."""
        if self.live.jobs is not None:
            self.live.jobs.request(Mode.SYNC)
            return False
        with writer_lock(self.config.home, "relations"):
            relate_anew(self)
        return True

    def relate_soon(self, paths: Sequence[str], link_id: str) -> None:
        """Relate a few notes that were just written, here or in the daemon's worker."""
        if self.live.jobs is not None:
            self.live.jobs.relate(paths, link_id)
        else:
            relate_now(self, paths, link_id)

    def close(self) -> None:
        """Close files and connections."""
        self.relations.let_go()
        self._database.close()
        self.chunks.close()
        self._parts.now.embedding.close()
        self.transformer.close()
