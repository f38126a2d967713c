"""Keeps the data folder private to its owner, whoever created it and whatever the umask was.

Threat: the folder holds the text of private notes, the daemon's token and settings that decide what
may leave the machine. Another user of the machine could read a folder created with mode 755,
replace it by a folder of their own or a link if they can write to its parent, or put files into one
they can write to. So other users' permissions on our files are removed, and foreign files are
refused.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from obsidian_rag.errors import ReadOnly, SecurityViolation

_OTHERS_MASK = 0o077
_OTHERS_WRITE_MASK = 0o022
_MAX_NAMED = 3
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def own_folder(folder: Path) -> None:
    """Create the folder if needed, and make it private.

    Raises:
        SecurityViolation: it, or something in it, belongs to somebody else.
        ReadOnly: it does not exist and cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except FileExistsError:
        return  # a file is in the way; opening the database will report it
    except OSError as error:
        raise ReadOnly(
            f"The data folder {folder} cannot be made ({error.strerror}).",
            "Check the permissions of the folder above it, or set OBSIDIAN_RAG_HOME.",
        ) from error
    if not hasattr(os, "getuid"):
        return  # Windows: the folder is in the user's profile, which has its own permissions
    found = folder.stat()
    if found.st_uid != os.getuid() or _is_foreign_link(folder):
        raise _not_ours_error(folder, [str(folder)])
    if found.st_mode & _OTHERS_MASK:
        if found.st_mode & _OTHERS_WRITE_MASK and (foreign := _find_foreign(folder)):
            raise _not_ours_error(folder, foreign)
        _make_owner_only(folder)
        make_private(folder)


def make_private(folder: Path) -> None:
    """Remove other users' permissions from all files and folders below this one."""
    if hasattr(os, "getuid"):
        for path, found in _walk(folder):
            if found.st_mode & _OTHERS_MASK and found.st_uid == os.getuid():
                _make_owner_only(Path(path))


def open_to_others(folder: Path) -> list[str]:
    """Paths that other users can access or own; empty on Windows."""
    if not hasattr(os, "getuid") or not folder.exists():
        return []
    entries = [(str(folder), folder.stat()), *_walk(folder)]
    return [
        str(Path(path).relative_to(folder))
        for path, found in entries
        if found.st_mode & _OTHERS_MASK or found.st_uid != os.getuid()
    ]


def _walk(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Files and folders, not links: a link has the permissions of its target."""
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


def _find_foreign(folder: Path) -> list[str]:
    """Files and folders of other users, links included."""
    return [
        str(Path(where) / name)
        for where, folders, names in os.walk(folder)
        for name in (*folders, *names)
        if _owner(Path(where) / name) not in (os.getuid(), None)
    ]


def _is_foreign_link(folder: Path) -> bool:
    """Whether the folder is a link that another user controls."""
    return folder.is_symlink() and _owner(folder) not in (os.getuid(), 0)


def _owner(path: Path) -> int | None:
    try:
        return path.lstat().st_uid
    except OSError:
        return None


def _make_owner_only(path: Path) -> None:
    # By a descriptor: change exactly the file that was checked.
    with contextlib.suppress(OSError):
        descriptor = os.open(path.resolve() if path.is_symlink() else path, _FLAGS)
        try:
            found = os.fstat(descriptor)
            if found.st_uid == os.getuid():
                os.fchmod(descriptor, stat.S_IMODE(found.st_mode) & ~_OTHERS_MASK)
        finally:
            os.close(descriptor)


def _not_ours_error(folder: Path, foreign: list[str]) -> SecurityViolation:
    some = ", ".join(foreign[:_MAX_NAMED])
    return SecurityViolation(
        f"The data folder {folder} is not safe: {some} belongs to another user.",
        "Remove it or take it over with `chown`, or set OBSIDIAN_RAG_HOME to a folder of yours.",
        is_about_call=False,
    )
