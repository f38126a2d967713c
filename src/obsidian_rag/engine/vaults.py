"""The vaults of an installation: the primary one from the settings, and the linked ones."""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from obsidian_rag.config import Config, IndexingSettings
from obsidian_rag.errors import IndexCorrupted, IndexNotFound, InvalidArgument, NotFound
from obsidian_rag.index import Parts
from obsidian_rag.notes import EVERYTHING, Scope
from obsidian_rag.store import Database, Link, Links, Manifest
from obsidian_rag.vault import (
    Rules,
    Vault,
    VaultMode,
    check_relative,
    configured_vault,
)

V = TypeVar("V", Vault, Link)


class Vaults:
    """All vaults, the primary one first; new links appear at once.

    Raises:
        ConfigInvalid: no vault is configured (from every method).
    """

    def __init__(self, parts: Callable[[], Parts]) -> None:
        """`parts` gives the current ones."""
        self._parts = parts
        # The vaults, and the settings, database and database stamp they were read from.
        self._cached: tuple[tuple[Config, Database, object], tuple[Vault, ...]] | None = None

    @property
    def primary(self) -> Vault:
        """The primary vault; without a link id if it was never indexed."""
        return next(iter(self))

    def __iter__(self) -> Iterator[Vault]:
        return iter(self._load())

    def within(self, scope: Scope) -> list[Vault]:
        """The vaults in this scope, in order."""
        return [vault for vault in self if scope.admits_vault(vault.link_id)]

    def one(self, wanted: str | None = None, scope: Scope = EVERYTHING) -> Vault:
        """The vault in scope with this name or link id; by default the first, usually the primary.

        Raises:
            NotFound: no vault has this name.
        """
        vaults = self.within(scope)
        return vaults[0] if not wanted and vaults else _find_named(wanted or "", vaults)

    def link(self, wanted: str, scope: Scope = EVERYTHING) -> Link:
        """The link with this name or link id in scope, even while it is being removed.

        Raises:
            NotFound: no vault has this name.
        """
        return _find_named(wanted, self.links_within(scope))

    def links_within(self, scope: Scope) -> list[Link]:
        """The links of all vaults in scope, the primary one first."""
        return [link for link in self.links.all() if scope.admits_vault(link.link_id)]

    def unpaused(self, wanted: str) -> Link:
        """Like `link`, but refuses a paused vault.

        Raises:
            NotFound: no vault has this name.
            InvalidArgument: it is paused.
        """
        link = self.link(wanted)
        if link.is_paused:
            raise InvalidArgument(
                f"'{link.name}' is paused.", f"Run `obsidian-rag link resume {link.name}` first."
            )
        return link

    def has_folder(self, folder: str, scope: Scope = EVERYTHING) -> bool:
        """Whether a vault in scope has any known file below this folder."""
        manifest = Manifest(self._parts().database)
        return any(manifest.has_folder(vault.link_id, folder) for vault in self.within(scope))

    def admission(self) -> Callable[[str, str], bool]:
        """A check whether the current settings admit a file, given as link id and path."""
        rules = {vault.link_id: vault.rules for vault in self}

        @functools.cache
        def admits(link_id: str, path: str) -> bool:
            found = rules.get(link_id)
            return found is not None and found.admits_file(path)

        return admits

    def scope_of(self, vaults: tuple[str, ...] | None, folders: tuple[str, ...] | None) -> Scope:
        """A scope from vault and folder names, as link ids and folders as the index has them.

        Raises:
            InvalidArgument: a list is empty.
            IndexNotFound: nothing is indexed yet.
            IndexCorrupted: the database cannot be read.
            NotFound: there is no such vault, or no file is known below such a folder.
            SecurityViolation: a folder is outside the vault.
        """
        if () in (vaults, folders):
            raise InvalidArgument(
                "A list of vaults or folders is empty.", "Name one, or leave it out."
            )
        if vaults is None and folders is None:
            return EVERYTHING
        known = [vault for vault in self if vault.link_id]
        if not known:
            if self._parts().config.database.exists():
                self.links.all()  # a damaged database hides the links too: raise here
            raise IndexNotFound(
                "There is no index yet to find vaults and folders in.", "Run `obsidian-rag index`."
            )
        # A folder without a vault belongs to the primary vault.
        wanted = [_find_named(name, known) for name in vaults] if vaults is not None else known[:1]
        below = None if folders is None else tuple(map(_normalise_folder, folders))
        scope = Scope(tuple(sorted({vault.link_id for vault in wanted})), below)
        for folder in below or ():
            if folder and not self.has_folder(folder, scope):
                raise NotFound(
                    f"No file is known below the folder '{folder}'.",
                    "Write it as in the vault, or run `obsidian-rag sync` if it is new.",
                )
        return scope

    def writable(self, wanted: str | None = None, scope: Scope = EVERYTHING) -> Vault:
        """Like `one`, but refuses read-only vaults.

        Raises:
            NotFound: no vault has this name.
            ReadOnly: it is linked read-only.
        """
        vault = self.one(wanted, scope)
        vault.must_be_writable()
        return vault

    def remember_primary(self) -> Vault:
        """The primary vault, after giving it a link id if it has none."""
        vault = self.primary
        if not vault.link_id:
            link = self.links.set_primary(vault.root)
            vault = replace(vault, link_id=link.link_id, name=link.name)
        return vault

    def _load(self) -> tuple[Vault, ...]:
        parts = self._parts()
        config = parts.config
        # Reading must not create a file: without a database there are no links.
        if not parts.file.exists:
            return self._build(config, [])
        try:
            database = parts.database
            stamp, read = database.stamp, self._cached
            if stamp is None or read is None or read[0] != (config, database, stamp):
                vaults = self._build(config, Links(database).all())
                read = self._cached = (config, database, stamp), vaults
            return read[1]
        except IndexCorrupted:
            # Notes can be read without the database; whatever needs it raises the error there.
            return self._build(config, [])

    def _build(self, config: Config, known: list[Link]) -> tuple[Vault, ...]:
        vault = configured_vault(config)
        primary = next((link for link in known if link.is_primary), None)
        if primary is not None:
            vault = replace(vault, link_id=primary.link_id, name=primary.name)
        elif known:
            vault = replace(vault, name=self.links.free_name(vault.name))
        linked = (link for link in known if not link.is_primary and link.enabled)
        indexing = config.settings.indexing
        return vault, *(_linked_vault(link, indexing) for link in linked)

    @property
    def links(self) -> Links:
        """The links stored in the database."""
        return Links(self._parts().database)


def _linked_vault(link: Link, indexing: IndexingSettings) -> Vault:
    """A linked vault; the settings' allowed folders apply to the primary one only."""
    return Vault(
        link.root_path,
        _rules_of_link(indexing, link.include, link.exclude),
        link_id=link.link_id,
        name=link.name,
        mode=VaultMode(link.mode),
        is_primary=False,
        is_paused=link.is_paused,
    )


def _find_named(wanted: str, vaults: Sequence[V]) -> V:
    for vault in vaults:
        if wanted == vault.link_id or wanted.casefold() == vault.name.casefold():
            return vault
    known = ", ".join(f"'{vault.name}'" for vault in vaults) or "none"
    raise NotFound(f"No vault '{wanted}'.", f"The vaults are {known}.")


def _normalise_folder(folder: str) -> str:
    """A folder's relative path without slashes around it; "/" is the whole vault."""
    name = folder.strip().replace("\\", "/").strip("/")
    return check_relative(name) if name not in ("", ".") else ""


# Rules cache their results, so reuse the same instances.
@functools.lru_cache(maxsize=64)
def _rules_of_link(
    indexing: IndexingSettings, include: tuple[str, ...], exclude: tuple[str, ...]
) -> Rules:
    common = Rules.from_settings(indexing)
    return replace(common, allow_dirs=include, deny_dirs=(*common.deny_dirs, *exclude))
