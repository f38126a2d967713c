"""The files of the vault's notes, for the tools: found, admitted by the rules, and read.

Threat: a path leads out of the vault, into a folder that the user denied, or to a symlink into
one. Both the path as written and the place it leads to must be admitted by the rules. Outside of
the scope of whoever asks there is no file, whatever stands on the disk.
"""

import contextlib
import posixpath
from typing import TYPE_CHECKING

from obsidian_rag.engine.engine import Engine
from obsidian_rag.errors import IndexerFailed, NotFound, SecurityViolation
from obsidian_rag.notes import EVERYTHING, Note, Scope, parse_note
from obsidian_rag.store import Manifest
from obsidian_rag.vault import NoteFile, read_bytes, walk_files

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


class NoteFiles:
    """The notes of one vault as files; paths are relative to it."""

    def __init__(self, engine: Engine, vault: str | None = None, scope: Scope = EVERYTHING) -> None:
        """`vault` is a name or link id; without one, it is the primary vault.

        Raises:
            NotFound: there is no such vault.
        """
        self._engine = engine
        self._vault = engine.vaults.one(vault, scope)
        self._scope = scope
        self._rules = self._vault.rules

    def path_of(self, name: str) -> str:
        """What a caller calls a note, as a path.

        Raises:
            SecurityViolation: it leads out of the vault.
        """
        return self._vault.relative(name)

    def known(self) -> "Collection[str]":
        """The paths of all notes that the last index run saw."""
        known = Manifest(self._engine.database).known(self._vault.link_id)
        if not self._scope.is_limited:
            return known
        return [path for path in known if self._scope.admits(self._vault.link_id, path)]

    def is_there(self, path: str) -> bool:
        """Whether there is a file at this path that the rules admit."""
        return self._is_in_scope(path) and self._vault.has_note(path)

    def _is_in_scope(self, path: str) -> bool:
        """Whether the path as written, and where it leads to, are in scope."""
        if not self._scope.is_limited:
            return True
        with contextlib.suppress(OSError, SecurityViolation, ValueError):
            paths = (path, self._vault.real_path(path))
            return all(self._scope.admits(self._vault.link_id, one) for one in paths)
        return False

    def check_folder(self, path: str, name: str) -> None:
        """Refuse a path in a folder that the rules deny, whether or not there is a file.

        Raises:
            SecurityViolation: it is in one; the message has the caller's `name` for it.
        """
        # To whom the folder is not there, it is not denied either.
        if self._scope.is_limited:
            return
        if not self._rules.admits_dir(path.rpartition("/")[0]):
            raise _denied(name)

    def real_path(self, path: str) -> str:
        """Where the note really is, which must be as readable as where it seems to be.

        Raises:
            SecurityViolation: it is outside the vault, or the rules deny it.
        """
        real = self._vault.real_path(path)
        if not self._rules.admits_file(real):
            raise _denied(path)
        return real

    def read(self, path: str) -> NoteFile | None:
        """A note's bytes and text; None where it cannot be read.

        Raises:
            NoteChanged: somebody keeps writing to it.
            SecurityViolation: the path leaves the vault.
        """
        file = self._vault.read(path)
        return file if isinstance(file, NoteFile) else None

    def attachment(self, name: str, source: str) -> tuple[str, bytes]:
        """A file that the note at `source` shows: its path and bytes.

        As Obsidian finds it: from the vault's folder, from the note's own, or anywhere by its name.

        Raises:
            NotFound: there is none that may be read.
            SecurityViolation: the path leaves the vault, or the rules deny its folder.
        """
        for path in self._attachment_paths(name, source):
            with contextlib.suppress(NotFound):
                self.check_folder(path, path)
                real = self._vault.real_path(path)
                self.check_folder(real, path)
                return path, read_bytes(self._vault.root, real)[0]
        raise NotFound(f"No file '{name}'.", "It may have been moved or renamed.")

    def _attachment_paths(self, name: str, source: str) -> "Iterator[str]":
        here = source.rpartition("/")[0]
        for path in dict.fromkeys((name, posixpath.normpath(f"{here}/{name}") if here else name)):
            if not path.startswith(("/", "../")):
                yield self.path_of(path)
        end = "/" + name.casefold()
        found = (entry.rel_path for entry in walk_files(self._vault.root).files)
        yield from sorted((p for p in found if ("/" + p.casefold()).endswith(end)), key=len)

    def load(self, path: str) -> tuple[Note, str]:
        """The note and the text of its file (a broken Canvas is a note without text).

        Raises:
            NotFound: it is gone.
            IndexerFailed: it cannot be read.
            SecurityViolation: it may not be read.
        """
        # By its real path: what was checked is what is opened.
        file = self._vault.read(self.real_path(path))
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
