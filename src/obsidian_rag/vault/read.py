"""Read one note, whole and unmixed: the bytes of a single moment, and their text.

Reading leaves no trace: modification times never change, access times only where the system
insists. What cannot be read as a note is an ordinary outcome, returned with its reason.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import xxhash

from obsidian_rag.errors import NoteChanged
from obsidian_rag.vault.boundary import NotANote, open_inside
from obsidian_rag.vault.decode import decode, is_binary
from obsidian_rag.vault.scan import FileEntry, SkippedFile, file_entry

_ATTEMPTS = 3


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
    for _ in range(_ATTEMPTS):
        try:
            found = _read_once(root, rel, max_bytes)
        except NotANote as error:
            return SkippedFile(rel, error.reason)
        except (FileNotFoundError, NotADirectoryError):
            return SkippedFile(rel, "missing")
        except OSError:
            return SkippedFile(rel, "unreadable")
        if found is not None:
            return found
    raise NoteChanged(
        f"'{rel}' is being written to.", "Try again when the other program has finished."
    )


def _read_once(root: Path, rel: str, max_bytes: int) -> NoteFile | SkippedFile | None:
    """One attempt; None if the note changed under our eyes."""
    with open_inside(root, rel) as stream:
        before = os.fstat(stream.fileno())
        if before.st_size > max_bytes:
            return SkippedFile(rel, "too_large")
        data = stream.read(max_bytes + 1)
        after = os.fstat(stream.fileno())
    is_linked = os.path.islink(os.path.join(root, rel))  # noqa: PTH114, PTH118  (called often)
    entry = file_entry(rel, before, is_linked)
    if entry != file_entry(rel, after, is_linked) or len(data) != before.st_size:
        return None
    found = decode(data)
    if found is None:
        return SkippedFile(rel, "binary" if is_binary(data) else "not_utf8")
    return NoteFile(rel, data, found.text, entry, found.encoding)
