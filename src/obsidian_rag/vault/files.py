"""Any file of a vault, as bytes: read, create, replace, rename.

Notes and attachments alike, but nothing hidden and nothing behind a symlink: a linked file would
have two paths, and LiveSync would take one of them for deleted.
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
from obsidian_rag.vault.rules import folded_path
from obsidian_rag.vault.walk import FileEntry, file_entry, is_link
from obsidian_rag.vault.write import (
    check_content,
    enter_folder,
    move_to_free_name,
    note_changed,
    status_of,
    swap,
    sync_folder,
    translate_errors,
)

# File systems allow 255 bytes; a temporary file's name and a number must fit as well.
_MAX_NAME_BYTES = 200


def make_root(root: Path) -> None:
    """Create the folder of a new vault.

    Raises:
        ReadOnly, IndexerFailed: it cannot be created.
    """
    with translate_errors(str(root)):
        root.mkdir(parents=True, exist_ok=True)


def read_bytes(root: Path, rel: str) -> tuple[bytes, FileEntry]:
    """A file's bytes at a single moment, and its entry at that moment.

    Raises:
        NotFound: there is no such file.
        NoteChanged: another program keeps writing to it.
        SecurityViolation: the path leaves the vault, or it is not a regular file.
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
        raise NotFound(f"There is no file '{rel}'.", "Check the path.") from None
    except OSError as error:
        raise IndexerFailed(
            f"'{rel}' could not be read ({error.strerror}).", "Check its permissions and the disk."
        ) from error


def files_at(root: Path, paths: Iterable[str]) -> list[FileEntry] | None:
    """The files at these paths; None if one is missing or not regular: then a walk is needed."""
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

    The entry describes what was written, so that our write is not taken for an edit, while an edit
    made right after it is.

    Raises:
        NoteChanged: the file does not have the expected content.
        ReadOnly: the file, its folder or the disk cannot be written to.
        SecurityViolation: the path leaves the vault, is hidden or runs through a link.
        IndexerFailed: the disk is full or failed; the file is as it was.
    """
    rel = own_path(root, rel)
    return file_entry(rel, swap(root, rel, expected_hash, data, mtime_ns))


def create_beside(
    root: Path, rel: str, label: str, data: bytes, mtime_ns: int | None = None
) -> FileEntry:
    """Create a file named like `rel` with `label` in parentheses, and a number if needed."""
    number = 1
    while True:
        beside = name_beside(rel, label if number == 1 else f"{label} {number}")
        # Checked first: only a taken name leads to the next one, not every refusal.
        if not os.path.lexists(os.path.join(root, check_relative(beside))):  # noqa: PTH118
            return replace_file(root, beside, None, data, mtime_ns)
        number += 1


def name_beside(rel: str, label: str) -> str:
    """The path with `label` in parentheses after the name, which is shortened if needed."""
    folder, name = posixpath.split(rel)
    stem, suffix = posixpath.splitext(name)
    mark = f" ({label}){suffix}"
    room = max(_MAX_NAME_BYTES - len(mark.encode()), 0)
    return posixpath.join(folder, stem.encode()[:room].decode(errors="ignore") + mark)


def rename_file(root: Path, old: str, new: str, expected_hash: str) -> FileEntry:
    """Rename the file with this content; the new path may differ in case only.

    A disk that ignores case keeps the spelling of folders.

    Raises:
        NoteChanged: it does not have the expected content, or the new path is taken.
        ReadOnly, SecurityViolation, IndexerFailed: as for `replace_file`.
    """
    old, new = own_path(root, old), own_path(root, new)
    with enter_folder(root, old) as source:
        status = check_content(source[1], source[0], old, expected_hash)
        assert status is not None
        with enter_folder(root, new, create=True) as (folder, found):
            # On Windows the resolved name may come back in its old case.
            name = os.path.join(os.path.dirname(found), new.rpartition("/")[2])  # noqa: PTH118, PTH120
            there = status_of(name, folder)
            here, taken = as_on_disk(root, old), as_on_disk(root, new)
            if there is None:
                move_to_free_name(source, (folder, name), new)
            elif here == taken:
                _rename_case(root, source, (folder, name), new)
            elif os.path.samestat(there, status) and status.st_nlink > 1:
                # Two names of one file: a crash interrupted this rename.
                os.unlink(source[1], dir_fd=source[0])
            else:
                raise note_changed(new, "exists already")
            sync_folder(folder)
        sync_folder(source[0])
    remove_empty_folders(root, old)
    return file_entry(new, status)


def as_on_disk(root: Path, rel: str) -> str:
    """The path as the disk spells it, in NFC; parts that do not exist stay as they are.

    A disk that ignores case may report another file id for each spelling, so only listing the
    folder shows which file a name belongs to.
    """
    place, parts = os.fspath(root), []
    for part in rel.split("/"):
        with contextlib.suppress(OSError):
            names = os.listdir(place)  # noqa: PTH208
            if part not in names:
                part = next(
                    (name for name in names if folded_path(name) == folded_path(part)), part
                )
        place = os.path.join(place, part)  # noqa: PTH118
        parts.append(unicodedata.normalize("NFC", part))
    return "/".join(parts)


def find_obstacle(root: Path, rel: str) -> str | None:
    """What blocks a file at `rel`: a file above it, or a folder there; None if neither."""
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
    """Remove the folders above `rel` that are empty, nearest first; never the root."""
    folder = rel.rpartition("/")[0]
    with contextlib.suppress(OSError, SecurityViolation):
        while folder:
            with folder_of(root, folder) as (above, name):
                os.rmdir(name, dir_fd=above)
            folder = folder.rpartition("/")[0]


def own_path(root: Path, rel: str) -> str:
    """The canonical form of a file's own path: not hidden, without links.

    Raises:
        SecurityViolation: the path is hidden, runs through a link, or is not acceptable.
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


def _rename_case(
    root: Path, source: tuple[int | None, str], target: tuple[int | None, str], rel: str
) -> None:
    """Change only the case of a name, on a disk that ignores case."""
    wanted = unicodedata.normalize("NFC", rel).rpartition("/")[2]
    if as_on_disk(root, rel).rpartition("/")[2] == wanted:
        return
    (old_folder, old), (new_folder, new) = source, target
    os.rename(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder)
    if as_on_disk(root, rel).rpartition("/")[2] != wanted:
        raise IndexerFailed(
            f"The disk keeps the old spelling of '{rel}'.", "Rename the file by hand."
        )
