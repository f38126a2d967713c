"""Walk a vault for every file that can be synced, without opening one.

What is there but cannot be synced (a symlink, a folder that may not be read, a file that lives
in the cloud) is named, so that nobody takes it, or what it may hold, for deleted.
"""

import os
import stat
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from obsidian_rag.errors import SecurityViolation
from obsidian_rag.vault.boundary import check_relative, is_harmless, is_placeholder
from obsidian_rag.vault.scan import FileEntry, file_entry
from obsidian_rag.vault.temporary import is_temporary

_WINDOWS = os.name == "nt"
_ICLOUD = ".icloud"
_JUNCTION = getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", None)


@dataclass(frozen=True, slots=True)
class FileWalk:
    """What a walk saw. A known file that is neither in `files` nor hidden by `unseen` is gone."""

    files: list[FileEntry]
    # Path of a file or folder that is there but was left out, and why; "" is the root itself.
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
        """Whether this file may be there although it was not seen."""
        if not self.has_root:
            return True
        # Folded: the disk may spell a folder in another case than the database does.
        place = folded(rel)
        while place and place not in self._hiding:
            place = place.rpartition("/")[0]
        return bool(place)


def walk_files(root: Path) -> FileWalk:
    """Every regular file below `root` that is not hidden; a missing root is a finding too."""
    try:
        before = root.stat()
        walk = _Walk(os.path.realpath(root))
        walk.go()
        after = root.stat()
    except (FileNotFoundError, NotADirectoryError):
        return _without_root("missing")
    except OSError:
        return _without_root("unreadable")
    # A disk pulled out during the walk looks like a vault without files.
    if not os.path.samestat(before, after):
        return _without_root("replaced")
    hiding = frozenset(map(folded, walk.unseen))
    return FileWalk(
        walk.files, walk.unseen, walk.is_complete, walk.is_empty, tuple(walk.leftovers), hiding
    )


def is_link(status: os.stat_result) -> bool:
    """Whether this is a symlink or what Windows has in its place."""
    is_junction = _JUNCTION is not None and getattr(status, "st_reparse_tag", 0) == _JUNCTION
    return stat.S_ISLNK(status.st_mode) or is_junction


def folded(rel: str) -> str:
    """What two spellings of one path have in common on a disk that ignores case."""
    return unicodedata.normalize("NFC", rel).casefold()


class _Walk:
    """The state of one walk."""

    def __init__(self, real_root: str) -> None:
        self.files: list[FileEntry] = []
        self.unseen: dict[str, str] = {}
        self.is_complete = True
        self.is_empty = True
        self.leftovers: list[str] = []
        self._base = real_root.rstrip(os.sep) + "/"
        self._todo = [""]

    def go(self) -> None:
        while self._todo:
            rel = self._todo.pop()
            try:
                with os.scandir(self._base + rel) as entries:
                    for entry in entries:
                        self._entry(entry, f"{rel}/{entry.name}" if rel else entry.name)
            except (FileNotFoundError, NotADirectoryError):
                if not rel:
                    raise
            except OSError:
                if not rel:
                    raise
                self._leave_out(rel, "unreadable")
                self.is_complete = False

    def _entry(self, entry: "os.DirEntry[str]", rel: str) -> None:
        name = entry.name
        if name[0] == ".":
            # What macOS leaves of a file whose content it has moved to the cloud.
            if name.endswith(_ICLOUD):
                original = name[1 : -len(_ICLOUD)]
                self._leave_out(rel[: -len(name)] + original, "cloud_placeholder")
            elif is_temporary(name):
                self.leftovers.append(rel)
            return
        self.is_empty = False
        if not is_harmless(name) and (reason := _unsafe(rel)):
            self._leave_out(rel, reason)
        elif entry.is_dir(follow_symlinks=False):
            if _WINDOWS and is_link(entry.stat(follow_symlinks=False)):
                self._leave_out(rel, "symlink")
            else:
                self._todo.append(rel)
        else:
            self._file(entry, rel)

    def _file(self, entry: "os.DirEntry[str]", rel: str) -> None:
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return
        except OSError:
            self._leave_out(rel, "unreadable")
            return
        if stat.S_ISLNK(status.st_mode):
            self._leave_out(rel, "symlink")
        elif not stat.S_ISREG(status.st_mode):
            self._leave_out(rel, "not_a_file")
        elif is_placeholder(status):
            self._leave_out(rel, "cloud_placeholder")
        else:
            self.files.append(file_entry(rel, status))

    def _leave_out(self, rel: str, reason: str) -> None:
        self.unseen[rel.encode("utf-8", "backslashreplace").decode()] = reason


def _without_root(reason: str) -> FileWalk:
    return FileWalk([], {"": reason}, is_complete=False, is_empty=True)


def _unsafe(rel: str) -> str | None:
    try:
        rel.encode()
        check_relative(rel)
    except UnicodeEncodeError:
        return "not_utf8_name"
    except SecurityViolation:
        return "unsafe_name"
    return None
