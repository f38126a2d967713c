"""The vaults of an installation: the primary one of the settings, and those that are linked."""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from obsidian_rag.config import Config, IndexingSettings
from obsidian_rag.errors import IndexCorrupted, IndexNotFound, InvalidArgument, NotFound
from obsidian_rag.index.note_files import NoteFiles
from obsidian_rag.notes import EVERYTHING, Scope
from obsidian_rag.store import ChunkStore, Database, Link, Links, Manifest
from obsidian_rag.vault import (
    Rules,
    Vault,
    VaultMode,
    check_relative,
    configured_vault,
)

V = TypeVar("V", Vault, Link)


class Vaults:
    """All vaults, the primary one first; a link that is added counts at once.

    Raises:
        ConfigInvalid: no vault is configured (from everything that is asked).
    """

    def __init__(
        self,
        config: Callable[[], Config],
        database: Callable[[], Database],
        chunks: Callable[[], ChunkStore],
    ) -> None:
        self._config = config
        self._database = database
        self._chunks = chunks
        # What was read last, of which settings and database, and what told of its state then.
        self._read: tuple[tuple[Config, Database, object], tuple[Vault, ...]] | None = None

    @property
    def configured(self) -> Vault:
        """The primary vault as the settings name it, without a look at the database."""
        return configured_vault(self._config())

    @property
    def primary(self) -> Vault:
        """The primary vault; without a link id if it was never indexed."""
        return next(iter(self))

    def __iter__(self) -> Iterator[Vault]:
        return iter(self._known())

    def within(self, scope: Scope) -> list[Vault]:
        """The vaults that are there for somebody with this scope, in their order."""
        return [vault for vault in self if scope.admits_vault(vault.link_id)]

    def one(self, wanted: str | None = None, scope: Scope = EVERYTHING) -> Vault:
        """The vault in scope with this name or link id; without one the first, mostly the primary.

        Raises:
            NotFound: none is called so.
        """
        vaults = self.within(scope)
        return vaults[0] if not wanted and vaults else _named(wanted or "", vaults)

    def link(self, wanted: str, scope: Scope = EVERYTHING) -> Link:
        """The row of the vault in scope with this name or link id, also of one being removed.

        Raises:
            NotFound: none is called so.
        """
        return _named(wanted, self.links_within(scope))

    def links_within(self, scope: Scope) -> list[Link]:
        """The rows of all vaults in scope, the primary one first."""
        return [link for link in self.links.all() if scope.admits_vault(link.link_id)]

    def unpaused(self, wanted: str) -> Link:
        """The same, for a run over it.

        Raises:
            NotFound: none is called so.
            InvalidArgument: it is paused.
        """
        link = self.link(wanted)
        if link.is_paused:
            raise InvalidArgument(
                f"'{link.name}' is paused.", f"Run `obsidian-rag link resume {link.name}` first."
            )
        return link

    def files(self, wanted: str | None = None, scope: Scope = EVERYTHING) -> NoteFiles:
        """The notes of one vault.

        Raises:
            NotFound: none is called so.
        """
        return NoteFiles(self.one(wanted, scope), scope, self._database, self._chunks())

    def has_folder(self, folder: str, scope: Scope = EVERYTHING) -> bool:
        """Whether a vault in scope has any known file below this folder."""
        manifest = Manifest(self._database())
        return any(manifest.has_folder(vault.link_id, folder) for vault in self.within(scope))

    def admission(self) -> Callable[[str, str], bool]:
        """Whether a file, by link id and path, may be known by the settings of now."""
        rules = {vault.link_id: vault.rules for vault in self}

        @functools.cache
        def admits(link_id: str, path: str) -> bool:
            found = rules.get(link_id)
            return found is not None and found.admits_file(path)

        return admits

    def scope_of(self, vaults: tuple[str, ...] | None, folders: tuple[str, ...] | None) -> Scope:
        """A scope by link ids and folders as they are written in the index.

        Raises:
            InvalidArgument: a list is empty.
            IndexNotFound: nothing is indexed yet.
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
            raise IndexNotFound(
                "There is no index yet to find vaults and folders in.", "Run `obsidian-rag index`."
            )
        # A folder without a vault is one of the primary vault.
        wanted = [_named(name, known) for name in vaults] if vaults is not None else known[:1]
        below = None if folders is None else tuple(map(_plain, folders))
        scope = Scope(tuple(sorted({vault.link_id for vault in wanted})), below)
        for folder in below or ():
            if folder and not self.has_folder(folder, scope):
                raise NotFound(
                    f"No file is known below the folder '{folder}'.",
                    "Write it as in the vault, or run `obsidian-rag sync` if it is new.",
                )
        return scope

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
            link = self.links.set_primary(vault.root)
            vault = replace(vault, link_id=link.link_id, name=link.name)
        return vault

    def _known(self) -> tuple[Vault, ...]:
        config = self._config()
        # A question makes no file: without a database there are no links.
        if not config.database.exists():
            return self._of_links(config, [])
        try:
            database = self._database()
            stamp, read = database.stamp, self._read
            if stamp is None or read is None or read[0] != (config, database, stamp):
                vaults = self._of_links(config, Links(database).all())
                read = self._read = (config, database, stamp), vaults
            return read[1]
        except IndexCorrupted:
            # A note can be read without the database; whatever needs it meets the damage there.
            return self._of_links(config, [])

    def _of_links(self, config: Config, known: list[Link]) -> tuple[Vault, ...]:
        vault = configured_vault(config)
        primary = next((link for link in known if link.is_primary), None)
        if primary is not None:
            vault = replace(vault, link_id=primary.link_id, name=primary.name)
        elif known:
            vault = replace(vault, name=self.links.free_name(vault.name))
        linked = (link for link in known if not link.is_primary and link.enabled)
        indexing = config.settings.indexing
        return vault, *(_linked(link, indexing) for link in linked)

    @property
    def links(self) -> Links:
        """The rows that are kept of all vaults."""
        return Links(self._database())


def _linked(link: Link, indexing: IndexingSettings) -> Vault:
    """A linked vault; the folders that the settings allow are those of the primary one."""
    return Vault(
        link.root_path,
        _rules_of_link(indexing, link.include, link.exclude),
        link_id=link.link_id,
        name=link.name,
        mode=VaultMode(link.mode),
        is_primary=False,
        is_paused=link.is_paused,
    )


def _named(wanted: str, vaults: Sequence[V]) -> V:
    for vault in vaults:
        if wanted == vault.link_id or wanted.casefold() == vault.name.casefold():
            return vault
    known = ", ".join(f"'{vault.name}'" for vault in vaults) or "none"
    raise NotFound(f"No vault '{wanted}'.", f"The vaults are {known}.")


def _plain(folder: str) -> str:
    """A folder without what people write around it; "/" is the whole vault."""
    name = folder.strip().replace("\\", "/").strip("/")
    return check_relative(name) if name not in ("", ".") else ""


# Rules remember what they were asked, so the same ones are used again.
@functools.lru_cache(maxsize=64)
def _rules_of_link(
    indexing: IndexingSettings, include: tuple[str, ...], exclude: tuple[str, ...]
) -> Rules:
    common = Rules.from_settings(indexing)
    return replace(common, allow_dirs=include, deny_dirs=(*common.deny_dirs, *exclude))
