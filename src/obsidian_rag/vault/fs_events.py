"""Turns raw file system events into changed paths of a vault.

An `FsEvents` watches one folder that stays in place; `watcher` handles a vault that disappears. It
has no thread, and `take` never waits.
"""

import contextlib
import os
import stat
import sys
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from obsidian_rag.vault.rules import Rules
from obsidian_rag.vault.walk import Walk

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

Raw = tuple[int, str]
# As in watchfiles.Change.
_ADDED: Final = 1
_MODIFIED: Final = 2
_DELETED: Final = 3
# These systems watch a whole tree at once and do not follow links.
_HAS_TREES = sys.platform in ("darwin", "win32")
_POLL_MS = 5000
# Polling costs 20 µs per folder with its notes: this keeps it below a hundredth of the time.
_POLL_MS_PER_FOLDER = 2
# Creating a part blocks all other threads of the process, at 20 to 100 µs per folder.
_MIN_FOLDERS_PER_PART = 1024
# A part takes a thread, and one of the 128 or so inotify instances of a user.
_MAX_PARTS = 8
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders to watch; `places` maps a folder's real path to its path in the vault."""

    places: dict[str, str] = field(default_factory=dict)
    links: set[str] = field(default_factory=set)  # paths in the vault that lead elsewhere in it
    unreadable: list[str] = field(default_factory=list)


def list_folders(
    root: str, rules: Rules, tops: Mapping[str, str], known: Container[str] = ()
) -> Folders:
    """List folders and all below them, also linked ones unless `known`; missing ones are skipped.

    `root` is the vault's real path; `tops` has the form of `Folders.places`.
    """
    found = Folders()
    base = root.rstrip(os.sep) + os.sep
    starts = [(rel, real[len(base) :].replace(os.sep, "/")) for real, rel in tops.items()]
    for one in Walk(root, rules, with_files=False, known=known).folders(starts):
        real = base + one.real_rel.replace("/", os.sep) if one.real_rel else root
        # The system's events come as UTF-8; a link may lead to a folder with another name.
        if real in found.places or not _is_utf8(real):
            continue
        if one.is_link:
            found.links.add(one.rel)
        if one.is_unreadable:
            found.unreadable.append(one.rel)
        elif one.error is None:
            found.places[real] = one.rel
    return found


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_below(root: str, real: str) -> bool:
    """Whether one real path lies below another."""
    return real.startswith(root.rstrip(os.sep) + os.sep)


class _NoEvents(Exception):
    """Raised to leave `RustNotify.watch` when there are no events."""


class _NoWait:
    """Makes `RustNotify.watch` return at once.

    It has no call that does not wait, and loses what arrives just when its own timeout expires. It
    calls `is_set` before every check for events, and needs two checks to return those present.
    """

    def __init__(self) -> None:
        self._checks = 0

    def is_set(self) -> bool:
        self._checks += 1
        if self._checks > 2:
            raise _NoEvents
        return False


@dataclass(frozen=True, slots=True)
class Changed:
    """Paths that changed."""

    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()  # each stands for all that is in it


@dataclass(slots=True)
class _Batch:
    """What the events of one `take` amount to."""

    paths: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)  # those of the paths that stand for all below
    gone: set[str] = field(default_factory=set)
    new: dict[str, str] = field(default_factory=dict)  # real path to path, as in Folders.places
    links: dict[str, str] = field(default_factory=dict)


class FsEvents:
    """The watched folders of one vault, updated as folders come and go.

    Once `is_worn` is set it misses events in new folders and must be replaced.

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
        self._max_parts = _MAX_PARTS
        self._places: dict[str, str] = {}
        self._links: set[str] = set()
        self._missed: set[Raw] = set()
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            self._watch({root: ""})
            if not self._places:
                raise FileNotFoundError(f"{root} cannot be read")
            undo.pop_all()
        self._max_parts += len(self._parts)

    def take(self) -> Changed:
        """What has changed since the last call."""
        raw, self._missed = self._missed, set()
        for part in self._parts:
            raw |= _take_events(part)
        batch = _Batch()
        # Folders come before what is in them.
        for path, change in sorted((path, change) for change, path in raw):
            self._process_event(path, change, batch)
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

    def _process_event(self, path: str, change: int, batch: _Batch) -> None:
        if not is_below(self._root, path):
            # A new folder may be there by now, even with the same inode number.
            self.is_root_gone |= path == self._root and change == _DELETED
            return
        top = self._first_unknown(path)
        if top != path:
            # Something in a folder that is not watched yet: treat the folder as new.
            change = _ADDED
        above, name = os.path.split(top)
        rel = f"{self._places[above]}/{name}".lstrip("/")
        if name[0] == "." or _is_in(rel, batch.folders):
            return
        if change == _MODIFIED:
            # A change of a folder comes with events for its content; a note needs no stat.
            if top in self._places:
                return
            if self._rules.admits_file(rel):
                batch.paths.add(rel)
                return
        self._compare(top, rel, batch)

    def _compare(self, path: str, rel: str, batch: _Batch) -> None:
        """Compare with the disk, because events may be late and out of order."""
        mode = _read_mode(path)
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
        """Watch a linked folder, unless it is watched by another path."""
        if not is_below(self._root, real) or real in self._places:
            return
        if not self._rules.denies_dir(os.path.relpath(real, self._root).replace(os.sep, "/")):
            self._links.add(rel)
            self._watch({real: rel})

    def _watch(self, tops: dict[str, str]) -> None:
        for _ in range(_TRIES):
            found = self._list(tops)
            try:
                self._open(found)
            except (FileNotFoundError, PermissionError):
                # A folder was removed, or became unreadable, since it was listed.
                continue
            self._remember(found)
            # What was created between the listing and the watch caused no event.
            missed = self._list(tops).places.keys() - self._places
            self._missed.update((_ADDED, real) for real in missed)
            return
        self.is_worn = True

    def _open(self, found: Folders) -> None:
        if self.is_worn or (self._is_tree and self._parts):
            return
        folders = [self._root] if self._is_tree else list(found.places)
        if self._is_polling and not self._parts:
            self.poll_ms = max(_POLL_MS, len(folders) * _POLL_MS_PER_FOLDER)
        size = max(_MIN_FOLDERS_PER_PART, len(folders) // _MAX_PARTS + 1)
        with contextlib.ExitStack() as undo:
            parts = [
                undo.enter_context(self._open_part(folders[start : start + size]))
                for start in range(0, len(folders), size)
            ]
            undo.pop_all()
        self._parts += parts
        self.is_worn = len(self._parts) > self._max_parts

    def _open_part(self, folders: list[str]) -> "RustNotify":
        # Imported here because it is slow and only a daemon needs it.
        from watchfiles._rust_notify import RustNotify  # noqa: PLC0415

        polls = self.poll_ms is not None
        return RustNotify(folders, False, polls, self.poll_ms or 0, self._is_tree, False)

    def _list(self, tops: dict[str, str]) -> Folders:
        return list_folders(self._root, self._rules, tops, self._places)

    def _remember(self, found: Folders) -> None:
        self._places |= found.places
        self._links |= found.links
        self.unreadable.update(found.unreadable)

    def _forget(self, gone: set[str]) -> None:
        self._places = {real: rel for real, rel in self._places.items() if not _is_in(rel, gone)}
        self._links = {rel for rel in self._links if not _is_in(rel, gone)}


def _take_events(part: "RustNotify") -> set[Raw]:
    try:
        seen = part.watch(0, 0, 0, _NoWait())
    except _NoEvents:
        return set()
    return seen if isinstance(seen, set) else set()


def _read_mode(path: str) -> int:
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
