"""What the index needs from its installation."""

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

    from obsidian_rag.relations import RelationsWriter


class IndexPlace(Protocol):
    """One installation, as its index sees it."""

    # When changed files were last looked for, and whether there were any.
    looked_for_changes: tuple[float, bool] | None
    # The version of the index at the last search.
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

    def relations_writer(self) -> "AbstractContextManager[RelationsWriter]":
        """A writer for the related notes' indexes; the caller closes it."""
        ...

    def relate_meanings(self, notes: "Collection[tuple[str, str]] | None") -> None:
        """Update the related notes with vectors added to these notes, or to any."""
        ...

    def follow_database(self) -> None:
        """Drop a database whose file another process has replaced, or the user removed."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...
