"""Walk a vault for every file that can be synced, without opening one.

What exists but cannot be synced (a symlink, an unreadable folder, a file that is only in the
cloud) is listed, so that it and its content are not taken for deleted.
"""

import os
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from obsidian_rag.vault.boundary import is_harmless
from obsidian_rag.vault.scan import FileEntry, file_entry
from obsidian_rag.vault.temporary import is_temporary
from obsidian_rag.vault.tree import (
    WINDOWS,
    file_status,
    in_the_cloud,
    is_gone,
    is_link,
    speakable,
    unsafe_name,
    walk_folders,
)


@dataclass(frozen=True, slots=True)
class FileWalk:
    """What a walk found. A known file that is neither in `files` nor hidden by `unseen` is gone."""

    files: list[FileEntry]
    # Path of a file or folder that exists but was left out, and why; "" is the root itself.
    unseen: Mapping[str, str]
    is_complete: bool
    is_empty: bool
    # Temporary files of ours, perhaps left behind by a kill.
    leftovers: tuple[str, ...] = ()
    _hiding: frozenset[str] = frozenset()

    @property
    def has_root(self) -> bool:
        """Whether the vault's folder was there from the beginning to the end."""
        return "" not in self.unseen

    def may_hide(self, rel: str) -> bool:
        """Whether this file may exist although the walk did not find it."""
        if not self.has_root:
            return True
        # Folded: the disk may spell a folder in another case than the database does.
        place = folded(rel)
        while place and place not in self._hiding:
            place = place.rpartition("/")[0]
        return bool(place)


def walk_files(root: Path) -> FileWalk:
    """Every regular file below `root` that is not hidden; a missing root is not an error."""
    try:
        before = root.stat()
        walk = _Walk(os.path.realpath(root))
        for _ in walk_folders(walk, walk.todo, []):
            pass
        after = root.stat()
    except (FileNotFoundError, NotADirectoryError):
        return _without_root("missing")
    except OSError:
        return _without_root("unreadable")
    # A disk removed during the walk looks like a vault without files.
    if not os.path.samestat(before, after):
        return _without_root("replaced")
    hiding = frozenset(map(folded, walk.unseen))
    return FileWalk(
        walk.files, walk.unseen, walk.is_complete, walk.is_empty, tuple(walk.leftovers), hiding
    )


def folded(rel: str) -> str:
    """The key under which two spellings of a path are equal, on a disk that ignores case."""
    return unicodedata.normalize("NFC", rel).casefold()


class _Walk:
    def __init__(self, real_root: str) -> None:
        self.files: list[FileEntry] = []
        self.unseen: dict[str, str] = {}
        self.is_complete = True
        self.is_empty = True
        self.leftovers: list[str] = []
        self._base = real_root.rstrip(os.sep) + "/"
        self.todo = [""]

    def path(self, folder: str) -> str:
        """The folder's path; none is reached twice, because links are not followed."""
        return self._base + folder

    def entries(self, entries: "Iterator[os.DirEntry[str]]", folder: str) -> None:
        """Collect the files, and queue the subfolders."""
        for entry in entries:
            self._add_entry(entry, f"{folder}/{entry.name}" if folder else entry.name)

    def lost(self, folder: str, error: OSError) -> None:
        """Record an unreadable folder: its content is unknown."""
        if not folder:
            raise error
        if not is_gone(error):
            self._leave_out(folder, "unreadable")
            self.is_complete = False

    def follow(self, rel: str, place: str) -> None:
        """Never called: links are left out."""

    def _add_entry(self, entry: "os.DirEntry[str]", rel: str) -> None:
        name = entry.name
        if name[0] == ".":
            if (original := in_the_cloud(name)) is not None:
                self._leave_out(rel[: -len(name)] + original, "cloud_placeholder")
            elif is_temporary(name):
                self.leftovers.append(rel)
            return
        self.is_empty = False
        if not is_harmless(name) and (reason := unsafe_name(rel)):
            self._leave_out(rel, reason)
        elif entry.is_dir(follow_symlinks=False):
            if WINDOWS and is_link(entry.stat(follow_symlinks=False)):
                self._leave_out(rel, "symlink")
            else:
                self.todo.append(rel)
        else:
            self._add_file(entry, rel)

    def _add_file(self, entry: "os.DirEntry[str]", rel: str) -> None:
        status = file_status(entry)
        if isinstance(status, str):
            self._leave_out(rel, status)
        elif status is not None:
            self.files.append(file_entry(rel, status))

    def _leave_out(self, rel: str, reason: str) -> None:
        self.unseen[speakable(rel)] = reason


def _without_root(reason: str) -> FileWalk:
    return FileWalk([], {"": reason}, is_complete=False, is_empty=True)
