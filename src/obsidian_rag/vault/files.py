"""Any file of a vault, as bytes: read, create, replace, rename.

Notes and attachments alike, but nothing hidden and nothing behind a symlink: such a file would
have two paths, and whoever compares paths with a database would take one of them for deleted.
"""

import contextlib
import os
import posixpath
import stat
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from obsidian_rag.errors import IndexerFailed, NotFound, SecurityViolation
from obsidian_rag.vault.boundary import (
    NotANote,
    check_relative,
    folder_of,
    is_placeholder,
)
from obsidian_rag.vault.read import read_steadily
from obsidian_rag.vault.scan import FileEntry, file_entry
from obsidian_rag.vault.tree import is_link
from obsidian_rag.vault.walk import folded
from obsidian_rag.vault.write import (
    changed,
    check_content,
    entered,
    move_to_free_name,
    settle,
    status_of,
    swap,
    told_plainly,
)

# File systems allow 255 bytes; a temporary file's name and a number must fit as well.
_NAME_BYTES = 200


def make_root(root: Path) -> None:
    """Make the folder of a new vault, where somebody asked for one.

    Raises:
        ReadOnly, IndexerFailed: it cannot be made.
    """
    with told_plainly(str(root)):
        root.mkdir(parents=True, exist_ok=True)


def read_bytes(root: Path, rel: str) -> tuple[bytes, FileEntry]:
    """A file's bytes at a single moment, and its facts at that moment.

    Raises:
        NotFound: there is no such file.
        NoteChanged: somebody keeps writing to it.
        SecurityViolation: the path leaves the vault, or it is no regular file.
        IndexerFailed: it cannot be read.
    """
    rel = own_path(root, rel)
    try:
        return read_steadily(root, rel)
    except NotANote:
        raise SecurityViolation(
            f"'{rel}' is not a regular file.", "Choose a file whose content is on this disk."
        ) from None
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"There is no file '{rel}'.", "Look at the vault again.") from None
    except OSError as error:
        raise IndexerFailed(
            f"'{rel}' could not be read ({error.strerror}).", "Check its permissions and the disk."
        ) from error


def files_at(root: Path, paths: Iterable[str]) -> list[FileEntry] | None:
    """The files at these paths; None if one is gone or no regular file: a walk tells more."""
    found = []
    for rel in paths:
        try:
            status = os.lstat(os.path.join(root, own_path(root, rel)))  # noqa: PTH118
        except (OSError, SecurityViolation):
            return None
        if not stat.S_ISREG(status.st_mode) or is_placeholder(status):
            return None
        found.append(file_entry(rel, status))
    return found


def replace_file(
    root: Path, rel: str, expected_hash: str | None, data: bytes, mtime_ns: int | None = None
) -> FileEntry:
    """Put `data` in place of the content whose hash is `expected_hash` (None: create the file).

    The entry describes what was written, so that our own write is not taken for an edit, and an
    edit made right after it is.

    Raises:
        NoteChanged: the file is not, or no longer, what the caller thinks.
        ReadOnly: the file, its folder or the disk may not be written.
        SecurityViolation: the path leaves the vault, is hidden or runs through a link.
        IndexerFailed: the disk is full or failed; the file is as it was.
    """
    rel = own_path(root, rel)
    return file_entry(rel, swap(root, rel, expected_hash, data, mtime_ns))


def create_beside(
    root: Path, rel: str, label: str, data: bytes, mtime_ns: int | None = None
) -> FileEntry:
    """Create a file named like `rel` with `label` in parentheses, and a number if need be."""
    number = 1
    while True:
        beside = name_beside(rel, label if number == 1 else f"{label} {number}")
        # Looked up first: only a taken name asks for another one, not every refusal.
        if not os.path.lexists(os.path.join(root, check_relative(beside))):  # noqa: PTH118
            return replace_file(root, beside, None, data, mtime_ns)
        number += 1


def name_beside(rel: str, label: str) -> str:
    """The path of a file with `label` in parentheses after its name, which may be cut for that."""
    folder, name = posixpath.split(rel)
    stem, suffix = posixpath.splitext(name)
    mark = f" ({label}){suffix}"
    room = max(_NAME_BYTES - len(mark.encode()), 0)
    return posixpath.join(folder, stem.encode()[:room].decode(errors="ignore") + mark)


def rename_file(root: Path, old: str, new: str, expected_hash: str) -> FileEntry:
    """Give the file with this content another path, perhaps one that differs in case only.

    A disk that ignores case keeps the spelling of folders.

    Raises:
        NoteChanged: it is not what the caller thinks, or another file has the new path.
        ReadOnly, SecurityViolation, IndexerFailed: as for `replace_file`.
    """
    old, new = own_path(root, old), own_path(root, new)
    with entered(root, old) as source:
        status = check_content(source[1], source[0], old, expected_hash)
        assert status is not None
        with entered(root, new, create=True) as (folder, found):
            # Where a system looks the name up (Windows) it may come back in its old case.
            name = os.path.join(os.path.dirname(found), new.rpartition("/")[2])  # noqa: PTH118, PTH120
            there = status_of(name, folder)
            here, taken = as_on_disk(root, old), as_on_disk(root, new)
            if there is None:
                move_to_free_name(source, (folder, name), new)
            elif here == taken:
                _respell(root, source, (folder, name), new)
            elif os.path.samestat(there, status) and status.st_nlink > 1:
                # Two names of one file: a crash came between the halves of this rename.
                os.unlink(source[1], dir_fd=source[0])
            else:
                raise changed(new, "exists already")
            settle(folder)
        settle(source[0])
    remove_empty_folders(root, old)
    return file_entry(new, status)


def as_on_disk(root: Path, rel: str) -> str:
    """The path in the spelling of the disk, which may ignore case; in NFC, as far as it exists.

    Disks that ignore case may give a file another identity for each spelling, so only the
    names in a folder tell which file a name leads to.
    """
    place, parts = os.fspath(root), []
    for part in rel.split("/"):
        with contextlib.suppress(OSError):
            names = os.listdir(place)  # noqa: PTH208
            if part not in names:
                part = next((name for name in names if folded(name) == folded(part)), part)
        place = os.path.join(place, part)  # noqa: PTH118
        parts.append(unicodedata.normalize("NFC", part))
    return "/".join(parts)


def in_the_way(root: Path, rel: str) -> str | None:
    """What keeps a file from being at `rel`: a file above it, or a folder; None if neither."""
    parts = rel.split("/")
    place = os.fspath(root)
    with contextlib.suppress(OSError):
        for count, part in enumerate(parts, start=1):
            place = os.path.join(place, part)  # noqa: PTH118
            is_folder = stat.S_ISDIR(os.lstat(place).st_mode)
            if is_folder is (count == len(parts)):
                return "/".join(parts[:count])
    return None


def remove_empty_folders(root: Path, rel: str) -> None:
    """Remove the folders above `rel` that hold nothing at all, nearest first; never the root."""
    folder = rel.rpartition("/")[0]
    with contextlib.suppress(OSError, SecurityViolation):
        while folder:
            with folder_of(root, folder) as (above, name):
                os.rmdir(name, dir_fd=above)
            folder = folder.rpartition("/")[0]


def own_path(root: Path, rel: str) -> str:
    """The canonical form of the one path that a file has: not hidden, with no link in it.

    Raises:
        SecurityViolation: it is another one, or not acceptable at all.
    """
    canonical = check_relative(rel)
    parts = canonical.split("/")
    if any(part.startswith(".") for part in parts):
        raise SecurityViolation(
            f"The path {rel!r} is hidden.", "Choose a path without leading dots."
        )
    place = os.fspath(root)
    with contextlib.suppress(OSError):
        for part in parts:
            place = os.path.join(place, part)  # noqa: PTH118  (called often)
            if is_link(os.lstat(place)):
                raise SecurityViolation(
                    f"The path {rel!r} runs through a symlink.",
                    "Use the path of the file itself; links are not synced.",
                )
    return canonical


def _respell(
    root: Path, source: tuple[int | None, str], target: tuple[int | None, str], rel: str
) -> None:
    """Change the case of a name on a disk that ignores it."""
    wanted = unicodedata.normalize("NFC", rel).rpartition("/")[2]
    if as_on_disk(root, rel).rpartition("/")[2] == wanted:
        return
    (old_folder, old), (new_folder, new) = source, target
    os.rename(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder)
    if as_on_disk(root, rel).rpartition("/")[2] != wanted:
        raise IndexerFailed(
            f"The disk keeps the old spelling of '{rel}'.", "Rename the file by hand."
        )
