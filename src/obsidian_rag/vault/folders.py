"""The folders of a vault that are worth watching: those a scan walks, and none besides.

A system that is asked to watch a whole tree follows every symlink in it, out of the vault and
into the whole disk, and every denied or hidden folder, with all the packages of a plugin. And of
a folder that has two names it knows only the one it met last, which may soon be gone.
"""

import os
from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from obsidian_rag.vault.rules import Rules


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
    listing.walk(tops)
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
        self._todo: list[tuple[str, str]] = []
        self._links: list[tuple[str, str]] = []

    def walk(self, tops: Mapping[str, str]) -> None:
        self._todo += tops.items()
        while self._todo or self._links:
            if self._todo:
                self._folder(*self._todo.pop())
            else:
                self._links.sort(reverse=True)
                self._linked(*self._links.pop())

    def _folder(self, real: str, rel: str) -> None:
        if real in self.found.places:
            return
        try:
            with os.scandir(real) as entries:
                self.found.places[real] = rel
                for entry in entries:
                    self._entry(entry, rel)
        except (FileNotFoundError, NotADirectoryError):
            self.found.places.pop(real, None)
        except OSError:
            # Then it cannot be watched either.
            self.found.places.pop(real, None)
            self.found.unreadable.append(rel)

    def _entry(self, entry: "os.DirEntry[str]", rel: str) -> None:
        if entry.name[0] == ".":
            return
        below = f"{rel}/{entry.name}" if rel else entry.name
        if entry.is_symlink():
            if _leads_to_folder(entry) and self._rules.admits_dir(below):
                self._links.append((below, entry.path))
        elif entry.is_dir(follow_symlinks=False) and self._is_ours(below, entry.path):
            self._todo.append((entry.path, below))

    def _is_ours(self, rel: str, real: str) -> bool:
        if not rel.isascii() and not _is_utf8(rel):
            return False
        if not self._rules.admits_dir(rel):
            return False
        # Below a followed link the folder's own place may be denied though its name is not.
        real_rel = self._relative(real)
        return rel == real_rel or not self._rules.denies_dir(real_rel)

    def _linked(self, rel: str, link: str) -> None:
        real = os.path.realpath(link)
        if not is_below(self._root, real) or real in self._known or real in self.found.places:
            return
        if _is_utf8(rel + real) and not self._rules.denies_dir(self._relative(real)):
            self.found.links.add(rel)
            self._todo.append((real, rel))

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
