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


class NoteFiles:
    """The notes of the vault as files; paths are relative to it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._root = engine.config.vault_root
        self._rules = engine.rules

    def path_of(self, name: str) -> str:
        """What a caller calls a note, as a path.

        Raises:
            SecurityViolation: it leads out of the vault.
        """
        return relative_to_root(self._root, name)

    def known(self) -> "Collection[str]":
        """The paths of all notes that the last index run saw."""
        link = Links(self._engine.database).primary()
        return Manifest(self._engine.database).known(link.link_id) if link else ()

    def is_there(self, path: str) -> bool:
        """Whether there is a file at this path that the rules admit."""
        if not self._rules.admits_file(path):
            return False
        with contextlib.suppress(OSError):  # a name may be longer than the disk allows
            return resolve(self._root, path).is_file()
        return False

    def check_folder(self, path: str, name: str) -> None:
        """Refuse a path in a folder that the rules deny, whether or not there is a file.

        Raises:
            SecurityViolation: it is in one; the message has the caller's `name` for it.
        """
        if not self._rules.admits_dir(path.rpartition("/")[0]):
            raise _denied(name)

    def real_path(self, path: str) -> str:
        """Where the note really is, which must be as readable as where it seems to be.

        Raises:
            SecurityViolation: it is outside the vault, or the rules deny it.
        """
        real = resolve(self._root, path).relative_to(self._root.resolve()).as_posix()
        if not self._rules.admits_file(real):
            raise _denied(path)
        return real

    def read(self, path: str) -> NoteFile | None:
        """A note's bytes and text; None where it cannot be read.

        Raises:
            NoteChanged: somebody keeps writing to it.
            SecurityViolation: the path leaves the vault.
        """
        file = read_note(self._root, path, self._rules.max_file_bytes)
        return file if isinstance(file, NoteFile) else None

    def load(self, path: str) -> tuple[Note, str]:
        """The note and the text of its file (a broken Canvas is a note without text).

        Raises:
            NotFound: it is gone.
            IndexerFailed: it cannot be read.
            SecurityViolation: it may not be read.
        """
        # By its real path: what was checked is what is opened.
        file = read_note(self._root, self.real_path(path), self._rules.max_file_bytes)
        if isinstance(file, NoteFile):
            return parse_note(path, file.text), file.text
        if file.reason == "missing":
            raise NotFound(f"'{path}' is gone.", "Run `obsidian-rag sync`.")
        raise IndexerFailed(f"'{path}' cannot be read ({file.reason}).", "Open it in Obsidian.")


def _denied(name: str) -> SecurityViolation:
    return SecurityViolation(
        f"'{name}' is in a folder that may not be read.",
        "Choose another note, or change indexing.deny_dirs or allow_dirs.",
    )
