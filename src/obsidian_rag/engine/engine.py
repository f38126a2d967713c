"""The composition root: builds the parts of one installation, hands them out, closes them."""

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from obsidian_rag.config import Config
from obsidian_rag.config_follow import SettingsFile
from obsidian_rag.embed import Embedder
from obsidian_rag.index import (
    CurrentParts,
    Mode,
    Sending,
    Transformer,
    Vaults,
    catch_up,
    hand_over,
    index_version,
)
from obsidian_rag.notes import ChunkLimits
from obsidian_rag.relations import KeptIndex, RelationsConsumer, refresh_meanings
from obsidian_rag.search import Facts
from obsidian_rag.store import ChunkStore, Database, FollowedDatabase, MeaningStore, writer_lock
from obsidian_rag.vault import Vault

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from obsidian_rag.engine.live import Live


class Engine:
    """Everything that works on one data folder; parts are made when they are first used.

    A living engine follows the config file: `follow_settings` replaces all settings, and what was
    made from them, at once. Whoever works inside `one_set_of_settings` sees no change meanwhile.
    """

    def __init__(self, config: Config) -> None:
        self.live: Live | None = None
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
        """For what this thread does inside, the settings of now hold to its end."""
        self.follow_settings()
        with self._parts.held():
            yield

    def follow_settings(self) -> None:
        """Take up what the config file says now, if this engine lives."""
        live = self.live
        if live is None:
            return
        with self._lock:
            if not self.settings_file.look():
                return
            self._parts.renew(self.settings_file.config)
            self.looked_for_changes = None
            live.jobs.use(self.settings_file.config)
        live.health.note(
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
        """Let go of a database whose file another process has replaced, or the user removed."""
        self._database.follow()

    @property
    def query_vector(self) -> "Callable[[str], NDArray[np.float32]]":
        """Makes the vector of a question; the last few hundred are remembered."""
        return self._parts.now.embedding.query_vector

    @property
    def transformer(self) -> Transformer:
        """What makes meaning vectors, and what it has made."""
        return self._parts.now.transformer

    def relate_meanings(self, notes: Collection[tuple[str, str]] | None) -> None:
        """Take up vectors that were added to these notes, or to any, into the related notes."""
        refresh_meanings(self, notes)

    @property
    def meaning_vector(self) -> "Callable[[str], NDArray[np.float32] | None]":
        """Makes the meaning vector of a question; None where there is no working transformer."""
        return self.transformer.query_vector

    @property
    def meaning_store(self) -> MeaningStore | None:
        """The meaning vectors there are; None where there is no transformer."""
        return self.transformer.store

    @property
    def facts(self) -> Facts:
        """What the user asked us to remember."""
        return Facts(self.database, lambda: self.embedder)

    @property
    def sending(self) -> Sending:
        """Whether notes may be sent to the embedder."""
        return Sending(self)

    @property
    def limits(self) -> ChunkLimits:
        """How notes are cut, for the configured embedder."""
        return self._parts.now.limits

    @property
    def index_version(self) -> str:
        """A name for the present state of the index; it changes when the index does."""
        return index_version(self)

    def relations_consumer(self) -> RelationsConsumer:
        """The indexes of related notes, for a run to keep in line; to be closed by the caller."""
        return RelationsConsumer(self.config.home, self.config.settings.relations)

    def hand_over(
        self,
        vault: Vault,
        consumer: RelationsConsumer,
        held: Mapping[str, str],
        paths: Sequence[str] | None = None,
    ) -> list[str] | None:
        """Have notes of a vault read for their relations alone; see `hand_over` of the index."""
        return hand_over(vault, self.limits, consumer, held, paths)

    def make_relations(self) -> bool:
        """Relate the notes that are indexed, where that was lost; False if a job will do it."""
        if self.live is not None:
            self.live.jobs.request(Mode.SYNC)
            return False
        with writer_lock(self.config.home, "relations"):
            catch_up(self)
        return True

    def close(self) -> None:
        """Let go of files and connections."""
        self.relations.let_go()
        self._database.close()
        self.chunks.close()
        self._parts.now.embedding.close()
        self.transformer.close()
