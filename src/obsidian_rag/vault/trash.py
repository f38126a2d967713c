"""Move a file to the trash outside the vault, or restore it.

Threat: a deletion that arrives over the network by mistake, or a crash in the middle of one. So
the copy is on the disk before the file is removed.
"""

import contextlib
import os
from pathlib import Path

from obsidian_rag.errors import IndexerFailed, NotFound, SecurityViolation
from obsidian_rag.vault.boundary import is_within
from obsidian_rag.vault.files import (
    create_beside,
    own_path,
    read_bytes,
    remove_empty_folders,
    replace_file,
)
from obsidian_rag.vault.read import content_hash
from obsidian_rag.vault.walk import FileEntry
from obsidian_rag.vault.write import (
    CREATE_FLAGS,
    check_content,
    enter_folder,
    move_to_free_name,
    note_changed,
    sync_folder,
    temporary_path,
    translate_errors,
)

_RESTORED = "restored"


def remove_file(root: Path, rel: str, expected_hash: str, keep_at: Path) -> None:
    """Move the file with this content to `keep_at`, then remove folders that became empty.

    Called again after a crash, with the same `keep_at`, it finishes the move.

    Raises:
        NoteChanged: the file does not have the expected content.
        ReadOnly: the file or its folder cannot be changed.
        SecurityViolation: the path leaves the vault, or `keep_at` is inside it.
        IndexerFailed: the disk is full or failed, or another file is at `keep_at`.
    """
    _refuse_inside(root, keep_at)
    rel = own_path(root, rel)
    data, entry = _read_expected(root, rel, expected_hash)
    with translate_errors(str(keep_at)):
        _keep(keep_at, data, entry.mtime_ns)
    with enter_folder(root, rel) as (folder, name):
        check_content(name, folder, rel, expected_hash)
        os.unlink(name, dir_fd=folder)
        sync_folder(folder)
    remove_empty_folders(root, rel)


def keep_copy(root: Path, data: bytes, mtime_ns: int, keep_at: Path) -> None:
    """Put a copy of some content into the trash, without changing the vault.

    Raises:
        SecurityViolation: `keep_at` is in the vault.
        IndexerFailed: the disk is full or failed, or another file is at `keep_at`.
    """
    _refuse_inside(root, keep_at)
    with translate_errors(str(keep_at)):
        _keep(keep_at, data, mtime_ns)


def restore_file(root: Path, rel: str, kept_at: Path) -> FileEntry:
    """Restore a kept file at `rel`, or at a free name beside it; the copy at `kept_at` stays.

    It gets the current time: with its old time, other devices could take it for the file that they
    deleted.

    Raises:
        NotFound: it is no longer in the trash.
        ReadOnly, SecurityViolation, IndexerFailed: as for `replace_file`.
    """
    try:
        data = kept_at.read_bytes()
    except OSError as error:
        raise NotFound(
            f"'{rel}' is no longer in the trash ({error.strerror}).",
            "See what can be restored with `obsidian-rag livesync restore`.",
        ) from error
    if not os.path.lexists(root / own_path(root, rel)):
        return replace_file(root, rel, None, data)
    with contextlib.suppress(NotFound, SecurityViolation, IndexerFailed):
        there, entry = read_bytes(root, rel)
        if there == data:
            return entry
    return create_beside(root, rel, _RESTORED, data)


def discard_kept(kept_at: Path) -> None:
    """Delete a file from the trash, and its folder if that is then empty."""
    with translate_errors(str(kept_at)):
        kept_at.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        kept_at.parent.rmdir()


def _refuse_inside(root: Path, keep_at: Path) -> None:
    if is_within(os.path.realpath(root), os.path.realpath(keep_at)):
        raise SecurityViolation(
            f"The trash {keep_at} is inside the vault.", "Keep the data folder outside the vault."
        )


def _read_expected(root: Path, rel: str, expected_hash: str) -> tuple[bytes, FileEntry]:
    try:
        data, entry = read_bytes(root, rel)
    except NotFound:
        raise note_changed(rel, "is gone") from None
    if content_hash(data) != expected_hash:
        raise note_changed(rel, "has been edited meanwhile")
    return data, entry


def _keep(keep_at: Path, data: bytes, mtime_ns: int) -> None:
    """Write a private copy atomically: after a power cut it is complete or missing."""
    if keep_at.exists():
        if keep_at.read_bytes() != data:
            raise IndexerFailed(
                f"Another file is at {keep_at}; nothing was removed.", "Choose another name."
            )
    else:
        _make_private(keep_at.parent)
        temporary = temporary_path(str(keep_at))
        try:
            _write(temporary, data)
            os.utime(temporary, ns=(mtime_ns, mtime_ns))
            if Path(temporary).read_bytes() != data:
                raise IndexerFailed(
                    f"{keep_at} was not written correctly; nothing was removed.", "Check the disk."
                )
            move_to_free_name((None, temporary), (None, str(keep_at)), str(keep_at))
        finally:
            Path(temporary).unlink(missing_ok=True)
    _sync_folder(keep_at.parent)


def _make_private(folder: Path) -> None:
    missing = [above for above in (folder, *folder.parents) if not above.exists()]
    for above in reversed(missing):
        above.mkdir(mode=0o700, exist_ok=True)
        _sync_folder(above.parent)


def _write(temporary: str, data: bytes) -> None:
    descriptor = os.open(temporary, CREATE_FLAGS, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(descriptor)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # Windows opens no folders, and syncs their names itself
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        sync_folder(descriptor)
    finally:
        os.close(descriptor)
