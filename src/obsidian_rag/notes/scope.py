"""Which notes somebody may know of, by vault and folder. Pure.

Threat: a scope that means nothing must not mean everything. A vault that is not known any more, or
a folder that was renamed, leaves less to see, never more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Scope:
    """Notes of these vaults, by link id or name, and below these folders; None is all of them."""

    vaults: tuple[str, ...] | None = None
    folders: tuple[str, ...] | None = None

    @property
    def is_limited(self) -> bool:
        """Whether there may be notes outside."""
        return self.vaults is not None or self.folders is not None

    def admits_vault(self, link_id: str | None) -> bool:
        """Whether any note of a vault may be known."""
        return self.vaults is None or link_id in self.vaults

    def admits(self, link_id: str | None, path: str) -> bool:
        """Whether this note may be known, if there is one."""
        if not self.admits_vault(link_id):
            return False
        return self.folders is None or any(is_inside(path, folder) for folder in self.folders)

    def named(self, names: Mapping[str, str]) -> "Scope":
        """The same with link ids for the names of vaults, which `names` has by link id."""
        if self.vaults is None:
            return self
        wanted = {vault.casefold() for vault in self.vaults}
        found = (one for one, name in names.items() if {one, name.casefold()} & wanted)
        return replace(self, vaults=tuple(sorted(found)))


EVERYTHING = Scope()


def is_inside(path: str, folder: str) -> bool:
    """Whether a path lies below a folder; the vault's own folder has no name."""
    return not folder or path.startswith(f"{folder}/")
