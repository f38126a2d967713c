"""What is in a vault now: its notes for the index, every file for LiveSync, or a few of them.

An unreadable folder is distinguished from an empty one, and the vault's own folder from another one
at the same path, so that what was not seen is not taken for deleted.
"""

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from obsidian_rag.errors import NotFound
from obsidian_rag.vault.rules import EVERY_FILE, Rules, folded_path
from obsidian_rag.vault.walk import FileEntry, Listing, SkippedFile, Walk, file_entry

_COUNT_INTERVAL_FILES = 256


class RootIdentity(NamedTuple):
    """Identifies the folder itself: a mount point without its disk is a different folder."""

    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class Scan:
    """The notes of a vault. Only a complete scan shows that notes are gone."""

    files: list[FileEntry]
    skipped: list[SkippedFile]
    folders: int
    unreadable_folders: tuple[str, ...] = ()
    is_complete: bool = True
    # Our own temporary files, perhaps left by a killed process.
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
    listings: list[Listing] = []
    is_complete = True
    count = counted = 0
    for listing in Walk(os.path.realpath(root), rules).folders():
        listings.append(listing)
        count += len(listing.files)
        if on_count and count - counted >= _COUNT_INTERVAL_FILES:
            counted = count
            on_count(counted)
        if stop and stop():
            is_complete = False
            break
    found = _to_scan(root, listings, is_complete=is_complete)
    # A disk removed during the walk looks like a vault without notes.
    if not os.path.samestat(before, _root_status(root)):
        raise _vault_error(root, "was replaced while it was being read")
    if on_count and count != counted:
        on_count(count)
    return found


def scan_paths(root: Path, rules: Rules, paths: Iterable[str]) -> Scan:
    """Scan these files only, by listing their folders; missing ones are left out.

    A folder among them makes the scan incomplete: only a walk can list its notes.

    Raises:
        NotFound: the vault's folder is not there.
    """
    _root_status(root)
    walk = Walk(os.path.realpath(root), rules)
    wanted = set(paths)
    folders = sorted({path.rpartition("/")[0] for path in wanted})
    found = _to_scan(root, [one for folder in folders if (one := walk.folder(folder))])
    files = [entry for entry in found.files if entry.rel_path in wanted]
    skipped = [item for item in found.skipped if item.rel_path in wanted]
    missing = wanted.difference(entry.rel_path for entry in files)
    is_complete = not any(os.path.isdir(os.path.join(root, path)) for path in missing)  # noqa: PTH112, PTH118  (called often)
    return Scan(files, skipped, found.folders, found.unreadable_folders, is_complete)


def _to_scan(root: Path, listings: Sequence[Listing], *, is_complete: bool = True) -> Scan:
    for listing in listings:
        if listing.error is not None and not listing.rel:
            unread = f"cannot be read ({listing.error.strerror})"
            went_away = "went away while it was being read"
            raise _vault_error(root, unread if listing.is_unreadable else went_away)
    return Scan(
        [entry for listing in listings for entry in listing.files],
        [item for listing in listings for item in listing.skipped],
        len(listings),
        tuple(listing.rel for listing in listings if listing.is_unreadable),
        is_complete,
        tuple(name for listing in listings for name in listing.leftovers),
    )


@dataclass(frozen=True, slots=True)
class FileWalk:
    """Every file of a vault. A known one that is not in `files` nor hidden by `unseen` is gone."""

    files: list[FileEntry]
    # Path of a file or folder that exists but was left out, and why; "" is the root itself.
    unseen: Mapping[str, str]
    is_complete: bool
    is_empty: bool
    # Our own temporary files, perhaps left by a killed process.
    leftovers: tuple[str, ...] = ()
    _hiding: frozenset[str] = frozenset()

    @property
    def has_root(self) -> bool:
        """Whether the vault's folder was there from the beginning to the end."""
        return "" not in self.unseen

    def may_hide(self, rel: str) -> bool:
        """Whether this file may exist although the walk did not find it."""
        if not self.has_root:
            return True
        # Folded: the disk may spell a folder in another case than the database does.
        place = folded_path(rel)
        while place and place not in self._hiding:
            place = place.rpartition("/")[0]
        return bool(place)


def walk_files(root: Path) -> FileWalk:
    """Every regular file below `root` that is not hidden; a missing root is not an error.

    What exists but cannot be synced (a symlink, an unreadable folder, a file that is only in the
    cloud) is in `unseen`.
    """
    walk = Walk(os.path.realpath(root), EVERY_FILE, follows_links=False)
    try:
        before = root.stat()
        listings = list(walk.folders())
        after = root.stat()
        if listings[0].error is not None:
            raise listings[0].error
    except (FileNotFoundError, NotADirectoryError):
        return _without_root("missing")
    except OSError:
        return _without_root("unreadable")
    # A disk removed during the walk looks like a vault without files.
    if not os.path.samestat(before, after):
        return _without_root("replaced")
    unseen = {
        item.rel_path.removesuffix("/"): item.reason
        for listing in listings
        for item in listing.skipped
    }
    return FileWalk(
        [entry for listing in listings for entry in listing.files],
        unseen,
        is_complete=not any(listing.is_unreadable for listing in listings),
        is_empty=listings[0].is_empty,
        leftovers=tuple(name for listing in listings for name in listing.leftovers),
        _hiding=frozenset(map(folded_path, unseen)),
    )


def _without_root(reason: str) -> FileWalk:
    return FileWalk([], {"": reason}, is_complete=False, is_empty=True)


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


def is_same_file(root: Path, known: FileEntry) -> bool | None:
    """Whether a file still has this entry, by one stat; None if it is gone."""
    try:
        status = os.stat(os.path.join(root, known.rel_path))  # noqa: PTH116, PTH118  (called often)
    except OSError:
        return None
    return file_entry(known.rel_path, status, is_linked=known.file_id is None) == known


def root_identity(root: Path) -> RootIdentity | None:
    """The identity of a vault's folder; None if there is no such folder."""
    try:
        status = root.stat()
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    return RootIdentity(status.st_dev, status.st_ino)


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
