"""The data folder is its owner's alone, whoever made it and whatever the umask was.

Threat: the folder holds the text of private notes, the daemon's token and settings that decide what
may leave the machine. Another user of the machine could read a folder that was made with mode 755,
put a folder of their own or a link in its place where they may write above it, or put files into
one that they may write to. So rights of others are taken away from what is ours, and what is not
ours is refused.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from obsidian_rag.errors import ReadOnly, SecurityViolation

_OTHERS = 0o077
_MAY_WRITE = 0o022
_MOST_NAMED = 3
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def own_folder(folder: Path) -> None:
    """Make the folder if it is not there, and see to it that it is ours alone.

    Raises:
        SecurityViolation: it, or something in it, belongs to somebody else.
        ReadOnly: it is not there and cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except FileExistsError:
        return  # a file in its place: who opens what is in it says so
    except OSError as error:
        raise ReadOnly(
            f"The data folder {folder} cannot be made ({error.strerror}).",
            "Check the permissions of the folder above it, or set OBSIDIAN_RAG_HOME.",
        ) from error
    if not hasattr(os, "getuid"):
        return  # Windows: the folder lies in the user's profile, which has rules of its own
    found = folder.stat()
    if found.st_uid != os.getuid() or _is_foreign_link(folder):
        raise _not_ours(folder, [str(folder)])
    if found.st_mode & _OTHERS:
        if found.st_mode & _MAY_WRITE and (foreign := _foreign(folder)):
            raise _not_ours(folder, foreign)
        _take_rights(folder)
        make_private(folder)


def make_private(folder: Path) -> None:
    """Take every right of others away from the files and folders below this one."""
    if hasattr(os, "getuid"):
        for path, found in _below(folder):
            if found.st_mode & _OTHERS and found.st_uid == os.getuid():
                _take_rights(Path(path))


def open_to_others(folder: Path) -> list[str]:
    """What in the folder others have rights to, or own; nothing on Windows."""
    if not hasattr(os, "getuid") or not folder.exists():
        return []
    entries = [(str(folder), folder.stat()), *_below(folder)]
    return [
        str(Path(path).relative_to(folder))
        for path, found in entries
        if found.st_mode & _OTHERS or found.st_uid != os.getuid()
    ]


def _below(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Files and folders, no links: a link's rights are those of what it leads to."""
    waiting = [str(folder)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # gone meanwhile
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode):
                        waiting.append(entry.path)
                    if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
                        yield entry.path, found


def _foreign(folder: Path) -> list[str]:
    """What others put there, links included."""
    return [
        str(Path(where) / name)
        for where, folders, names in os.walk(folder)
        for name in (*folders, *names)
        if _owner(Path(where) / name) not in (os.getuid(), None)
    ]


def _is_foreign_link(folder: Path) -> bool:
    """Whether somebody else decides where the folder's name leads."""
    return folder.is_symlink() and _owner(folder) not in (os.getuid(), 0)


def _owner(path: Path) -> int | None:
    try:
        return path.lstat().st_uid
    except OSError:
        return None


def _take_rights(path: Path) -> None:
    # By a descriptor: what was looked at must be what is changed.
    with contextlib.suppress(OSError):
        descriptor = os.open(path.resolve() if path.is_symlink() else path, _FLAGS)
        try:
            found = os.fstat(descriptor)
            if found.st_uid == os.getuid():
                os.fchmod(descriptor, stat.S_IMODE(found.st_mode) & ~_OTHERS)
        finally:
            os.close(descriptor)


def _not_ours(folder: Path, foreign: list[str]) -> SecurityViolation:
    some = ", ".join(foreign[:_MOST_NAMED])
    return SecurityViolation(
        f"The data folder {folder} is not safe: {some} belongs to another user.",
        "Remove it or take it over with `chown`, or set OBSIDIAN_RAG_HOME to a folder of yours.",
    )
