"""The vault as the database sees it: which file is which document, and what is in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from obsidian_rag.errors import NotFound, ObsidianRagError
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
    """The files that take part; `look` walks them all, the rest is kept up by us."""

    def __init__(self, root: Path, codec: Codec, max_bytes: int) -> None:
        self.root = root
        self._codec = codec
        self._max_bytes = max_bytes
        self._files: dict[str, FileEntry] = {}
        self._left_ids: set[str] = set()
        self._walk: FileWalk | None = None
        self.left_out: dict[str, str] = {}

    def look(self) -> FileWalk:
        """Walk the vault; what does not take part is listed in `left_out` with the reason."""
        walk = walk_files(self.root)
        self._walk = walk
        self._files, self._left_ids = {}, set()
        self.left_out = dict(walk.unseen)
        for entry in sorted(walk.files):
            reason = takes_part(entry.rel_path)
            doc_id = self._codec.path_to_id(entry.rel_path) if reason is None else ""
            if doc_id in self._files:
                reason = "differs from another file only in case"
            elif entry.size_bytes > self._max_bytes:
                reason = reason or "is larger than the devices agreed on"
            if reason is None:
                self._files[doc_id] = entry
            else:
                self.left_out[entry.rel_path] = reason
                self._left_ids.add(doc_id)
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
        if with_path and normalise(entry.rel_path) != known.path:
            return False
        return (entry.size_bytes, entry.mtime_ns) == (known.size, known.mtime_ns)

    def may_hide(self, path: str) -> bool:
        """Whether there may be a file that the walk could not see."""
        return self._walk is None or not self._walk.has_root or self._walk.may_hide(path)

    def see(self, doc_id: str, known: SyncedFile | None, path: str | None) -> Sight | None:
        """The file of a document; None if it cannot be told what it is right now."""
        entry = self._files.get(doc_id)
        if entry is None:
            # A file that has grown too large, say, is there: it must not count as deleted.
            places = [place for place in (path, known.path if known else None) if place]
            is_unsure = doc_id in self._left_ids or any(map(self.may_hide, places))
            return None if is_unsure else Sight(Absent())
        if known is not None and self.is_as_recorded(doc_id, known):
            assert known.content_hash is not None
            return Sight(Present(known.content_hash, normalise(entry.rel_path)), entry)
        try:
            data, entry = read_bytes(self.root, entry.rel_path)
        except NotFound:
            del self._files[doc_id]
            return None
        except ObsidianRagError:
            return None
        self._files[doc_id] = entry
        return Sight(Present(content_hash(data), normalise(entry.rel_path)), entry, data)

    def bytes_of(self, sight: Sight) -> bytes | None:
        """What is in a file; None if it is no longer what was seen."""
        if sight.data is not None or sight.entry is None:
            return sight.data
        try:
            data, _ = read_bytes(self.root, sight.entry.rel_path)
        except ObsidianRagError:
            return None
        is_same = (
            isinstance(sight.local, Present) and content_hash(data) == sight.local.content_hash
        )
        return data if is_same else None

    def put(self, doc_id: str, entry: FileEntry) -> None:
        """We wrote this file."""
        self._files[doc_id] = entry

    def drop(self, doc_id: str) -> None:
        """We removed this file."""
        self._files.pop(doc_id, None)
