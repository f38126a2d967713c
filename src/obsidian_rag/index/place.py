"""What the index needs of the installation it belongs to."""

from typing import TYPE_CHECKING, Protocol

from obsidian_rag.config import Config
from obsidian_rag.embed import Embedder
from obsidian_rag.index.transformer import Transformer
from obsidian_rag.index.vaults import Vaults
from obsidian_rag.notes import ChunkLimits
from obsidian_rag.store import ChunkStore, Database

if TYPE_CHECKING:
    from collections.abc import Collection
    from contextlib import AbstractContextManager

    from obsidian_rag.index.consumer import NoteConsumer


class IndexPlace(Protocol):
    """One installation, as its index sees it."""

    # When a look for changed files was last made, and whether there were any.
    looked_for_changes: tuple[float, bool] | None
    # The state of the index that the last question met.
    seen_version: str | None

    @property
    def config(self) -> Config: ...
    @property
    def database(self) -> Database: ...
    @property
    def chunks(self) -> ChunkStore: ...
    @property
    def embedder(self) -> Embedder: ...
    @property
    def limits(self) -> ChunkLimits: ...
    @property
    def transformer(self) -> Transformer: ...
    @property
    def vaults(self) -> Vaults: ...

    def relations_consumer(self) -> "AbstractContextManager[NoteConsumer]":
        """The indexes of related notes, for a run to keep in line."""
        ...

    def relate_meanings(self, notes: "Collection[tuple[str, str]] | None") -> None:
        """Take up vectors that were added to these notes, or to any, into the related notes."""
        ...

    def follow_database(self) -> None:
        """Let go of a database whose file another process has replaced, or the user removed."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...
