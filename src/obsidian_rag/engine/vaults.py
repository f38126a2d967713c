"""The vaults of an installation: the primary one of the settings, and those that are linked."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace

from obsidian_rag.config import Config, IndexingSettings
from obsidian_rag.errors import IndexCorrupted, NotFound
from obsidian_rag.notes import EVERYTHING, Scope
from obsidian_rag.store import Database, Link, Links
from obsidian_rag.vault import Rules, Vault, VaultMode


class Vaults:
    """All vaults, the primary one first; asked anew each time, so a link counts at once.

    Raises:
        ConfigInvalid: no vault is configured (from everything that is asked).
    """

    def __init__(self, config: Callable[[], Config], database: Callable[[], Database]) -> None:
        self._config = config
        self._database = database

    @property
    def configured(self) -> Vault:
        """The primary vault as the settings name it, without a look at the database."""
        config = self._config()
        root = config.vault_root
        return Vault(root, _rules(config.settings.indexing), name=root.name)

    @property
    def primary(self) -> Vault:
        """The primary vault; without a link id if it was never indexed."""
        return next(iter(self))

    def __iter__(self) -> Iterator[Vault]:
        configured = self.configured
        known = self._known()
        primary = next((link for link in known if link.is_primary), None)
        if primary is not None:
            yield replace(configured, link_id=primary.link_id, name=primary.name)
        else:
            yield replace(configured, name=self._free_name(configured.name, known))
        for link in known:
            if not link.is_primary and link.enabled:
                yield self._linked(link)

    def within(self, scope: Scope) -> list[Vault]:
        """The vaults that are there for somebody with this scope, in their order."""
        return [vault for vault in self if scope.admits_vault(vault.link_id)]

    def one(self, wanted: str | None = None, scope: Scope = EVERYTHING) -> Vault:
        """The vault in scope with this name or link id; without one the first, mostly the primary.

        Raises:
            NotFound: none is called so.
        """
        vaults = self.within(scope)
        if not wanted and vaults:
            return vaults[0]
        wanted = wanted or ""
        for vault in vaults:
            if wanted == vault.link_id or wanted.casefold() == vault.name.casefold():
                return vault
        known = ", ".join(f"'{vault.name}'" for vault in vaults)
        raise NotFound(f"No vault '{wanted}'.", f"The vaults are {known}.")

    def writable(self, wanted: str | None = None, scope: Scope = EVERYTHING) -> Vault:
        """The same, for who writes.

        Raises:
            NotFound: none is called so.
            ReadOnly: it is linked to be read only.
        """
        vault = self.one(wanted, scope)
        vault.must_be_writable()
        return vault

    def remember_primary(self) -> Vault:
        """The primary vault, with its link id: it gets one now if it has none."""
        vault = self.primary
        if not vault.link_id:
            link = self._links().set_primary(vault.root)
            vault = replace(vault, link_id=link.link_id, name=link.name)
        return vault

    def _known(self) -> list[Link]:
        # A question makes no file: without a database there are no links.
        if not self._config().database.exists():
            return []
        try:
            return self._links().all()
        except IndexCorrupted:
            # A note can be read without the database; whatever needs it meets the damage there.
            return []

    def _links(self) -> Links:
        return Links(self._database())

    def _free_name(self, wanted: str, known: list[Link]) -> str:
        return self._links().free_name(wanted) if known else wanted

    def _linked(self, link: Link) -> Vault:
        """A linked vault; the folders that the settings allow are those of the primary one."""
        indexing = self._config().settings.indexing
        return Vault(
            link.root_path,
            _rules_of_link(indexing, link.include, link.exclude),
            link_id=link.link_id,
            name=link.name,
            mode=VaultMode(link.mode),
            is_primary=False,
            is_paused=link.is_paused,
        )


# Rules remember what they were asked, so the same ones are used again.
@functools.lru_cache(maxsize=8)
def _rules(indexing: IndexingSettings) -> Rules:
    return Rules.from_settings(indexing)


@functools.lru_cache(maxsize=64)
def _rules_of_link(
    indexing: IndexingSettings, include: tuple[str, ...], exclude: tuple[str, ...]
) -> Rules:
    common = _rules(indexing)
    return replace(common, allow_dirs=include, deny_dirs=(*common.deny_dirs, *exclude))
