"""The vault as the database sees it: which file is which document, and what is in it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from obsidian_rag.errors import NoteChanged, NotFound, ObsidianRagError
from obsidian_rag.livesync.decision import Absent, Local, Present
from obsidian_rag.livesync.documents import Codec
from obsidian_rag.livesync.path_ids import normalise, takes_part
from obsidian_rag.store import SyncedFile
from obsidian_rag.vault import FileEntry, FileWalk, content_hash, read_bytes, walk_files


@dataclass(frozen=True, slots=True)
class Sight:
    """One file as it is now; `data` is there if it had to be read."""

    local: Local
    entry: FileEntry | None = None
    data: bytes | None = None


class Disk:
    """The files that take part; `look` walks them all, the rest is kept up by us.

    Only a walk tells that a file is gone. `is_stale` says that something was found to be
    different from the last walk, so that the next one is due.
    """

    def __init__(
        self,
        root: Path,
        codec: Codec,
        max_bytes: int,
        spelling_of: Callable[[str], str | None] = lambda _doc_id: None,
    ) -> None:
        """Look below `root`; `spelling_of` tells the path that a document was last synced as."""
        self.root = root
        self.is_stale = True
        self.left_out: dict[str, str] = {}
        self._codec = codec
        self._max_bytes = max_bytes
        self._spelling_of = spelling_of
        self._files: dict[str, FileEntry] = {}
        self._left_ids: set[str] = set()
        self._doubted: set[str] = set()
        # Files that the disk does not spell as the database does, and will not.
        self.stubborn: set[str] = set()
        self._walk: FileWalk | None = None

    def look(self) -> FileWalk:
        """Walk the vault; what does not take part is listed in `left_out` with the reason."""
        walk = walk_files(self.root)
        self._walk = walk
        self._files, self._left_ids = {}, set()
        self.left_out = dict(walk.unseen)
        for entry in sorted(walk.files):
            if (reason := takes_part(entry.rel_path)) is not None:
                self.left_out[entry.rel_path] = reason
                continue
            doc_id = self._codec.path_to_id(entry.rel_path)
            if entry.size_bytes > self._max_bytes:
                self._leave_out(doc_id, entry, "is larger than the devices agreed on")
            else:
                self._take(doc_id, entry)
        self.is_stale = False
        return walk

    def ids(self) -> Iterator[str]:
        """The documents that have a file."""
        return iter(self._files)

    def entry(self, doc_id: str) -> FileEntry | None:
        """The file of a document, as far as we know."""
        return self._files.get(doc_id)

    def is_as_recorded(
        self, doc_id: str, known: SyncedFile | None, *, with_path: bool = False
    ) -> bool:
        """Whether the file's metadata are those of the last sync, so that it need not be read."""
        entry = self._files.get(doc_id)
        if entry is None or known is None or known.content_hash is None:
            return False
        if doc_id in self._doubted or (with_path and normalise(entry.rel_path) != known.path):
            return False
        return (entry.size_bytes, entry.mtime_ns) == (known.size, known.mtime_ns)

    def is_gone(self, doc_id: str, *paths: str) -> bool:
        """Whether there is surely no file of this document; a large one, say, is there."""
        if doc_id in self._files or doc_id in self._left_ids:
            return False
        return self._walk is not None and not any(map(self._walk.may_hide, paths))

    def doubt(self, doc_id: str) -> None:
        """A file was found to be another than its metadata told: read it, whatever they tell."""
        self._doubted.add(doc_id)
        self.is_stale = True

    def see(self, doc_id: str, known: SyncedFile | None, path: str | None) -> Sight | None:
        """The file of a document; None if it cannot be told what it is right now."""
        entry = self._files.get(doc_id)
        if entry is None:
            places = [place for place in (path, known.path if known else None) if place]
            return Sight(Absent()) if self.is_gone(doc_id, *places) else None
        if known is not None and self.is_as_recorded(doc_id, known):
            assert known.content_hash is not None
            return Sight(Present(known.content_hash, normalise(entry.rel_path)), entry)
        try:
            data, entry = read_bytes(self.root, entry.rel_path)
        except (NotFound, NoteChanged):
            self.is_stale = True
            return None
        except ObsidianRagError as error:
            self.left_out[entry.rel_path] = error.message
            return None
        self._files[doc_id] = entry
        found = content_hash(data)
        if known is not None and found == known.content_hash:
            self._doubted.discard(doc_id)
        return Sight(Present(found, normalise(entry.rel_path)), entry, data)

    def bytes_of(self, doc_id: str, sight: Sight) -> bytes | None:
        """What is in a file; None if it is no longer what was seen."""
        if sight.data is not None or sight.entry is None:
            return sight.data
        assert isinstance(sight.local, Present)
        try:
            data, _ = read_bytes(self.root, sight.entry.rel_path)
        except ObsidianRagError:
            data = None
        if data is None or content_hash(data) != sight.local.content_hash:
            self.doubt(doc_id)
            return None
        return data

    def is_still_gone(self, path: str) -> bool:
        """Whether a file that the walk did not see has not come back since."""
        try:
            read_bytes(self.root, path)
        except NotFound:
            return True
        except ObsidianRagError:
            pass
        self.is_stale = True
        return False

    def put(self, doc_id: str, entry: FileEntry) -> None:
        """We wrote this file."""
        self._files[doc_id] = entry
        self._doubted.discard(doc_id)

    def drop(self, doc_id: str) -> None:
        """We removed this file."""
        self._files.pop(doc_id, None)
        self._doubted.discard(doc_id)

    def _take(self, doc_id: str, entry: FileEntry) -> None:
        """Of files that differ only in case, the one that was synced is the document's."""
        rival = self._files.get(doc_id)
        if rival is not None and normalise(entry.rel_path) == self._spelling_of(doc_id):
            entry, rival = rival, entry
            self._files[doc_id] = rival
        if rival is None:
            self._files[doc_id] = entry
        else:
            self._leave_out(doc_id, entry, "differs from another file only in case")

    def _leave_out(self, doc_id: str, entry: FileEntry, reason: str) -> None:
        self.left_out[entry.rel_path] = reason
        self._left_ids.add(doc_id)
