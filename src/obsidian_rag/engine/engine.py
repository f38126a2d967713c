"""The composition root: builds the parts of one installation, hands them out, closes them."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from obsidian_rag.config import Config, SettingsFile
from obsidian_rag.embed import Embedder
from obsidian_rag.engine.live import OFFLINE, Live, Offline
from obsidian_rag.engine.vaults import Vaults
from obsidian_rag.index import CurrentParts, Mode, Parts, Sending, relate_anew, relate_now
from obsidian_rag.relations import KeptIndex, RelationParts
from obsidian_rag.search import Facts
from obsidian_rag.store import ChunkStore, Database, IndexFact, MeaningStore, no_index, writer_lock

if TYPE_CHECKING:
    from obsidian_rag.engine.health import Snapshot


class Engine:
    """Everything that works on one data folder; parts are made when they are first used.

    A daemon's engine follows the config file: `follow_settings` replaces all settings, and the
    parts made from them, at once. Code inside `one_set_of_settings` sees no change until it ends.
    """

    def __init__(self, config: Config) -> None:
        self.live: Live | Offline = OFFLINE
        # When changed files were last looked for, and whether there were any.
        self.looked_for_changes: tuple[float, bool] | None = None
        # The last health that was reported, while it still holds.
        self.health_snapshot: Snapshot | None = None
        self.settings_file = SettingsFile(config)
        self.on_settings: Callable[[], None] = lambda: None
        self._current = CurrentParts(config)
        self.vaults = Vaults(lambda: self.parts)
        self._kept_relations = KeptIndex()
        # The version of the index at the last question.
        self._seen_version: tuple[str | None, str | None] | None = None
        self._lock = threading.RLock()

    @contextlib.contextmanager
    def one_set_of_settings(self) -> Iterator[None]:
        """Pin the current settings for this thread inside the block."""
        self.follow_settings()
        with self._current.held():
            yield

    def follow_settings(self) -> None:
        """Apply a changed config file, if this is a daemon's engine."""
        jobs = self.live.jobs
        if jobs is None:
            return
        with self._lock:
            if not self.settings_file.look():
                return
            self._current.renew(self.settings_file.config)
            self.looked_for_changes = None
            jobs.use(self.settings_file.config)
        self.live.note(
            config=self.settings_file.trouble, restart=self.settings_file.restart_trouble
        )
        self.on_settings()

    @property
    def parts(self) -> Parts:
        """The current settings and what is built from them."""
        return self._current.now

    @property
    def config(self) -> Config:
        """The settings."""
        return self.parts.config

    @property
    def database(self) -> Database:
        """The SQLite file."""
        return self.parts.database

    @property
    def chunks(self) -> ChunkStore:
        """The chunk table in use."""
        return self.parts.chunks

    @property
    def embedder(self) -> Embedder:
        """The configured embedder; nothing is loaded yet."""
        return self.parts.embedder

    @embedder.setter
    def embedder(self, other: Embedder) -> None:
        self.parts.embedding.embedder = other

    @property
    def meaning_store(self) -> MeaningStore | None:
        """The stored meaning vectors; None without a transformer."""
        return self.parts.transformer.store

    @property
    def facts(self) -> Facts:
        """The facts stored for the user."""
        return Facts(self.database, lambda: self.embedder)

    @property
    def sending(self) -> Sending:
        """Whether notes may be sent to the embedder."""
        return Sending(self.parts, self.vaults)

    @property
    def relations(self) -> RelationParts:
        """The parts that questions about related notes need."""
        parts = self.parts
        return RelationParts(
            home=parts.config.home,
            settings=parts.config.settings.relations,
            vaults=tuple(self.vaults),
            file=parts.file,
            chunks=parts.chunks,
            meaning_store=parts.transformer.store,
            query_vector=parts.embedding.query_vector,
            meaning_vector=parts.transformer.query_vector,
            kept=self._kept_relations,
            rebuild=self._rebuild_relations,
        )

    def _rebuild_relations(self) -> bool:
        """Rebuild lost relations of the indexed notes; False if a job will do it."""
        if self.live.jobs is not None:
            self.live.jobs.request(Mode.SYNC)
            return False
        with writer_lock(self.config.home, "relations"):
            relate_anew(self.parts, self.vaults)
        return True

    def relate_soon(self, paths: Sequence[str], link_id: str) -> None:
        """Relate a few notes that were just written, here or in the daemon's worker."""
        if self.live.jobs is not None:
            self.live.jobs.relate(paths, link_id)
        else:
            relate_now(self.parts, self.vaults.one(link_id), paths)

    @property
    def index_version(self) -> str:
        """Identifies the current state of the index; changes with it."""
        return self.database.facts().get(IndexFact.VERSION, "0")

    def follow_database(self) -> None:
        """Close a database whose file another process has replaced or the user has removed."""
        self.parts.file.follow()

    def follow_index(self) -> Mapping[str, str]:
        """Pick up what other processes have written since the last question.

        Returns the facts in the database.

        Raises:
            IndexNotFound: there is no index, or it was removed.
        """
        self.follow_database()
        meta = self.database.facts() if self.chunks.exists() else {}
        if IndexFact.FINGERPRINT not in meta:
            raise no_index()
        # Compaction changes no rows, but it changes word scores.
        version = (meta.get(IndexFact.VERSION), meta.get(IndexFact.MAINTAINED))
        if self._seen_version != version:
            self.chunks.close()
            self._seen_version = version
        return meta

    def close(self) -> None:
        """Close files and connections."""
        self._kept_relations.close()
        self.parts.close()
