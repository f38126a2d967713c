"""Change one file of a vault: compare and swap, all or nothing.

Threat: losing an edit the user made in Obsidian while we prepared ours, leaving half a note
after a crash, and planting a file where programs look for code (`.obsidian/plugins`). So the new
content is written beside the file, the file is compared again, and only then replaced.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from obsidian_rag.errors import NoteChanged, SecurityViolation, disk_fault
from obsidian_rag.vault.boundary import (
    READ_FLAGS,
    NotANote,
    check_relative,
    folder_of,
    mode_in_folder,
    resolve,
)
from obsidian_rag.vault.read import content_hash
from obsidian_rag.vault.temporary import temporary_name

_WINDOWS = os.name == "nt"
CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
# Some disks accept times up to the year 2400; their nanoseconds overflow an SQLite integer.
_LAST_MTIME_NS = 2**63 - 1


def replace_note(root: Path, rel: str, expected_hash: str | None, data: bytes) -> None:
    """Put `data` in place of the content whose hash is `expected_hash` (None: create the note).

    Missing folders are created for a new note. A symlinked note stays a link; its target changes.

    Raises:
        NoteChanged: the note is not the one that the edit was based on.
        ReadOnly: the note, its folder or the disk cannot be written to.
        SecurityViolation: the path leaves the vault or is hidden.
        IndexerFailed: the disk is full or failed; the note is as it was.
    """
    swap(root, rel, expected_hash, data)


def swap(
    root: Path, rel: str, expected_hash: str | None, data: bytes, mtime_ns: int | None = None
) -> os.stat_result:
    """Like `replace_note`, for any file; returns the status of the new file.

    The status is that of our own write, so that a later edit is not taken for ours.
    """
    with enter_folder(root, rel, create=expected_hash is None) as (folder, name):
        status = check_content(name, folder, rel, expected_hash)
        temporary = temporary_path(name)
        try:
            _write(temporary, folder, data, status)
            _copy_attributes(name, temporary, folder, status)
            written = _set_mtime(temporary, folder, mtime_ns)
            check_content(name, folder, rel, expected_hash)
            if expected_hash is None:
                move_to_free_name((folder, temporary), (folder, name), rel)
            else:
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
        sync_folder(folder)
        return written


@contextlib.contextmanager
def enter_folder(root: Path, rel: str, *, create: bool = False) -> Iterator[tuple[int | None, str]]:
    """Like `folder_of`, for a change: refuses hidden paths and raises our errors."""
    _refuse_hidden(root, rel)
    with translate_errors(rel), folder_of(root, rel, create=create) as place:
        yield place


def _refuse_hidden(root: Path, rel: str) -> None:
    real = resolve(root, rel).relative_to(root.resolve())
    if any(part.startswith(".") for part in (*check_relative(rel).split("/"), *real.parts)):
        raise SecurityViolation(
            f"The path {rel!r} is hidden.", "Choose a path without leading dots."
        )


def check_content(
    name: str, folder: int | None, rel: str, expected_hash: str | None
) -> os.stat_result | None:
    """Check that the file has the expected content; its status, or None for a new file."""
    try:
        descriptor = os.open(name, READ_FLAGS, dir_fd=folder)
    except FileNotFoundError:
        if expected_hash is None:
            return None
        raise note_changed(rel, "is gone") from None
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if expected_hash is None:
            raise note_changed(rel, "exists already")
        if not stat.S_ISREG(status.st_mode):
            raise NotANote("not_a_file")
        if content_hash(stream.read()) != expected_hash:
            raise note_changed(rel, "has been edited meanwhile")
    # The file may have been edited while it was read.
    if not _is_same(status, status_of(name, folder)):
        raise note_changed(rel, "has been edited meanwhile")
    # Replacing does not need write access to the file itself, but the user has protected it.
    if not status.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(errno.EACCES, "the file is write-protected")
    return status


def _is_same(one: os.stat_result, other: os.stat_result | None) -> bool:
    if other is None or not os.path.samestat(one, other):
        return False
    return (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)


def status_of(name: str, folder: int | None) -> os.stat_result | None:
    """The status of this name, without following a link; None if it does not exist."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def temporary_path(name: str) -> str:
    """A free hidden name in the same folder."""
    folder, plain = os.path.split(name)
    return os.path.join(folder, temporary_name(plain))  # noqa: PTH118  (a bare name must stay bare)


def _write(temporary: str, folder: int | None, data: bytes, status: os.stat_result | None) -> None:
    # 0600 at first, so that a private note is never readable by others.
    descriptor = os.open(temporary, CREATE_FLAGS, 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        if status is None and hasattr(os, "fchmod"):
            above = os.fstat(folder) if folder is not None else Path(temporary).parent.stat()
            os.fchmod(descriptor, mode_in_folder(above, 0o666))
        elif status is not None and hasattr(os, "fchmod"):
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, status.st_uid, status.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
        os.fsync(descriptor)


def _copy_attributes(
    name: str, temporary: str, folder: int | None, status: os.stat_result | None
) -> None:
    """Keep extended attributes (labels, ACLs) where the system supports them."""
    if status is None or folder is None or not hasattr(os, "listxattr"):
        return
    with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
        source = os.open(name, READ_FLAGS, dir_fd=folder)
        opened.callback(os.close, source)
        target = os.open(temporary, READ_FLAGS, dir_fd=folder)
        opened.callback(os.close, target)
        for attribute in os.listxattr(source):
            with contextlib.suppress(OSError):
                os.setxattr(target, attribute, os.getxattr(source, attribute))


def _set_mtime(temporary: str, folder: int | None, mtime_ns: int | None) -> os.stat_result:
    """Set the modification time, if the system can store it; returns the new status."""
    if mtime_ns is not None and abs(mtime_ns) <= _LAST_MTIME_NS:
        with contextlib.suppress(OverflowError, OSError):
            os.utime(temporary, ns=(mtime_ns, mtime_ns), dir_fd=folder)
    return os.stat(temporary, dir_fd=folder, follow_symlinks=False)


def move_to_free_name(
    source: tuple[int | None, str], target: tuple[int | None, str], rel: str
) -> None:
    """Rename `source` to `target`, both as (folder, name), without ever overwriting.

    Raises:
        NoteChanged: the name is taken; `rel` is its path for the message.
    """
    (old_folder, old), (new_folder, new) = source, target
    try:
        if _WINDOWS:
            os.rename(old, new)  # noqa: PTH104  (on Windows it refuses to overwrite)
            return
        os.link(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder)  # noqa: PTH200
    except FileExistsError:
        raise note_changed(rel, "exists already") from None
    except OSError as error:
        # FAT and some network disks have no hard links; the caller has just checked the name.
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK):
            raise
        os.replace(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder)
        return
    # Another program may have put a file under the old name meanwhile: keep that one.
    moved, left = status_of(new, new_folder), status_of(old, old_folder)
    if moved and left and os.path.samestat(moved, left):
        os.unlink(old, dir_fd=old_folder)


def sync_folder(folder: int | None) -> None:
    """Sync a folder, so that its names survive a power cut."""
    if folder is not None:
        # Some network disks cannot sync a folder; the file itself is synced already.
        with contextlib.suppress(OSError):
            os.fsync(folder)


def note_changed(rel: str, what: str) -> NoteChanged:
    """The error if a file is not the one that a change was based on."""
    return NoteChanged(f"'{rel}' {what}; nothing was written.", "Read the note again and retry.")


@contextlib.contextmanager
def translate_errors(rel: str) -> Iterator[None]:
    """Translate OSErrors of writing into our errors."""
    try:
        yield
    except NotANote:
        raise SecurityViolation(f"'{rel}' is not a regular file.", "Choose a note.") from None
    except FileNotFoundError:
        # Its folder: a missing file was found before.
        raise note_changed(rel, "is gone") from None
    except OSError as error:
        raise disk_fault(error, f"'{rel}'", "retry: it is unchanged") from error
