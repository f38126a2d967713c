"""The notes of a vault for the tools: lists them from the index, finds and reads their files.

Threat: a path leads out of the vault, into a denied folder, or to a symlink into one. The rules
must admit both the path as written and its real path. Files outside the caller's scope do not
exist for the caller, whatever is on the disk.

Threat: a list of notes reveals private notes to an agent. `rag: false` notes are never indexed;
those with `rag: private` are left out here, and so is every note whose policy is not known yet.
"""

import contextlib
import posixpath
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from obsidian_rag.engine import Engine
from obsidian_rag.errors import IndexerFailed, NoteChanged, NotFound, SecurityViolation
from obsidian_rag.health import made_of
from obsidian_rag.notes import (
    EVERYTHING,
    Note,
    NoteNames,
    RagPolicy,
    Scope,
    kind_of,
    parse_note,
    read_policy,
)
from obsidian_rag.store import (
    ChunkStore,
    FollowedDatabase,
    IndexState,
    LinkFacts,
    Manifest,
    Queue,
    public_titles,
)
from obsidian_rag.vault import (
    FileEntry,
    NoteFile,
    Vault,
    find_files,
    is_same_file,
    read_bytes,
    root_identity,
    walk_files,
)

_SAMPLE_NOTES_PER_END = 4


@dataclass(frozen=True, slots=True)
class ListedNote:
    """A note that may be listed for an agent."""

    link_id: str
    path: str
    title: str


def note_files(engine: Engine, vault: str | None = None, scope: Scope = EVERYTHING) -> "NoteFiles":
    """The notes of one vault in scope, by its name or link id; by default the first one.

    Raises:
        NotFound: no vault has this name.
    """
    parts = engine.parts
    return NoteFiles(engine.vaults.one(vault, scope), scope, parts.file, parts.chunks)


def note_bytes(engine: Engine, link_id: str, path: str) -> bytes | None:
    """The bytes of a note's file; None if it cannot be read.

    Raises:
        NoteChanged: it is being written to.
        SecurityViolation: the path leaves the vault.
    """
    file = note_files(engine, link_id).read(path)
    return file.data if file is not None else None


class NoteFiles:
    """The notes of one vault that are in scope; paths are relative to the vault."""

    def __init__(
        self, vault: Vault, scope: Scope, database: FollowedDatabase, chunks: ChunkStore
    ) -> None:
        """Notes can be read without the `database`, so it is opened only when needed."""
        self._vault = vault
        self._scope = scope
        self._database = database
        self._chunks = chunks
        self._rules = vault.rules

    def path_of(self, name: str) -> str:
        """The path for a caller's name of a note.

        Raises:
            SecurityViolation: it leads out of the vault.
        """
        return self._vault.relative(name)

    def known(self) -> Collection[str]:
        """The paths of all notes that the last index run found."""
        known = Manifest(self._database.now).known(self._vault.link_id)
        if not self._scope.is_limited:
            return known
        return [path for path in known if self._scope.admits(self._vault.link_id, path)]

    def meant(self, targets: Iterable[str], source: str) -> dict[str, str]:
        """Resolve links of the note at `source` while the index is incomplete.

        Uses the files that a run has found or, before that, a walk. Empty once no file waits:
        then the links are in the index.
        """
        wanted = list(targets)
        if not wanted or self._is_index_complete():
            return {}
        known = self.known() or [file.rel_path for file in self._vault.scan().files]
        names = NoteNames((path, path) for path in known if self._rules.admits_file(path))
        found = {target: names.resolve(target, source) for target in wanted}
        return {target: paths[0] for target, paths in found.items() if paths}

    def _is_index_complete(self) -> bool:
        """Whether every known file is indexed and related."""
        link_id, database = self._vault.link_id, self._database.now
        is_begun = bool(link_id) and self._chunks.exists()
        return is_begun and not Queue(database).is_waiting(link_id)

    def indexed(self) -> set[str]:
        """The paths of all indexed notes.

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
            paths = IndexState(self._database.now).searchable_after(link_id, after, limit)
            # Folders may have been denied since; the next sync removes their notes from the index.
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
        """Whether the rules admit this path and a file exists there."""
        return self._is_in_scope(path) and self._vault.has_note(path)

    def _is_in_scope(self, path: str) -> bool:
        """Whether both the path as written and its real path are in scope."""
        if not self._scope.is_limited:
            return True
        with contextlib.suppress(OSError, SecurityViolation, ValueError):
            paths = (path, self._vault.real_path(path))
            return all(self._scope.admits(self._vault.link_id, one) for one in paths)
        return False

    def check_folder(self, path: str, name: str) -> None:
        """Refuse a path in a denied folder, whether or not the file exists.

        Raises:
            SecurityViolation: the folder is denied; the message quotes the caller's `name`.
        """
        # With a limited scope "denied" would reveal that the folder exists.
        if self._scope.is_limited:
            return
        if not self._rules.admits_dir(path.rpartition("/")[0]):
            raise _denied_error(name)

    def real_path(self, path: str) -> str:
        """The note's real path, which the rules must admit as well.

        Raises:
            SecurityViolation: it is outside the vault, or the rules deny it.
        """
        real = self._vault.real_path(path)
        if not self._rules.admits_file(real):
            raise _denied_error(path)
        return real

    def read(self, path: str) -> NoteFile | None:
        """A note's bytes and text; None if it cannot be read.

        Raises:
            NoteChanged: it is being written to.
            SecurityViolation: the path leaves the vault.
        """
        file = self._vault.read(path)
        return file if isinstance(file, NoteFile) else None

    def public(self, paths: Iterable[str]) -> set[str]:
        """The files among these that were indexed as public and are unchanged; opens no file."""
        found = IndexState(self._database.now).public(self._vault.link_id, paths)
        return found.difference(self.policies(found, most_read=0))

    def policies(self, paths: Collection[str], most_read: int) -> dict[str, RagPolicy | None]:
        """The current policies of files that differ from the index.

        None means that nothing may be revealed of a file: it is gone, unreadable or out of scope,
        or more than `most_read` files changed. Unchanged files are only checked by stat, and are
        not in the result. If the whole vault is away, no file counts as changed.
        """
        known = Manifest(self._database.now).exactly(self._vault.link_id, paths)
        found: dict[str, RagPolicy | None] = {}
        changed: list[str] = []
        is_any_there = False
        for path in paths:
            entry = FileEntry(path, *known[path][:3]) if path in known else None
            is_same = is_same_file(self._vault.root, entry) if entry is not None else False
            is_any_there |= entry is not None and is_same is not None
            if is_same is None or not self._is_in_scope(path):
                found[path] = None
            elif not is_same:
                changed.append(path)
        if found and not is_any_there and self._is_away():
            return {}
        found |= dict.fromkeys(changed[max(most_read, 0) :])
        return found | {path: self._policy(path) for path in changed[: max(most_read, 0)]}

    def _policy(self, path: str) -> RagPolicy | None:
        """A file's current policy; None if it cannot be read."""
        with contextlib.suppress(NoteChanged, SecurityViolation):
            file = self._vault.read(path)
            if isinstance(file, NoteFile):
                has_any = kind_of(path).has_frontmatter
                return read_policy(file.text).policy if has_any else RagPolicy.INDEX
        return None

    def _is_away(self) -> bool:
        """Whether another folder is in the vault's place, as when a disk is not mounted.

        A folder that was indexed and has lost its notes is not away: they were moved or deleted.
        """
        database = self._database.now
        made = made_of(LinkFacts(database, self._vault.link_id).all(), None)
        identity = root_identity(self._vault.root)
        if identity is not None and made is not None and made.identity == identity:
            return False
        ends = Manifest(database).ends(self._vault.link_id, _SAMPLE_NOTES_PER_END)
        return not find_files(self._vault.root, ends)

    def attachment(self, name: str, source: str) -> tuple[str, bytes]:
        """A file embedded in the note at `source`: its path and bytes.

        Resolved like in Obsidian: from the vault's root, the note's folder, or anywhere by name.

        Raises:
            NotFound: there is no readable file.
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
        # By its real path: open exactly what was checked.
        file = self._vault.read(self.real_path(path))
        if isinstance(file, NoteFile):
            return parse_note(path, file.text), file.text
        if file.reason == "missing":
            raise NotFound(f"'{path}' is gone.", "Run `obsidian-rag sync`.")
        raise IndexerFailed(f"'{path}' cannot be read ({file.reason}).", "Open it in Obsidian.")


def _denied_error(name: str) -> SecurityViolation:
    return SecurityViolation(
        f"'{name}' is in a folder that is not read.",
        "Choose another note, or change indexing.deny_dirs or allow_dirs.",
    )
