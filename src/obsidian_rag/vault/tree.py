"""The one walk through a vault's folders, and what every walk says of a file or a name.

What is looked for differs: notes (`scan`), every file that can be synced (`walk`), folders to watch
(`folders`). Each of them is a visitor here and says what an entry means to it.
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
    """What a walk is made for; a folder is whatever the visitor knows one by."""

    def path(self, folder: F) -> str | None:
        """Where to list a folder; None if there is no need to."""

    def entries(self, entries: "Iterator[os.DirEntry[str]]", folder: F) -> None:
        """Take in what is in a folder, and add to what is to be walked."""

    def lost(self, folder: F, error: OSError) -> None:
        """Hear of a folder that cannot be listed; `is_gone` tells one that is not there."""

    def follow(self, rel: str, place: str) -> None:
        """See whether a link to a folder is to be walked; it is known by path and place."""


def walk_folders(
    visitor: Visitor[F], folders: list[F], links: list[tuple[str, str]]
) -> Iterator[None]:
    """List one folder per step: real folders first, then what only a link leads to."""
    while folders or links:
        if folders:
            list_folder(visitor, folders.pop())
            yield
        else:
            # Of several links to one folder the same one must win each time.
            links.sort(reverse=True)
            visitor.follow(*links.pop())


def list_folder(visitor: Visitor[F], folder: F) -> None:
    """List one folder."""
    path = visitor.path(folder)
    if path is None:
        return
    try:
        with os.scandir(path) as entries:
            visitor.entries(entries, folder)
    except OSError as error:
        visitor.lost(folder, error)


def is_gone(error: OSError) -> bool:
    """Whether what was to be listed is not there, as against not to be read."""
    return isinstance(error, FileNotFoundError | NotADirectoryError)


def file_status(
    entry: "os.DirEntry[str]", *, follows: bool = False, max_bytes: int | None = None
) -> os.stat_result | str | None:
    """The status of a regular file, why it is left out, or None if it is gone."""
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
    """The file of which this hidden one is what macOS leaves when it moves it to the cloud."""
    return name[1 : -len(_ICLOUD)] if name.endswith(_ICLOUD) else None


def unsafe_name(rel: str) -> str | None:
    """Why the boundary would not let this path in again when it is to be read."""
    try:
        rel.encode()
        check_relative(rel)
    except UnicodeEncodeError:
        return "not_utf8_name"
    except SecurityViolation:
        return "unsafe_name"
    return None


def speakable(rel: str) -> str:
    """A path that can be written down, whatever bytes the disk has for it."""
    return rel.encode("utf-8", "backslashreplace").decode()


def is_link(status: os.stat_result) -> bool:
    """Whether this is a symlink or what Windows has in its place."""
    is_junction = _JUNCTION is not None and getattr(status, "st_reparse_tag", 0) == _JUNCTION
    return stat.S_ISLNK(status.st_mode) or is_junction
