"""The vaults of an installation: one today, and nobody who asks here may count on that."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from obsidian_rag.errors import NotFound
from obsidian_rag.store import Database, Links
from obsidian_rag.vault import Vault


class Vaults:
    """The vaults that the settings of now name, the primary one first.

    Raises:
        ConfigInvalid: none is configured (from everything that is asked).
    """

    def __init__(
        self, configured: Callable[[], tuple[Vault, ...]], database: Callable[[], Database]
    ) -> None:
        self._configured = configured
        self._database = database

    @property
    def configured(self) -> tuple[Vault, ...]:
        """The vaults as the settings name them, without a look at the database."""
        return self._configured()

    def __iter__(self) -> Iterator[Vault]:
        """Each vault with its link id, if it was ever indexed."""
        primary, *others = self.configured
        link = Links(self._database()).primary()
        yield replace(primary, link_id=link.link_id) if link else primary
        yield from others

    def one(self, link_id: str | None = None) -> Vault:
        """The vault with this link id; without one the primary, for what names no vault yet.

        Raises:
            NotFound: none has this link id.
        """
        for vault in self:
            if link_id in (None, vault.link_id):
                return vault
        raise NotFound(f"No vault has the link id '{link_id}'.", "Run `obsidian-rag status`.")
