"""What related notes need of the installation they belong to."""

from typing import TYPE_CHECKING, Protocol

from obsidian_rag.config import Config, RelationsSettings
from obsidian_rag.relations.rows_file import format_of
from obsidian_rag.store import ChunkStore, Database, MeaningStore
from obsidian_rag.vault import Vault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

    from obsidian_rag.relations.consumer import RelationsConsumer
    from obsidian_rag.relations.memory_index import MemoryIndex


class KeptIndex:
    """The indexes in memory, with the settings and the transformer they were loaded for."""

    def __init__(self) -> None:
        self.index: MemoryIndex | None = None
        self.loaded_for: tuple[RelationsSettings, str | None] | None = None

    def let_go(self) -> None:
        """Forget the indexes; they are loaded again when needed."""
        if (index := self.index) is not None:
            with index.lock:  # whoever asks them finishes first
                index.rows.close()
            self.index = None


class KnownVaults(Protocol):
    """The vaults of an installation."""

    def __iter__(self) -> "Iterator[Vault]": ...
    def one(self, wanted: str | None = None) -> Vault:
        """The vault with this name or link id; without one, the primary."""
        ...


class RelationsPlace(Protocol):
    """One installation, as related notes see it."""

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
        """For what this thread does inside, the settings of now hold to its end."""
        ...

    def hand_over(
        self,
        vault: Vault,
        consumer: "RelationsConsumer",
        held: "Mapping[str, str]",
        paths: "Sequence[str] | None" = None,
    ) -> list[str] | None:
        """Have the notes at some paths of a vault, or all, read for the consumer alone.

        `held` is what it has of them. The paths that were looked at, or None if that is the work
        of an index run.
        """
        ...

    def make_relations(self) -> bool:
        """Make the indexes of related notes; False if another process was asked to."""
        ...


def format_now(place: RelationsPlace) -> str:
    """What indexes must be made like to be used with the settings of now."""
    return format_of(place.config.settings.relations)
