"""The folders of a vault that are worth watching: those a scan walks, and none besides.

A system that is asked to watch a whole tree follows every symlink in it, out of the vault and
into the whole disk, and every denied or hidden folder, with all the packages of a plugin. And of
a folder that has two names it knows only the one it met last, which may soon be gone.
"""

import os
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from obsidian_rag.vault.rules import Rules
from obsidian_rag.vault.tree import is_gone, walk_folders


@dataclass(frozen=True, slots=True)
class Folders:
    """What a listing found. A folder's real path leads to its path in the vault."""

    places: dict[str, str] = field(default_factory=dict)
    links: set[str] = field(default_factory=set)  # paths in the vault that lead elsewhere in it
    unreadable: list[str] = field(default_factory=list)


def list_folders(
    root: str, rules: Rules, tops: Mapping[str, str], known: Container[str] = ()
) -> Folders:
    """List folders and all below them, reached by links too unless `known`; not those gone.

    `root` is the vault's real path; `tops` are given as in `Folders.places`.
    """
    listing = _Listing(root, rules, known)
    listing.todo += tops.items()
    for _ in walk_folders(listing, listing.todo, listing.links):
        pass
    return listing.found


def is_below(root: str, real: str) -> bool:
    """Whether one real path lies below another."""
    return real.startswith(root.rstrip(os.sep) + os.sep)


class _Listing:
    """The state of one listing; the order is that of a scan: real folders first, then links."""

    def __init__(self, root: str, rules: Rules, known: Container[str]) -> None:
        self.found = Folders()
        self._root = root
        self._rules = rules
        self._known = known
        self.todo: list[tuple[str, str]] = []
        self.links: list[tuple[str, str]] = []

    def path(self, folder: tuple[str, str]) -> str | None:
        """A folder is listed once, by its real path."""
        return None if folder[0] in self.found.places else folder[0]

    def entries(self, entries: "Iterator[os.DirEntry[str]]", folder: tuple[str, str]) -> None:
        """Know the folder, and go on below."""
        real, rel = folder
        self.found.places[real] = rel
        for entry in entries:
            self._entry(entry, rel)

    def lost(self, folder: tuple[str, str], error: OSError) -> None:
        """A folder that cannot be read cannot be watched either."""
        real, rel = folder
        self.found.places.pop(real, None)
        if not is_gone(error):
            self.found.unreadable.append(rel)

    def _entry(self, entry: "os.DirEntry[str]", rel: str) -> None:
        if entry.name[0] == ".":
            return
        below = f"{rel}/{entry.name}" if rel else entry.name
        if entry.is_symlink():
            if _leads_to_folder(entry) and self._rules.admits_dir(below):
                self.links.append((below, entry.path))
        elif entry.is_dir(follow_symlinks=False) and self._is_ours(below, entry.path):
            self.todo.append((entry.path, below))

    def _is_ours(self, rel: str, real: str) -> bool:
        if not rel.isascii() and not _is_utf8(rel):
            return False
        if not self._rules.admits_dir(rel):
            return False
        # Below a followed link the folder's own place may be denied though its name is not.
        real_rel = self._relative(real)
        return rel == real_rel or not self._rules.denies_dir(real_rel)

    def follow(self, rel: str, link: str) -> None:
        """Walk a linked folder that lies in the vault and is reached in no other way."""
        real = os.path.realpath(link)
        if not is_below(self._root, real) or real in self._known or real in self.found.places:
            return
        if _is_utf8(rel + real) and not self._rules.denies_dir(self._relative(real)):
            self.found.links.add(rel)
            self.todo.append((real, rel))

    def _relative(self, real: str) -> str:
        return real[len(self._root.rstrip(os.sep)) + 1 :].replace(os.sep, "/")


def _leads_to_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
