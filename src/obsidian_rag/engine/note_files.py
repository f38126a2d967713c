"""The files of the vault's notes, for the tools: found, admitted by the rules, and read.

Threat: a path leads out of the vault, into a folder that the user denied, or to a symlink into
one. Both the path as written and the place it leads to must be admitted by the rules.
"""

import contextlib
from typing import TYPE_CHECKING

from obsidian_rag.engine.engine import Engine
from obsidian_rag.errors import IndexerFailed, NotFound, SecurityViolation
from obsidian_rag.notes import Note, parse_note
from obsidian_rag.store import Links, Manifest
from obsidian_rag.vault import NoteFile, read_note, relative_to_root, resolve

if TYPE_CHECKING:
    from collections.abc import Collection


def note_path(engine: Engine, name: str) -> str:
    """What a caller calls a note, as a path relative to the vault.

    Raises:
        SecurityViolation: it leads out of the vault.
    """
    return relative_to_root(engine.config.vault_root, name)


def known_notes(engine: Engine) -> "Collection[str]":
    """The paths of all notes that the last index run saw."""
    link = Links(engine.database).primary()
    return Manifest(engine.database).known(link.link_id) if link else ()


def is_note(engine: Engine, path: str) -> bool:
    """Whether there is a file at this path that the rules admit."""
    if not engine.rules.admits_file(path):
        return False
    with contextlib.suppress(OSError):  # a name may be longer than the disk allows
        return resolve(engine.config.vault_root, path).is_file()
    return False


def real_path(engine: Engine, path: str) -> str:
    """Where the note really is, which must be as readable as where it seems to be.

    Raises:
        SecurityViolation: it is outside the vault, or in a denied folder.
    """
    root = engine.config.vault_root
    real = resolve(root, path).relative_to(root.resolve()).as_posix()
    if not engine.rules.admits_file(real):
        raise denied(path)
    return real


def denied(path: str) -> SecurityViolation:
    """The answer about a path that may not be read, whether or not there is a file."""
    return SecurityViolation(
        f"'{path}' is in a folder that may not be read.",
        "Choose another note, or change indexing.deny_dirs or allow_dirs.",
    )


def note_file(engine: Engine, path: str) -> NoteFile | None:
    """A note's file; None where it cannot be read.

    Raises:
        NoteChanged: somebody keeps writing to it.
        SecurityViolation: the path leaves the vault.
    """
    file = read_note(engine.config.vault_root, path, engine.rules.max_file_bytes)
    return file if isinstance(file, NoteFile) else None


def open_note(engine: Engine, path: str) -> tuple[Note, str]:
    """The note and the text of its file (a broken Canvas is a note without text).

    Raises:
        NotFound: it is gone.
        IndexerFailed: it cannot be read.
        SecurityViolation: it may not be read.
    """
    # By its real path: what was checked is what is opened.
    real = real_path(engine, path)
    file = read_note(engine.config.vault_root, real, engine.rules.max_file_bytes)
    if isinstance(file, NoteFile):
        return parse_note(path, file.text), file.text
    if file.reason == "missing":
        raise NotFound(f"'{path}' is gone.", "Run `obsidian-rag sync`.")
    raise IndexerFailed(f"'{path}' cannot be read ({file.reason}).", "Open it in Obsidian.")
