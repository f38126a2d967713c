"""Change one note: compare and swap, all or nothing.

Threat: losing an edit the user made in Obsidian while we prepared ours, leaving half a note
after a crash, and planting a file where programs look for code (`.obsidian/plugins`). So the new
text is written beside the note, the note is compared once more, and only then replaced.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from obsidian_rag.errors import IndexerFailed, NoteChanged, ReadOnly, SecurityViolation
from obsidian_rag.vault.boundary import READ_FLAGS, NotANote, check_relative, folder_of, resolve
from obsidian_rag.vault.read import content_hash

_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
_NAME_IN_TEMPORARY = 40


def replace_note(root: Path, rel: str, expected_hash: str | None, data: bytes) -> None:
    """Put `data` in place of the content whose hash is `expected_hash` (None: create the note).

    Missing folders are made for a new note. A symlinked note stays a link; its target changes.

    Raises:
        NoteChanged: the note is not, or no longer, what the caller based the edit on.
        ReadOnly: the note, its folder or the disk may not be written.
        SecurityViolation: the path leaves the vault or is hidden.
        IndexerFailed: the disk is full or failed; the note is as it was.
    """
    _refuse_hidden(root, rel)
    with (
        _told_plainly(rel),
        folder_of(root, rel, create=expected_hash is None) as (folder, name),
    ):
        status = _check(name, folder, rel, expected_hash)
        temporary = _beside(name)
        try:
            _write(temporary, folder, data, status)
            _copy_attributes(name, temporary, folder, status)
            _check(name, folder, rel, expected_hash)
            if expected_hash is None:
                _move_to_free_name(temporary, name, folder, rel)
            else:
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
        _settle(folder)


def _refuse_hidden(root: Path, rel: str) -> None:
    real = resolve(root, rel).relative_to(root.resolve())
    if any(part.startswith(".") for part in (*check_relative(rel).split("/"), *real.parts)):
        raise SecurityViolation(
            f"The path {rel!r} is hidden; notes are not.", "Choose a folder without a leading dot."
        )


def _check(
    name: str, folder: int | None, rel: str, expected_hash: str | None
) -> os.stat_result | None:
    """The status of the note as expected; None when it is expected not to exist."""
    try:
        descriptor = os.open(name, READ_FLAGS, dir_fd=folder)
    except FileNotFoundError:
        if expected_hash is None:
            return None
        raise _changed(rel, "is gone") from None
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if expected_hash is None:
            raise _changed(rel, "exists already")
        if not stat.S_ISREG(status.st_mode):
            raise NotANote("not_a_file")
        if content_hash(stream.read()) != expected_hash:
            raise _changed(rel, "has been edited meanwhile")
    # Replacing needs no right to the file itself, but the user's wish is plain.
    if not status.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(errno.EACCES, "the note is write-protected")
    return status


def _beside(name: str) -> str:
    folder, plain = os.path.split(name)
    hidden = f".{plain[:_NAME_IN_TEMPORARY]}.tmp-{secrets.token_hex(4)}"
    return os.path.join(folder, hidden)  # noqa: PTH118  (a bare name must stay bare)


def _write(temporary: str, folder: int | None, data: bytes, status: os.stat_result | None) -> None:
    # 0o666 lets the umask decide for a new note; a private one is never readable in between.
    mode = 0o666 if status is None else 0o600
    descriptor = os.open(temporary, _CREATE_FLAGS, mode, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        if status is not None and hasattr(os, "fchmod"):
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, status.st_uid, status.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
        os.fsync(descriptor)


def _copy_attributes(
    name: str, temporary: str, folder: int | None, status: os.stat_result | None
) -> None:
    """Keep extended attributes (labels, ACLs) where the system has and allows them."""
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


def _move_to_free_name(temporary: str, name: str, folder: int | None, rel: str) -> None:
    """Like a rename that never overwrites: a note that appears now wins over ours."""
    try:
        if folder is None:
            os.rename(temporary, name)  # noqa: PTH104  (on Windows it refuses to overwrite)
        else:
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)  # noqa: PTH200
    except FileExistsError:
        raise _changed(rel, "exists already") from None
    except OSError as error:
        # FAT and some network disks have no hard links; _check was a moment ago.
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK):
            raise
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def _settle(folder: int | None) -> None:
    if folder is not None:
        # Some network disks cannot sync a folder; the note itself is safe by now.
        with contextlib.suppress(OSError):
            os.fsync(folder)


def _changed(rel: str, what: str) -> NoteChanged:
    return NoteChanged(f"'{rel}' {what}; nothing was written.", "Read the note again and retry.")


@contextlib.contextmanager
def _told_plainly(rel: str) -> Iterator[None]:
    try:
        yield
    except NotANote:
        raise SecurityViolation(f"'{rel}' is not a regular file.", "Choose a note.") from None
    except OSError as error:
        if error.errno in _DENIED:
            raise ReadOnly(
                f"'{rel}' may not be written ({error.strerror}).", "Check its permissions."
            ) from error
        if error.errno in _FULL:
            raise IndexerFailed(
                f"The disk is full; '{rel}' is unchanged.", "Free some space and retry."
            ) from error
        raise IndexerFailed(
            f"'{rel}' could not be written ({error.strerror}).", "Check the disk and retry."
        ) from error
