"""The vault as documents: which file belongs to which document, its content, and the trash."""

import contextlib
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from obsidian_rag.errors import LivesyncUnreadable, NoteChanged, NotFound, ObsidianRagError
from obsidian_rag.livesync.codec import Codec, Entry
from obsidian_rag.livesync.codec.path_ids import (
    assign,
    folders_above,
    forms_of,
    normalise,
    takes_part,
    warns,
)
from obsidian_rag.livesync.decision import Absent, Local, Present
from obsidian_rag.livesync.filters import Filters
from obsidian_rag.store import LivesyncRecords, SyncedFile, TrashedFile, now
from obsidian_rag.vault import (
    FileEntry,
    FileWalk,
    content_hash,
    discard_kept,
    files_at,
    find_obstacle,
    keep_copy,
    read_bytes,
    remove_file,
    restore_file,
    walk_files,
)


@dataclass(frozen=True, slots=True)
class LocalState:
    """One file as it is now; `data` is set if it had to be read."""

    local: Local
    entry: FileEntry | None = None
    data: bytes | None = None


class Disk:
    """The files that take part; `scan` walks them all, `scan_paths` keeps a few up to date.

    Only a walk can show that a file is gone. `is_stale` means that something differs from the
    last walk, so that a new one is due.
    """

    def __init__(
        self,
        root: Path,
        codec: Codec,
        max_bytes: int,
        filters: Filters,
        records: LivesyncRecords | None = None,
    ) -> None:
        """`records` hold the path that a document was last synced as."""
        self.root = root
        self.is_stale = True
        self.left_out: dict[str, str] = {}
        self.filtered: dict[str, str] = {}
        # Synced files whose names some systems cannot write, with the reasons.
        self.warnings: dict[str, str] = {}
        self.filters = filters
        self._codec = codec
        self._max_bytes = max_bytes
        self._records = records
        self._files: dict[str, FileEntry] = {}
        self._left_out_ids: set[str] = set()
        self._doubted_ids: set[str] = set()
        # Documents whose files the disk cannot spell as the database does.
        self.case_locked: set[str] = set()
        self._walk: FileWalk | None = None

    def scan(self, live: Callable[[list[str]], set[str]] = lambda _ids: set()) -> FileWalk:
        """Walk the vault; what does not take part is listed in `left_out` with the reason.

        `live` returns which of the given documents the database has, for names with several forms.
        """
        walk = walk_files(self.root)
        self._walk = walk
        self.filters.refresh()
        self.filtered = {}
        self._files, self._left_out_ids = {}, set()
        self.warnings = {}
        self.left_out = dict(walk.unseen)
        groups: dict[str, list[FileEntry]] = {}
        for entry in sorted(walk.files):
            if (reason := takes_part(entry.rel_path)) is not None:
                self.left_out[entry.rel_path] = reason
                continue
            doc_id = self._codec.path_to_id(entry.rel_path)
            if (reason := self.filters.reason(entry.rel_path)) is not None:
                self.filtered[entry.rel_path] = reason
                self._left_out_ids.add(doc_id)
                continue
            groups.setdefault(doc_id, []).append(entry)
        self._assign_files(groups, live)
        self.is_stale = False
        self.filters.has_changed = False
        return walk

    def scan_paths(self, paths: Iterable[str]) -> list[str] | None:
        """Update files that were written; return their documents, or None if a walk is needed.

        It is needed when a file is gone, when its name has a twin, or when the filters changed.
        """
        self.filters.refresh()
        entries = files_at(self.root, paths)
        if self.is_stale or entries is None:
            return None
        found = []
        for entry in entries:
            path = entry.rel_path
            stays_out = bool(takes_part(path) or self.filters.reason(path))
            if stays_out != (path in self.left_out or path in self.filtered):
                return None
            if stays_out:
                continue
            doc_id = self._document_of(entry)
            if doc_id is None or entry.size_bytes > self._max_bytes:
                return None
            self._set_entry(doc_id, entry)
            found.append(doc_id)
        return None if self.filters.has_changed else found

    def _document_of(self, entry: FileEntry) -> str | None:
        """The document of a file; None if that depends on other files."""
        ids = self._possible_ids([entry])
        for doc_id in ids:
            known = self._files.get(doc_id)
            if known is not None and known.rel_path == entry.rel_path:
                return doc_id
        folders = map(self._codec.path_to_id, folders_above(entry.rel_path))
        if len(ids) > 1 or any(one in self._files or one in self._left_out_ids for one in ids):
            return None
        # A file was replaced by a folder, so it is gone.
        return None if any(one in self._files for one in folders) else ids[0]

    def ids(self) -> Iterator[str]:
        """The documents that have a file."""
        return iter(self._files)

    def entry(self, doc_id: str) -> FileEntry | None:
        """The file of a document, as of the last scan."""
        return self._files.get(doc_id)

    def is_as_recorded(
        self, doc_id: str, known: SyncedFile | None, *, with_path: bool = False
    ) -> bool:
        """Whether the file's metadata match the last sync, so that it need not be read."""
        entry = self._files.get(doc_id)
        if entry is None or known is None or known.content_hash is None:
            return False
        is_spelled = normalise(entry.rel_path) == normalise(known.path)
        if doc_id in self._doubted_ids or (with_path and not is_spelled):
            return False
        return (entry.size_bytes, entry.mtime_ns) == (known.size, known.mtime_ns)

    def is_gone(self, doc_id: str, *paths: str) -> bool:
        """Whether this document certainly has no file; a file that is left out still exists."""
        if doc_id in self._files or doc_id in self._left_out_ids:
            return False
        if any(map(self.filters.reason, paths)):
            return False  # a filtered file was not deleted
        return self._walk is not None and not any(map(self._walk.may_hide, paths))

    def doubt(self, doc_id: str) -> None:
        """Distrust a file's metadata after they proved wrong: read its content next time."""
        self._doubted_ids.add(doc_id)
        self.is_stale = True

    def read(self, doc_id: str, known: SyncedFile | None, path: str | None) -> LocalState | None:
        """The file of a document; None if its state cannot be determined right now."""
        entry = self._files.get(doc_id)
        if entry is None:
            paths = [one for one in (path, known.path if known else None) if one]
            return LocalState(Absent()) if self.is_gone(doc_id, *paths) else None
        if known is not None and self.is_as_recorded(doc_id, known):
            assert known.content_hash is not None
            return LocalState(Present(known.content_hash, normalise(entry.rel_path)), entry)
        try:
            data, entry = read_bytes(self.root, entry.rel_path)
        except (NotFound, NoteChanged):
            self.is_stale = True
            return None
        except ObsidianRagError as error:
            self.left_out[entry.rel_path] = error.message
            return None
        self._set_entry(doc_id, entry)
        found = content_hash(data)
        if known is not None and found == known.content_hash:
            self._doubted_ids.discard(doc_id)
        return LocalState(Present(found, normalise(entry.rel_path)), entry, data)

    def below_link(self, entry: Entry | None) -> LivesyncUnreadable | None:
        """The error if a document's path runs through a symlink of the vault."""
        if entry is None or entry.is_deleted:
            return None
        for folder in folders_above(entry.path):
            if self.left_out.get(folder) == "symlink":
                return LivesyncUnreadable(
                    f"{entry.path!r} is not written, because {folder!r} is a symlink here.",
                    "Rename or remove the symlink.",
                )
        return None

    def bytes_of(self, doc_id: str, file: LocalState) -> bytes | None:
        """The content of a file; None if it changed since it was read."""
        if file.data is not None or file.entry is None:
            return file.data
        assert isinstance(file.local, Present)
        try:
            data, _ = read_bytes(self.root, file.entry.rel_path)
        except ObsidianRagError:
            data = None
        if data is None or content_hash(data) != file.local.content_hash:
            self.doubt(doc_id)
            return None
        return data

    def is_still_gone(self, path: str) -> bool:
        """Whether a file that the walk did not find is still missing."""
        try:
            read_bytes(self.root, path)
        except NotFound:
            return True
        except ObsidianRagError:
            if find_obstacle(self.root, path) == path:
                return True  # a folder has the file's name now
        self.is_stale = True
        return False

    def put(self, doc_id: str, entry: FileEntry) -> None:
        """Note a file that we wrote."""
        self._set_entry(doc_id, entry)
        self._doubted_ids.discard(doc_id)

    def drop(self, doc_id: str) -> None:
        """Note that we removed a file."""
        if (entry := self._files.pop(doc_id, None)) is not None:
            self.warnings.pop(entry.rel_path, None)
        self._doubted_ids.discard(doc_id)

    def owner_of(self, path: str) -> str | None:
        """The document whose file has exactly this path."""
        return next((one for one, file in self._files.items() if file.rel_path == path), None)

    def _assign_files(
        self, groups: dict[str, list[FileEntry]], live: Callable[[list[str]], set[str]]
    ) -> None:
        """Assign each file to a document, also where one name has several Unicode forms."""
        several: dict[str, list[str]] = {}
        for doc_id, entries in groups.items():
            first = entries[0]
            if len(entries) > 1 or not first.rel_path.isascii():
                several[doc_id] = self._possible_ids(entries)
            else:
                self._add_file(doc_id, first)
        asked = [one for ids in several.values() if len(ids) > 1 for one in ids]
        there = live([one for one in asked if self._synced_path(one) is None]) if asked else set()
        for doc_id, ids in several.items():
            entries = groups[doc_id]
            synced = {one: path for one in ids if (path := self._synced_path(one)) is not None}
            paths = [entry.rel_path for entry in entries]
            found = assign(
                paths, self._codec.id_as_spelled, synced, [one for one in ids if one in there]
            )
            for entry in entries:
                if (own := found.get(entry.rel_path)) is not None:
                    self._add_file(own, entry)
                else:
                    self._leave_out(doc_id, entry, _twin_reason(entry.rel_path, found))

    def _synced_path(self, doc_id: str) -> str | None:
        known = self._records.file(doc_id) if self._records is not None else None
        return known.path if known is not None and known.content_hash else None

    def _possible_ids(self, entries: list[FileEntry]) -> list[str]:
        forms = (form for entry in entries for form in forms_of(entry.rel_path))
        return list(dict.fromkeys(map(self._codec.id_as_spelled, forms)))

    def _add_file(self, doc_id: str, entry: FileEntry) -> None:
        if entry.size_bytes > self._max_bytes:
            self._leave_out(doc_id, entry, "is larger than the devices agreed on")
        else:
            self._set_entry(doc_id, entry)

    def _set_entry(self, doc_id: str, entry: FileEntry) -> None:
        before = self._files.get(doc_id)
        self._files[doc_id] = entry
        if before is None or before.rel_path != entry.rel_path:
            if before is not None:
                self.warnings.pop(before.rel_path, None)
            if (reason := warns(entry.rel_path)) is not None:
                self.warnings[entry.rel_path] = reason

    def _leave_out(self, doc_id: str, entry: FileEntry, reason: str) -> None:
        self.left_out[entry.rel_path] = reason
        self._left_out_ids.add(doc_id)


def _twin_reason(path: str, others: Iterable[str]) -> str:
    is_form = any(normalise(other) == normalise(path) for other in others)
    return f"differs from another file only in {'its Unicode form' if is_form else 'case'}"


@dataclass(frozen=True, slots=True)
class Trash:
    """Files that sync removed from the vault, kept and listed in the data folder for a while."""

    folder: Path
    root: Path
    records: LivesyncRecords

    def keep(self, path: str, content: bytes, mtime_ns: int, reason: str) -> None:
        """Put a copy of a version into the trash; the vault stays as it is."""
        _, target = self._add(path, len(content), reason)
        keep_copy(self.root, content, mtime_ns, target)

    def remove(self, path: str, content_hash: str, size: int, reason: str) -> None:
        """Move the file with this content out of the vault."""
        row, target = self._add(path, size, reason)
        try:
            remove_file(self.root, path, content_hash, target)
        except ObsidianRagError:
            if not target.exists():
                self.records.drop_trash(row)
            raise

    def put_back(self, file: TrashedFile) -> str:
        """Put a file back into the vault; return its new path."""
        entry = restore_file(self.root, file.path, self._target(file))
        self._drop(file)
        return entry.rel_path

    def drop_older_than(self, days: float) -> None:
        """Delete what has been in the trash for longer than this."""
        oldest = datetime.now(UTC) - timedelta(days=days)
        for file in self.records.trash():
            if datetime.fromisoformat(file.removed_at) < oldest:
                with contextlib.suppress(ObsidianRagError):  # retried next time
                    self._drop(file)

    def _add(self, path: str, size: int, reason: str) -> tuple[int, Path]:
        # Listed before it is moved: nobody would find an unlisted file.
        target = self.folder / f"{time.time_ns()}-{secrets.token_hex(4)}"
        return self.records.add_trash(path, str(target), size, now(), reason), target

    def _target(self, file: TrashedFile) -> Path:
        # The data folder may have been moved since.
        return self.folder / Path(file.stored_as).name

    def _drop(self, file: TrashedFile) -> None:
        discard_kept(self._target(file))
        self.records.drop_trash(file.trash_id)
