"""Finds changed files: compares the files on disk with the manifest."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from obsidian_rag.store import Change, ChangeType, Database, KnownFile, Manifest
from obsidian_rag.vault import FileEntry, Vault

# A file may change again within one tick of the file system's clock without a trace. Kernels
# tick every 4 to 10 ms; FAT and HFS+ keep whole or even seconds.
_TICK_NS = 20_000_000
_COARSE_TICK_NS = 2_000_000_000
UNTRUSTED = 0
# Large batches start with the first files (the newest of a new vault), then a sample from the
# whole vault, so that text shared by many notes is known early.
_FIRST_FILES = 256
_SAMPLE_FILES = 1024
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Difference:
    """Differences between a walk and the manifest."""

    created: list[FileEntry]
    updated: list[FileEntry]
    vanished: list[str]
    unchanged: int


def compare(
    seen: Iterable[FileEntry], known: Mapping[str, KnownFile], unreadable: tuple[str, ...]
) -> Difference:
    """Find new, changed and vanished files by metadata alone.

    Files in unreadable folders do not count as vanished.
    """
    created, updated, paths, unchanged = [], [], set(), 0
    for entry in seen:
        path, size, mtime, file_id = entry
        paths.add(path)
        before = known.get(path)
        if before is None:
            created.append(entry)
        elif before[0] == size and before[1] == mtime and before[2] == file_id:
            unchanged += 1
        else:
            updated.append(entry)
    vanished = [path for path in known if path not in paths]
    if unreadable:
        folders = tuple(f"{folder}/" for folder in unreadable)
        vanished = [path for path in vanished if not path.startswith(folders)]
    return Difference(created, updated, vanished, unchanged)


def changes(
    difference: Difference,
    known: Mapping[str, KnownFile],
    hash_of: Callable[[str], str | None],
) -> list[Change]:
    """The work for a difference, with renames detected by file id, then by content.

    `hash_of` reads a file; it is asked only for new files as large as a vanished one.
    """
    by_id, by_content = _group_vanished(difference.vanished, known)
    sizes = {known[path].size_bytes for path in difference.vanished}
    moved: set[str] = set()
    found: list[Change] = []
    for entry in difference.created:
        old = by_id.get(entry.file_id) if entry.file_id is not None else None
        if (old is None or old in moved) and entry.size_bytes in sizes:
            candidates = by_content.get(hash_of(entry.rel_path), [])
            old = next((path for path in candidates if path not in moved), None)
        if old is None or old in moved:
            found.append(Change(entry.rel_path, ChangeType.CREATE))
        else:
            moved.add(old)
            found.append(Change(entry.rel_path, ChangeType.RENAME, old_path=old))
    found += (Change(entry.rel_path, ChangeType.UPDATE) for entry in difference.updated)
    found += (Change(path, ChangeType.DELETE) for path in difference.vanished if path not in moved)
    return found


def spread(files: Sequence[T]) -> Sequence[T]:
    """Reorder many files: the first ones, then a sample of the rest, then the others."""
    step = (len(files) - _FIRST_FILES) // _SAMPLE_FILES
    if step < 2:
        return files
    first, rest = files[:_FIRST_FILES], files[_FIRST_FILES:]
    return [*first, *rest[::step], *(one for at, one in enumerate(rest) if at % step)]


def _group_vanished(
    vanished: list[str], known: Mapping[str, KnownFile]
) -> tuple[dict[int, str], dict[str | None, list[str]]]:
    by_id: dict[int, str] = {}
    by_content: dict[str | None, list[str]] = {}
    for path in vanished:
        file = known[path]
        if file.file_id is not None:
            by_id[file.file_id] = path
        if file.content_hash is not None:
            by_content.setdefault(file.content_hash, []).append(path)
    return by_id, by_content


def trusted_mtime(mtime_ns: int, read_at_ns: int) -> int:
    """The mtime to remember, or UNTRUSTED when the file was written just before it was read.

    An unsettled file is read again by the next run, because a change within the same tick of the
    clock would look like no change at all.
    """
    tick = _COARSE_TICK_NS if mtime_ns % 1_000_000_000 == 0 else _TICK_NS
    return mtime_ns if read_at_ns - mtime_ns > tick else UNTRUSTED


def changed_files(vaults: Iterable[Vault], database: Database, seconds: float) -> tuple[int, bool]:
    """How many files differ from the index, and whether the walk finished in time.

    Paused vaults are skipped. An unfinished walk does not count missing files. A file whose
    timestamp is merely too recent to be trusted does not count as changed.

    Raises:
        NotFound: the vault's folder is missing.
    """
    deadline = time.monotonic() + seconds
    changed, is_complete = 0, True
    for vault in vaults:
        if not vault.is_paused:
            differing, is_whole = _count_changed(vault, database, deadline)
            changed, is_complete = changed + differing, is_complete and is_whole
    return changed, is_complete


def _count_changed(vault: Vault, database: Database, deadline: float) -> tuple[int, bool]:
    known = Manifest(database).known(vault.link_id)
    found = vault.scan(stop=lambda: time.monotonic() > deadline)
    difference = compare(found.files, known, found.unreadable_folders)
    updated = sum(
        1
        for entry in difference.updated
        if known[entry.rel_path].mtime_ns != UNTRUSTED
        or known[entry.rel_path].size_bytes != entry.size_bytes
    )
    vanished = len(difference.vanished) if found.is_complete else 0
    return len(difference.created) + updated + vanished, found.is_complete
