"""The notes of a vault for the tools: listed from the index, and their files found and read.

Threat: a path leads out of the vault, into a folder that the user denied, or to a symlink into
one. Both the path as written and the place it leads to must be admitted by the rules. Outside of
the scope of whoever asks there is no file, whatever stands on the disk.

Threat: a list of notes tells an agent what the user keeps to himself. Notes that say `rag: false`
are in no index; those that say `rag: private` are left out here, and so is every note of which
the index does not know yet whether it does.
"""

import contextlib
import posixpath
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from obsidian_rag.errors import IndexerFailed, NotFound, SecurityViolation
from obsidian_rag.notes import Note, Scope, parse_note
from obsidian_rag.store import ChunkStore, Database, IndexState, Manifest, public_titles
from obsidian_rag.vault import NoteFile, Vault, read_bytes, walk_files


@dataclass(frozen=True, slots=True)
class ListedNote:
    """A note that an agent may know of."""

    link_id: str
    path: str
    title: str


class NoteFiles:
    """The notes of one vault, as far as they are in scope; paths are relative to it."""

    def __init__(
        self, vault: Vault, scope: Scope, database: Callable[[], Database], chunks: ChunkStore
    ) -> None:
        """A note can be read without the `database`, so it is opened when it is asked."""
        self._vault = vault
        self._scope = scope
        self._database = database
        self._chunks = chunks
        self._rules = vault.rules

    def path_of(self, name: str) -> str:
        """What a caller calls a note, as a path.

        Raises:
            SecurityViolation: it leads out of the vault.
        """
        return self._vault.relative(name)

    def known(self) -> Collection[str]:
        """The paths of all notes that the last index run saw."""
        known = Manifest(self._database()).known(self._vault.link_id)
        if not self._scope.is_limited:
            return known
        return [path for path in known if self._scope.admits(self._vault.link_id, path)]

    def indexed(self) -> set[str]:
        """Every note that can be found.

        Raises:
            IndexNotFound: there is no index yet.
        """
        self._chunks.must_exist()
        return self._chunks.paths(self._vault.link_id)

    def listed(self, after: str, limit: int) -> tuple[ListedNote, ...]:
        """The next indexed notes whose paths follow `after`, without private ones.

        Raises:
            IndexCorrupted: the index cannot be read.
        """
        link_id, found = self._vault.link_id, list[ListedNote]()
        while len(found) < limit:
            paths = IndexState(self._database()).searchable_after(link_id, after, limit)
            # Folders may have been denied since; the next sync takes their notes out of the index.
            admitted = [
                path
                for path in paths
                if self._rules.admits_file(path) and self._scope.admits(link_id, path)
            ]
            titles = public_titles(self._chunks, link_id, admitted) if admitted else {}
            found += [ListedNote(link_id, p, titles[p]) for p in admitted if p in titles]
            if len(paths) < limit:
                break
            after = paths[-1]
        return tuple(found[:limit])

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

    def _attachment_paths(self, name: str, source: str) -> Iterator[str]:
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
