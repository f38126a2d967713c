"""The walk of a vault: which folders and files there are, with one stat per file and none opened.

Indexing, LiveSync and the watcher use this walk, so they agree on what is hidden, denied, linked or
named so that the boundary would refuse it. A skipped file that the user may miss is listed with a
reason; what the rules exclude is not.
"""

import errno
import os
import stat
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from obsidian_rag.errors import SecurityViolation
from obsidian_rag.vault.boundary import check_relative, is_harmless, is_placeholder, is_within
from obsidian_rag.vault.rules import Access, Rules
from obsidian_rag.vault.temporary import is_temporary

_WINDOWS = os.name == "nt"
_ICLOUD = ".icloud"
_JUNCTION = getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", None)
# Inode numbers are unsigned 64 bits, SQLite's integers signed.
_FILE_ID_BITS = 0x7FFF_FFFF_FFFF_FFFF


class FileEntry(NamedTuple):
    """One file as the file system describes it. A tuple: 100,000 of them must be cheap."""

    rel_path: str
    size_bytes: int
    mtime_ns: int
    file_id: int | None


class SkippedFile(NamedTuple):
    """A file (or a folder, with a trailing '/') that was left out, and why."""

    rel_path: str
    reason: str


def file_entry(rel: str, status: os.stat_result, is_linked: bool = False) -> FileEntry:
    """The entry for a file with this status, the same from a walk and from a read.

    A symlinked file would share its target's id, so it has none. Windows reports the id of an open
    file only, not while walking.
    """
    file_id = None if is_linked or _WINDOWS else status.st_ino & _FILE_ID_BITS
    return FileEntry(rel, status.st_size, status.st_mtime_ns, file_id)


@dataclass(slots=True)
class Listing:
    """One folder: its path as listed, and its real one, which differs below a followed link.

    `is_link`: a link leads to the folder itself. `is_empty`: it has hidden entries at most.
    """

    rel: str
    real_rel: str
    is_link: bool = False
    is_empty: bool = True
    is_unreadable: bool = False
    # Why it could not be listed; a folder that is gone is not unreadable.
    error: OSError | None = None
    files: list[FileEntry] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)
    # Our own temporary files, perhaps left by a killed process.
    leftovers: list[str] = field(default_factory=list)

    def skip(self, rel: str, reason: str) -> None:
        """Record a file or folder that is left out; bytes that are not UTF-8 are escaped."""
        printable = rel.encode("utf-8", "backslashreplace").decode()
        self.skipped.append(SkippedFile(printable, reason))


class Walk:
    """Lists the folders of a vault that the rules admit, each once.

    `root` is the vault's real path. Without `with_files` only folders are looked at. A link to a
    file or folder in the vault is followed, unless its target's real path is in `known`; without
    `follows_links` every link is left out.
    """

    def __init__(
        self,
        root: str,
        rules: Rules,
        *,
        follows_links: bool = True,
        with_files: bool = True,
        known: Container[str] = (),
    ) -> None:
        self._root = root
        self._rules = rules
        self._follows_links = follows_links
        self._with_files = with_files
        self._known = known
        self._base = root.rstrip(os.sep) + "/"
        # Path as listed, real path, access, and whether a link leads to the folder itself.
        self._todo: list[tuple[str, str, Access, bool]] = []
        self._links: list[tuple[str, str]] = []
        self._read: set[str] = set()

    def folders(self, tops: Iterable[tuple[str, str]] = (("", ""),)) -> Iterator[Listing]:
        """These folders, given by path and real path, and all below them.

        Real folders come first, then those that only a link leads to.
        """
        self._todo += ((rel, real, self._access(rel), False) for rel, real in tops)
        while self._todo or self._links:
            if self._todo:
                rel, real_rel, access, is_link = self._todo.pop()
                if access is not Access.OPEN or real_rel not in self._read:
                    yield self._list(rel, real_rel, access, is_link=is_link)
            else:
                # Sorted, so that of several links to one folder always the same one wins.
                self._links.sort(reverse=True)
                rel, real_rel = self._links.pop()
                self._todo.append((rel, real_rel, self._access(rel), True))

    def folder(self, rel: str) -> Listing | None:
        """Only this folder; None if the rules exclude it or it was listed already."""
        real = os.path.realpath(self._base + rel)
        access = self._access(rel)
        if access is not Access.OPEN or not is_within(self._root, real):
            return None
        real_rel = self._relative(real) if rel else ""
        if real_rel in self._read or self._rules.denies_dir(real_rel):
            return None
        return self._list(rel, real_rel, access)

    def _access(self, rel: str) -> Access:
        return self._rules.access(rel) if rel else self._rules.root_access

    def _list(self, rel: str, real_rel: str, access: Access, *, is_link: bool = False) -> Listing:
        if access is Access.OPEN:
            self._read.add(real_rel)
        found = Listing(rel, real_rel, is_link)
        try:
            with os.scandir(self._base + real_rel) as entries:
                self._sort(entries, found, access)
        except OSError as error:
            found.error = error
            found.is_unreadable = not isinstance(error, FileNotFoundError | NotADirectoryError)
            if rel and found.is_unreadable:
                found.skip(f"{rel}/", "unreadable")
        return found

    def _sort(self, entries: "Iterator[os.DirEntry[str]]", found: Listing, access: Access) -> None:
        """Collect the files, and queue the subfolders."""
        rel = found.rel
        prefix = f"{rel}/" if rel else ""
        reads_files = self._with_files and access is Access.OPEN
        admits_name, access_below = self._rules.admits_name, self._rules.access_below
        is_empty = True
        for entry in entries:
            name = entry.name
            if name[0] == ".":
                self._add_hidden(name, found, reads_files=reads_files)
                continue
            is_empty = False
            if entry.is_symlink() or (_WINDOWS and is_link(entry.stat(follow_symlinks=False))):
                self._add_link(entry, prefix + name, found, reads_files and admits_name(rel, name))
            elif entry.is_dir(follow_symlinks=False):
                below = access_below(access, prefix + name)
                if below and (is_harmless(name) or _is_safe(prefix + name, found, "/")):
                    self._add_folder(name, prefix + name, found, below)
            elif (
                reads_files
                and admits_name(rel, name)
                and (is_harmless(name) or _is_safe(prefix + name, found))
            ):
                self._add_file(entry, prefix + name, found)
        found.is_empty = is_empty

    def _add_hidden(self, name: str, found: Listing, *, reads_files: bool) -> None:
        # What macOS leaves in place of a file that it moved to iCloud.
        original = name[1 : -len(_ICLOUD)] if name.endswith(_ICLOUD) else ""
        if reads_files and original and self._rules.admits_name(found.rel, original):
            found.skip(f"{found.rel}/{original}".lstrip("/"), "cloud_placeholder")
        elif is_temporary(name):
            found.leftovers.append(f"{found.real_rel}/{name}".lstrip("/"))

    def _add_folder(self, name: str, rel: str, found: Listing, access: Access) -> None:
        real_rel = f"{found.real_rel}/{name}" if found.real_rel else name
        # Below a followed link the folder's real path may be denied even if this path is not.
        if rel == real_rel or not self._rules.denies_dir(real_rel):
            self._todo.append((rel, real_rel, access, False))

    def _add_file(
        self, entry: "os.DirEntry[str]", rel: str, found: Listing, *, is_linked: bool = False
    ) -> None:
        try:
            status = entry.stat(follow_symlinks=is_linked)
        except FileNotFoundError:
            return
        except OSError:
            found.skip(rel, "unreadable")
            return
        if reason := _skip_reason(status, self._rules.max_file_bytes):
            found.skip(rel, reason)
        else:
            found.files.append(file_entry(rel, status, is_linked))

    def _add_link(
        self, entry: "os.DirEntry[str]", rel: str, found: Listing, is_wanted: bool
    ) -> None:
        if not self._follows_links:
            if _is_safe(rel, found):
                found.skip(rel, "symlink")
            return
        try:
            status = entry.stat()
        except OSError as error:
            if error.errno == errno.ELOOP:
                found.skip(rel, "symlink_loop")
            elif is_wanted:
                is_broken = isinstance(error, FileNotFoundError | NotADirectoryError)
                found.skip(rel, "broken_symlink" if is_broken else "unreadable")
            return
        if stat.S_ISDIR(status.st_mode):
            if self._rules.admits_dir(rel) and _is_safe(rel, found, "/"):
                self._add_linked_folder(os.path.realpath(entry.path), rel, found)
        elif is_wanted and _is_safe(rel, found):
            self._add_linked_file(entry, rel, found)

    def _add_linked_file(self, entry: "os.DirEntry[str]", rel: str, found: Listing) -> None:
        real = os.path.realpath(entry.path)
        if not is_within(self._root, real):
            found.skip(rel, "outside_vault")
            return
        folder, _, name = self._relative(real).rpartition("/")
        if not name.startswith(".") and not self._rules.denies_dir(folder):
            self._add_file(entry, rel, found, is_linked=True)

    def _add_linked_folder(self, real: str, rel: str, found: Listing) -> None:
        """Queue a linked folder in the vault, unless it contains the link itself."""
        if not is_within(self._root, real):
            found.skip(f"{rel}/", "outside_vault")
        elif is_within(real, os.path.realpath(self._base + found.real_rel)):
            found.skip(f"{rel}/", "symlink_loop")
        elif real not in self._known and not self._rules.denies_dir(self._relative(real)):
            self._links.append((rel, self._relative(real)))

    def _relative(self, real: str) -> str:
        return real[len(self._base) :].replace(os.sep, "/")


def _skip_reason(status: os.stat_result, max_bytes: int) -> str | None:
    """Why a file is skipped that is not a regular one of reasonable size on this disk."""
    if stat.S_ISLNK(status.st_mode):
        return "symlink"
    if not stat.S_ISREG(status.st_mode):
        return "not_a_file"
    if status.st_size > max_bytes:
        return "too_large"
    return "cloud_placeholder" if is_placeholder(status) else None


def _is_safe(rel: str, found: Listing, mark: str = "") -> bool:
    """Whether the boundary would read this path; if not, it is skipped with the reason."""
    try:
        rel.encode()
        check_relative(rel)
    except UnicodeEncodeError:
        found.skip(rel + mark, "not_utf8_name")
    except SecurityViolation:
        found.skip(rel + mark, "unsafe_name")
    else:
        return True
    return False


def is_link(status: os.stat_result) -> bool:
    """Whether this is a symlink or a Windows junction."""
    is_junction = _JUNCTION is not None and getattr(status, "st_reparse_tag", 0) == _JUNCTION
    return stat.S_ISLNK(status.st_mode) or is_junction
