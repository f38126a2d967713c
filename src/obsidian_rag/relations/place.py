"""The parts of an installation that related notes depend on."""

from typing import TYPE_CHECKING, Protocol

from obsidian_rag.config import Config, RelationsSettings
from obsidian_rag.relations.rows_file import format_of
from obsidian_rag.store import ChunkStore, Database, MeaningStore
from obsidian_rag.vault import Vault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

    from obsidian_rag.relations.memory_index import MemoryIndex


class KeptIndex:
    """The indexes in memory, with the settings and the transformer they were loaded for."""

    def __init__(self) -> None:
        self.index: MemoryIndex | None = None
        self.loaded_for: tuple[RelationsSettings, str | None] | None = None

    def let_go(self) -> None:
        """Close the indexes; they are loaded again when needed."""
        if (index := self.index) is not None:
            with index.lock:  # running queries finish first
                index.rows.close()
            self.index = None


class KnownVaults(Protocol):
    """The vaults of an installation."""

    def __iter__(self) -> "Iterator[Vault]": ...
    def one(self, wanted: str | None = None) -> Vault:
        """The vault with this name or link id; without one, the primary."""
        ...


class RelationsPlace(Protocol):
    """The parts of one installation that related notes use."""

    @property
    def config(self) -> Config: ...
    @property
    def vaults(self) -> "KnownVaults": ...
    @property
    def database(self) -> Database: ...
    @property
    def chunks(self) -> ChunkStore: ...
    @property
    def meaning_store(self) -> MeaningStore | None: ...
    @property
    def query_vector(self) -> "Callable[[str], NDArray[np.float32]]": ...
    @property
    def meaning_vector(self) -> "Callable[[str], NDArray[np.float32] | None]": ...
    @property
    def relations(self) -> KeptIndex: ...

    def one_set_of_settings(self) -> "AbstractContextManager[None]":
        """Pin the current settings for this thread inside the block."""
        ...

    def make_relations(self) -> bool:
        """Build the indexes of related notes; False if another process was asked to."""
        ...


def format_now(place: RelationsPlace) -> str:
    """The index format that the current settings require."""
    return format_of(place.config.settings.relations)
