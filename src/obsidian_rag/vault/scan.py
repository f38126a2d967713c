"""Walk a vault: which notes exist, with size, time and file id, which reveal a change.

One pass, one stat per admitted file, no file is opened. A skipped file that the user may miss is
reported with a reason; what the rules exclude is not. An unreadable folder is distinguished from
an empty one, so that its notes are not taken for deleted.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from obsidian_rag.errors import NotFound
from obsidian_rag.vault.boundary import is_harmless, is_within
from obsidian_rag.vault.rules import Access, Rules
from obsidian_rag.vault.temporary import is_temporary
from obsidian_rag.vault.tree import (
    WINDOWS,
    file_status,
    in_the_cloud,
    is_gone,
    is_link,
    list_folder,
    speakable,
    unsafe_name,
    walk_folders,
)

_COUNT_INTERVAL_FILES = 256
# Inode numbers are unsigned 64 bits, SQLite's integers signed.
_FILE_ID_BITS = 0x7FFF_FFFF_FFFF_FFFF


class FileEntry(NamedTuple):
    """One note as the file system describes it. A tuple: 100,000 of them must be cheap."""

    rel_path: str
    size_bytes: int
    mtime_ns: int
    file_id: int | None


class SkippedFile(NamedTuple):
    """A file (or a folder, with a trailing '/') that was left out, and why."""

    rel_path: str
    reason: str


class RootIdentity(NamedTuple):
    """Identifies the folder itself: a mount point without its disk is a different folder."""

    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class Scan:
    """What a walk found. Only a complete scan shows that notes are gone."""

    files: list[FileEntry]
    skipped: list[SkippedFile]
    folders: int
    unreadable_folders: tuple[str, ...] = ()
    is_complete: bool = True
    # Temporary files of ours, perhaps left behind by a kill.
    leftovers: tuple[str, ...] = ()


def scan(
    root: Path,
    rules: Rules,
    on_count: Callable[[int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Scan:
    """Walk the vault. `on_count` is called with the number of notes so far; `stop` ends it early.

    Raises:
        NotFound: the vault's folder is missing, is not a folder, is unreadable, or disappeared.
    """
    before = _root_status(root)
    walk = _Walk(os.path.realpath(root), rules)
    is_complete = True
    counted = 0
    for _ in walk_folders(walk, walk.todo, walk.links):
        if on_count and len(walk.files) - counted >= _COUNT_INTERVAL_FILES:
            counted = len(walk.files)
            on_count(counted)
        if stop and stop():
            is_complete = False
            break
    # A disk removed during the walk looks like a vault without notes.
    if not os.path.samestat(before, _root_status(root)):
        raise _vault_error(root, "was replaced while it was being read")
    if on_count and len(walk.files) != counted:
        on_count(len(walk.files))
    return Scan(
        walk.files,
        walk.skipped,
        walk.folders,
        tuple(walk.unreadable),
        is_complete,
        tuple(walk.leftovers),
    )


def scan_paths(root: Path, rules: Rules, paths: Iterable[str]) -> Scan:
    """Scan these files only, by listing their folders; missing ones are left out.

    A folder among them makes the scan incomplete: only a walk can list its notes.

    Raises:
        NotFound: the vault's folder is not there.
    """
    _root_status(root)
    walk = _Walk(os.path.realpath(root), rules)
    wanted = set(paths)
    for folder in sorted({path.rpartition("/")[0] for path in wanted}):
        walk.one_folder(folder)
    files = [entry for entry in walk.files if entry.rel_path in wanted]
    skipped = [item for item in walk.skipped if item.rel_path in wanted]
    missing = wanted.difference(entry.rel_path for entry in files)
    is_complete = not any(os.path.isdir(os.path.join(root, path)) for path in missing)  # noqa: PTH112, PTH118  (called often)
    return Scan(files, skipped, walk.folders, tuple(walk.unreadable), is_complete)


def file_entry(rel: str, status: os.stat_result, is_linked: bool = False) -> FileEntry:
    """The entry for a file with this status, the same from a scan and from a read.

    A symlinked file would share its target's id, so it has none. Windows reports the id of an open
    file only, not while walking.
    """
    file_id = None if is_linked or WINDOWS else status.st_ino & _FILE_ID_BITS
    return FileEntry(rel, status.st_size, status.st_mtime_ns, file_id)


def root_identity(root: Path) -> RootIdentity | None:
    """The identity of a vault's folder; None if there is no such folder."""
    try:
        status = root.stat()
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    return RootIdentity(status.st_dev, status.st_ino)


def is_same_file(root: Path, known: FileEntry) -> bool | None:
    """Whether a file still has this entry, by one stat; None if it is gone."""
    try:
        status = os.stat(os.path.join(root, known.rel_path))  # noqa: PTH116, PTH118  (called often)
    except OSError:
        return None
    return file_entry(known.rel_path, status, is_linked=known.file_id is None) == known


def find_files(root: Path, paths: Iterable[str]) -> Mapping[str, FileEntry]:
    """The entries of those files that exist; no folder is walked."""
    found = {}
    for path in paths:
        file = os.path.join(root, path)  # noqa: PTH118  (called often)
        try:
            found[path] = file_entry(path, os.stat(file), os.path.islink(file))  # noqa: PTH114, PTH116
        except OSError:
            continue
    return found


# Its path as listed, its real path, and the access to it.
_Folder = tuple[str, str, Access]


class _Walk:
    """The state of one walk. A folder has two paths: as listed, and its real one."""

    def __init__(self, real_root: str, rules: Rules) -> None:
        self.root = real_root
        self.rules = rules
        self.files: list[FileEntry] = []
        self.skipped: list[SkippedFile] = []
        self.unreadable: list[str] = []
        self.leftovers: list[str] = []
        self.folders = 0
        self._max_bytes = rules.max_file_bytes
        self._base = real_root.rstrip(os.sep) + "/"
        self.todo: list[_Folder] = [("", "", rules.root_access)]
        self.links: list[tuple[str, str]] = []
        self._read_folders: set[str] = set()

    def one_folder(self, rel: str) -> None:
        """List one folder, if the rules allow it and its real path is in the vault."""
        real = os.path.realpath(self._base + rel)
        access = self.rules.access(rel) if rel else self.rules.root_access
        if access is Access.OPEN and is_within(self.root, real):
            real_rel = self._relative(real) if rel else ""
            if not self.rules.denies_dir(real_rel):
                list_folder(self, (rel, real_rel, access))

    def path(self, folder: _Folder) -> str | None:
        """The folder's real path; None if it was read already, by another path."""
        _, real_rel, access = folder
        if access is Access.OPEN:
            if real_rel in self._read_folders:
                return None
            self._read_folders.add(real_rel)
        self.folders += 1
        return self._base + real_rel

    def lost(self, folder: _Folder, error: OSError) -> None:
        """Record an unreadable folder; if it is the vault's own, the scan fails."""
        rel = folder[0]
        if not rel:
            is_away = is_gone(error)
            unread = f"cannot be read ({error.strerror})"
            why = "went away while it was being read" if is_away else unread
            raise _vault_error(Path(self.root), why) from None
        if not is_gone(error):
            self._skip(f"{rel}/", "unreadable")
            self.unreadable.append(rel)

    def entries(self, entries: "Iterator[os.DirEntry[str]]", folder: _Folder) -> None:
        """Collect the notes, and queue the subfolders."""
        rel, real_rel, access = folder
        is_open = access is Access.OPEN
        prefix = f"{rel}/" if rel else ""
        real_prefix = f"{real_rel}/" if real_rel else ""
        admits_name, access_below = self.rules.admits_name, self.rules.access_below
        for entry in entries:
            name = entry.name
            if name[0] == ".":
                original = in_the_cloud(name)
                if is_open and original and admits_name(rel, original):
                    self._skip(prefix + original, "cloud_placeholder")
                elif is_temporary(name):
                    self.leftovers.append(real_prefix + name)
            elif entry.is_symlink() or (WINDOWS and is_link(entry.stat(follow_symlinks=False))):
                self._add_link(entry, prefix + name, real_rel, is_open and admits_name(rel, name))
            elif entry.is_dir(follow_symlinks=False):
                below = access_below(access, prefix + name)
                if below and (is_harmless(name) or self._is_safe(prefix + name, "/")):
                    self._add_subfolder(prefix + name, real_prefix + name, below)
            elif (
                is_open
                and admits_name(rel, name)
                and (is_harmless(name) or self._is_safe(prefix + name))
            ):
                self._add_file(entry, prefix + name)

    def _add_subfolder(self, rel: str, real_rel: str, access: Access) -> None:
        # Below a followed link the folder's real path may be denied even if this path is not.
        if rel == real_rel or not self.rules.denies_dir(real_rel):
            self.todo.append((rel, real_rel, access))

    def _add_file(self, entry: "os.DirEntry[str]", rel: str, is_linked: bool = False) -> None:
        status = file_status(entry, follows=is_linked, max_bytes=self._max_bytes)
        if isinstance(status, str):
            self._skip(rel, status)
        elif status is not None:
            self.files.append(file_entry(rel, status, is_linked))

    def _add_link(
        self, entry: "os.DirEntry[str]", rel: str, real_folder: str, is_wanted: bool
    ) -> None:
        try:
            status = entry.stat()
        except OSError as error:
            if error.errno == errno.ELOOP:
                self._skip(rel, "symlink_loop")
            elif is_wanted:
                is_broken = isinstance(error, FileNotFoundError | NotADirectoryError)
                self._skip(rel, "broken_symlink" if is_broken else "unreadable")
            return
        if stat.S_ISDIR(status.st_mode):
            if self.rules.admits_dir(rel) and self._is_safe(rel, "/"):
                self.links.append((rel, real_folder))
        elif is_wanted and self._is_safe(rel):
            self._add_linked_file(entry, rel)

    def _add_linked_file(self, entry: "os.DirEntry[str]", rel: str) -> None:
        real = os.path.realpath(entry.path)
        if not is_within(self.root, real):
            self._skip(rel, "outside_vault")
            return
        folder, _, name = self._relative(real).rpartition("/")
        if not name.startswith(".") and not self.rules.denies_dir(folder):
            self._add_file(entry, rel, is_linked=True)

    def follow(self, rel: str, real_folder: str) -> None:
        """Queue a linked folder in the vault, unless it contains the link itself."""
        name = rel.rpartition("/")[2]
        place = self._base + (f"{real_folder}/{name}" if real_folder else name)
        real = os.path.realpath(place)
        if not is_within(self.root, real):
            self._skip(f"{rel}/", "outside_vault")
        elif is_within(real, os.path.realpath(self._base + real_folder)):
            self._skip(f"{rel}/", "symlink_loop")
        elif not self.rules.denies_dir(self._relative(real)):
            # If it was read already by its own path, `path` skips it.
            self.todo.append((rel, self._relative(real), self.rules.access(rel)))

    def _relative(self, real: str) -> str:
        return real[len(self._base) :].replace(os.sep, "/")

    def _is_safe(self, rel: str, mark: str = "") -> bool:
        reason = unsafe_name(rel)
        if reason is not None:
            self._skip(rel + mark, reason)
        return reason is None

    def _skip(self, rel: str, reason: str) -> None:
        self.skipped.append(SkippedFile(speakable(rel), reason))


def _root_status(root: Path) -> os.stat_result:
    try:
        status = root.stat()
    except OSError as error:
        raise _vault_error(root, f"cannot be opened ({error.strerror})") from None
    if not stat.S_ISDIR(status.st_mode):
        raise _vault_error(root, "is not a folder")
    return status


def _vault_error(root: Path, why: str) -> NotFound:
    return NotFound(
        f"The vault {root} {why}.",
        "Check that the disk is connected and the path is right; "
        "`obsidian-rag config set vault_path …` changes it.",
    )
