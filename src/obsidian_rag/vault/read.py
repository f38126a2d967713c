"""Read a file, whole and unmixed: the bytes of a single moment, and of a note its text.

Reading leaves no trace: modification times never change, access times only where the system
insists. What cannot be read as a note is an ordinary outcome, returned with its reason.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import xxhash

from obsidian_rag.errors import IndexerFailed, NoteChanged, SecurityViolation
from obsidian_rag.vault.boundary import NotANote, check_relative, open_inside
from obsidian_rag.vault.decode import decode, is_binary
from obsidian_rag.vault.scan import FileEntry, SkippedFile, file_entry

_ATTEMPTS = 3
_MOST_IGNORE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class NoteFile:
    """A note as read: its bytes, its text without a byte order mark, and its file's facts.

    `encoding` names what the bytes were read as; None is UTF-8.
    """

    rel_path: str
    data: bytes
    text: str
    entry: FileEntry
    encoding: str | None = None


def content_hash(data: bytes) -> str:
    """The identity of a note's content."""
    return xxhash.xxh3_128_hexdigest(data)


def read_note(root: Path, rel: str, max_bytes: int) -> NoteFile | SkippedFile:
    """Read a note, or say why it is none.

    Raises:
        SecurityViolation: the path leaves the vault.
        NoteChanged: somebody keeps writing to it.
    """
    is_linked = os.path.islink(os.path.join(root, rel))  # noqa: PTH114, PTH118  (called often)
    try:
        data, entry = read_steadily(root, rel, max_bytes, is_linked=is_linked)
    except NotANote as error:
        return SkippedFile(rel, error.reason)
    except (FileNotFoundError, NotADirectoryError):
        return SkippedFile(rel, "missing")
    except OSError:
        return SkippedFile(rel, "unreadable")
    found = decode(data)
    if found is None:
        return SkippedFile(rel, "binary" if is_binary(data) else "not_utf8")
    return NoteFile(rel, data, found.text, entry, found.encoding)


def read_steadily(
    root: Path, rel: str, max_bytes: int | None = None, *, is_linked: bool = False
) -> tuple[bytes, FileEntry]:
    """A file's bytes at a single moment, and its facts at that moment.

    Raises:
        SecurityViolation: the path leaves the vault.
        NotANote: it is not a regular file, its content is elsewhere, or it is too large.
        OSError: it is missing or may not be read.
        NoteChanged: somebody keeps writing to it.
    """
    for _ in range(_ATTEMPTS):
        with open_inside(root, rel) as stream:
            before = os.fstat(stream.fileno())
            if max_bytes is not None and before.st_size > max_bytes:
                raise NotANote("too_large")
            data = stream.read(-1 if max_bytes is None else max_bytes + 1)
            after = os.fstat(stream.fileno())
        entry = file_entry(rel, before, is_linked)
        if entry == file_entry(rel, after, is_linked) and len(data) == before.st_size:
            return data, entry
    raise NoteChanged(
        f"'{rel}' is being written to.", "Try again when the other program has finished."
    )


def read_ignore_file(root: Path, rel: str) -> str | None:
    """The text of an ignore file, which may be hidden (`.gitignore`); None if there is none.

    Raises:
        IndexerFailed: it is there, but cannot be read.
    """
    try:
        with open_inside(root, check_relative(rel)) as stream:
            data = stream.read(_MOST_IGNORE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (NotANote, SecurityViolation, OSError) as error:
        raise _unreadable(rel) from error
    if len(data) > _MOST_IGNORE_BYTES:
        raise _unreadable(rel)
    return data.decode("utf-8", "replace")


def _unreadable(rel: str) -> IndexerFailed:
    return IndexerFailed(
        f"The ignore file '{rel}' cannot be read.",
        "Make it a plain text file inside the vault that this user can read.",
    )
