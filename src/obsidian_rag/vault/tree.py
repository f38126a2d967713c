"""The folder walk that all others share, and the checks of a file or a name that they need.

There are three visitors: for notes (`scan`), for every file that can be synced (`walk`), and for
folders to watch (`fs_events`). Each decides what to do with an entry.
"""

import os
import stat
from collections.abc import Iterator
from typing import Protocol, TypeVar

from obsidian_rag.errors import SecurityViolation
from obsidian_rag.vault.boundary import check_relative, is_placeholder

WINDOWS = os.name == "nt"
_ICLOUD = ".icloud"
_JUNCTION = getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", None)
F = TypeVar("F", contravariant=True)


class Visitor(Protocol[F]):
    """Receives what a walk finds; each visitor chooses its own type for a folder."""

    def path(self, folder: F) -> str | None:
        """The path at which to list a folder; None to skip it."""

    def entries(self, entries: "Iterator[os.DirEntry[str]]", folder: F) -> None:
        """Process the entries of a folder, and queue the folders to walk next."""

    def lost(self, folder: F, error: OSError) -> None:
        """Handle a folder that cannot be listed; `is_gone` detects a missing one."""

    def follow(self, rel: str, place: str) -> None:
        """Decide whether to walk a link to a folder, given by its path and its place."""


def walk_folders(
    visitor: Visitor[F], folders: list[F], links: list[tuple[str, str]]
) -> Iterator[None]:
    """List one folder per step: real folders first, then those reached only by a link."""
    while folders or links:
        if folders:
            list_folder(visitor, folders.pop())
            yield
        else:
            # Sorted, so that of several links to one folder always the same one wins.
            links.sort(reverse=True)
            visitor.follow(*links.pop())


def list_folder(visitor: Visitor[F], folder: F) -> None:
    """Pass the entries of one folder to the visitor."""
    path = visitor.path(folder)
    if path is None:
        return
    try:
        with os.scandir(path) as entries:
            visitor.entries(entries, folder)
    except OSError as error:
        visitor.lost(folder, error)


def is_gone(error: OSError) -> bool:
    """Whether the folder is missing, rather than unreadable."""
    return isinstance(error, FileNotFoundError | NotADirectoryError)


def file_status(
    entry: "os.DirEntry[str]", *, follows: bool = False, max_bytes: int | None = None
) -> os.stat_result | str | None:
    """The status of a regular file, the reason why it is skipped, or None if it is gone."""
    try:
        status = entry.stat(follow_symlinks=follows)
    except FileNotFoundError:
        return None
    except OSError:
        return "unreadable"
    if stat.S_ISLNK(status.st_mode):
        return "symlink"
    if not stat.S_ISREG(status.st_mode):
        return "not_a_file"
    if max_bytes is not None and status.st_size > max_bytes:
        return "too_large"
    return "cloud_placeholder" if is_placeholder(status) else status


def in_the_cloud(name: str) -> str | None:
    """The original name, if this is the placeholder of a file that macOS moved to iCloud."""
    return name[1 : -len(_ICLOUD)] if name.endswith(_ICLOUD) else None


def unsafe_name(rel: str) -> str | None:
    """Why the boundary would refuse to read this path; None if it would not."""
    try:
        rel.encode()
        check_relative(rel)
    except UnicodeEncodeError:
        return "not_utf8_name"
    except SecurityViolation:
        return "unsafe_name"
    return None


def speakable(rel: str) -> str:
    """A path with bytes that are not UTF-8 escaped, so that it can be printed and stored."""
    return rel.encode("utf-8", "backslashreplace").decode()


def is_link(status: os.stat_result) -> bool:
    """Whether this is a symlink or a Windows junction."""
    is_junction = _JUNCTION is not None and getattr(status, "st_reparse_tag", 0) == _JUNCTION
    return stat.S_ISLNK(status.st_mode) or is_junction
