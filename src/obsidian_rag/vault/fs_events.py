"""Events of the file system: raw events of the system in, changed paths of a vault out.

An `FsEvents` watches one folder that stays what it is; `watcher` handles a vault that goes away.
It has no thread of its own, and `take` never waits.
"""

import contextlib
import os
import stat
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from obsidian_rag.vault.folders import Folders, is_below, list_folders
from obsidian_rag.vault.rules import Rules

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

Raw = tuple[int, str]
# As in watchfiles.Change.
_ADDED: Final = 1
_MODIFIED: Final = 2
_DELETED: Final = 3
# These systems watch a tree as one and follow no links.
_HAS_TREES = sys.platform in ("darwin", "win32")
_POLL_MS = 5000
# Looking through a vault costs 20 µs per folder and its notes: a hundredth of the time at most.
_POLL_MS_PER_FOLDER = 2
# No other thread of the process runs while a part is made, at 20 to 100 µs per folder.
_FOLDERS_IN_PART = 1024
# A part takes one of the 128 or so inotify instances that a user may have, and a thread.
_MOST_PARTS = 8
_TRIES = 3


class _NothingNew(Exception):
    """Ends a look at a part that has seen nothing."""


class _NoWait:
    """Makes `RustNotify.watch` come back at once.

    It has no call that does not wait, and what arrives just when its own time-out strikes is
    lost. It asks this object before every look; it needs two looks to hand out what is there.
    """

    def __init__(self) -> None:
        self._looks = 0

    def is_set(self) -> bool:
        self._looks += 1
        if self._looks > 2:
            raise _NothingNew
        return False


@dataclass(frozen=True, slots=True)
class Changed:
    """Paths to which something happened."""

    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()  # each stands for all that is in it


@dataclass(slots=True)
class _Batch:
    """What the events of one `take` come to."""

    paths: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)  # those of the paths that stand for all below
    gone: set[str] = field(default_factory=set)
    new: dict[str, str] = field(default_factory=dict)  # real path to path, as in Folders.places
    links: dict[str, str] = field(default_factory=dict)


class FsEvents:
    """The watched folders of one vault, kept up to date as folders come and go.

    Once it is worn it misses events in new folders: it is time for a new one.

    Raises:
        FileNotFoundError: the vault's folder is not there or cannot be read.
        OSError, RuntimeError: the system cannot watch it, or no longer (also from `take`).
    """

    def __init__(self, root: str, rules: Rules, *, is_polling: bool = False) -> None:
        self.poll_ms: int | None = None
        self.unreadable: set[str] = set()
        self.is_root_gone = False
        self.is_worn = False
        self._root = root
        self._rules = rules
        self._is_polling = is_polling
        self._is_tree = _HAS_TREES and not is_polling
        self._parts: list[RustNotify] = []
        self._most_parts = _MOST_PARTS
        self._places: dict[str, str] = {}
        self._links: set[str] = set()
        self._overlooked: set[Raw] = set()
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            self._watch({root: ""})
            if not self._places:
                raise FileNotFoundError(f"{root} cannot be read")
            undo.pop_all()
        self._most_parts += len(self._parts)

    def take(self) -> Changed:
        """What has changed since the last time."""
        raw, self._overlooked = self._overlooked, set()
        for part in self._parts:
            raw |= _take(part)
        batch = _Batch()
        # Folders come before what is in them.
        for path, change in sorted((path, change) for change, path in raw):
            self._judge(path, change, batch)
        if batch.gone:
            self._forget(batch.gone)
        if batch.new:
            self._watch(batch.new)
        for link, rel in batch.links.items():
            self._follow(os.path.realpath(link), rel)
        folders = batch.folders.union(batch.links.values())
        return Changed(frozenset(batch.paths - folders), frozenset(folders))

    def close(self) -> None:
        """Stop watching."""
        while self._parts:
            self._parts.pop().close()

    def _judge(self, path: str, change: int, batch: _Batch) -> None:
        if not is_below(self._root, path):
            # Another folder may be there by now, and even have the number of the old one.
            self.is_root_gone |= path == self._root and change == _DELETED
            return
        top = self._first_unknown(path)
        if top != path:
            # Something in a folder that we have not heard of: the folder is what is new.
            change = _ADDED
        above, name = os.path.split(top)
        rel = f"{self._places[above]}/{name}".lstrip("/")
        if name[0] == "." or _is_in(rel, batch.folders):
            return
        if change == _MODIFIED:
            # What happens to a folder happens in it; and a note needs no further look.
            if top in self._places:
                return
            if self._rules.admits_file(rel):
                batch.paths.add(rel)
                return
        self._compare(top, rel, batch)

    def _compare(self, path: str, rel: str, batch: _Batch) -> None:
        """Events may be late and out of order: what counts is what is there now."""
        mode = _mode(path)
        if stat.S_ISDIR(mode):
            if self._rules.admits_dir(rel):
                batch.paths.add(rel)
                batch.folders.add(rel)
                batch.new[path] = rel
        elif path in self._places or rel in self._links:
            batch.paths.add(rel)
            batch.folders.add(rel)
            batch.gone.add(rel)
        elif stat.S_ISLNK(mode) and os.path.isdir(path):  # noqa: PTH112
            if self._rules.admits_dir(rel):
                batch.paths.add(rel)
                batch.links[path] = rel
        elif self._rules.admits_file(rel):
            batch.paths.add(rel)

    def _first_unknown(self, path: str) -> str:
        above = os.path.dirname(path)  # noqa: PTH120
        while above not in self._places:
            path, above = above, os.path.dirname(above)  # noqa: PTH120
        return path

    def _follow(self, real: str, rel: str) -> None:
        """Enter a folder by a link, if no better path leads there."""
        if not is_below(self._root, real) or real in self._places:
            return
        if not self._rules.denies_dir(os.path.relpath(real, self._root).replace(os.sep, "/")):
            self._links.add(rel)
            self._watch({real: rel})

    def _watch(self, tops: dict[str, str]) -> None:
        """Watch folders and all below them."""
        for _ in range(_TRIES):
            found = self._list(tops)
            try:
                self._open(found)
            except (FileNotFoundError, PermissionError):
                # One of them went away, or was shut, since it was listed.
                continue
            self._learn(found)
            # What was made after the listing and before the watch began gave no event.
            missed = self._list(tops).places.keys() - self._places
            self._overlooked.update((_ADDED, real) for real in missed)
            return
        self.is_worn = True

    def _open(self, found: Folders) -> None:
        if self.is_worn or (self._is_tree and self._parts):
            return
        folders = [self._root] if self._is_tree else list(found.places)
        if self._is_polling and not self._parts:
            self.poll_ms = max(_POLL_MS, len(folders) * _POLL_MS_PER_FOLDER)
        size = max(_FOLDERS_IN_PART, len(folders) // _MOST_PARTS + 1)
        with contextlib.ExitStack() as undo:
            parts = [
                undo.enter_context(self._part(folders[start : start + size]))
                for start in range(0, len(folders), size)
            ]
            undo.pop_all()
        self._parts += parts
        self.is_worn = len(self._parts) > self._most_parts

    def _part(self, folders: list[str]) -> "RustNotify":
        # Here and not above: it takes a while, and only a daemon needs it.
        from watchfiles._rust_notify import RustNotify  # noqa: PLC0415

        polls = self.poll_ms is not None
        return RustNotify(folders, False, polls, self.poll_ms or 0, self._is_tree, False)

    def _list(self, tops: dict[str, str]) -> Folders:
        return list_folders(self._root, self._rules, tops, self._places)

    def _learn(self, found: Folders) -> None:
        self._places |= found.places
        self._links |= found.links
        self.unreadable.update(found.unreadable)

    def _forget(self, gone: set[str]) -> None:
        self._places = {real: rel for real, rel in self._places.items() if not _is_in(rel, gone)}
        self._links = {rel for rel in self._links if not _is_in(rel, gone)}


def _take(part: "RustNotify") -> set[Raw]:
    try:
        seen = part.watch(0, 0, 0, _NoWait())
    except _NothingNew:
        return set()
    return seen if isinstance(seen, set) else set()


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _is_in(rel: str, folders: set[str]) -> bool:
    while rel:
        if rel in folders:
            return True
        rel = rel.rpartition("/")[0]
    return False
