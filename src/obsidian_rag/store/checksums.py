"""Sizes and hashes of a table's files: LanceDB never changes a file, so any difference is damage.

They are kept in one small file in the table's folder, so that they move with the table. The writer
adds new files after each commit. A file with its recorded mtime and inode is trusted by a quick
check; one that was touched since is hashed before anything reads it.
"""

import contextlib
import os
import secrets
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import xxhash

NAME = "checksums.txt"
_TITLE = "obsidian-rag checksums 1"
_PARTS = ("_versions", "data", "_deletions", "_indices", "_transactions")
# LanceDB rewrites this file, and works without it.
_REWRITTEN_FILE = "_versions/latest_version_hint.json"
_VERSION = ".manifest"
_BLOCK_BYTES = 1 << 20
_MAGIC = b"LANC"


class Entry(NamedTuple):
    """A file as it was written."""

    size: int
    mtime_ns: int
    inode: int
    hash: str


class Stamp(NamedTuple):
    """What changes when a file is written to."""

    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class Record:
    """The recorded files; not settled while files are about to be removed."""

    files: dict[str, Entry]
    is_settled: bool = True


class Unreadable(Exception):
    """The record itself is damaged."""


def read(folder: Path) -> Record | None:
    """The record of this table, if there is one.

    Raises:
        Unreadable: it is damaged.
    """
    try:
        data = (folder / NAME).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unreadable from error
    body, _, sum_line = data.rstrip(b"\n").rpartition(b"\n")
    if sum_line.decode("ascii", "replace") != xxhash.xxh3_128_hexdigest(body):
        raise Unreadable
    title, state, *lines = body.decode("utf-8", "surrogateescape").split("\n")
    if title != _TITLE:
        raise Unreadable
    files = {}
    for line in lines:
        digest, size, mtime_ns, inode, path = line.split(" ", 4)
        files[path] = Entry(int(size), int(mtime_ns), int(inode), digest)
    return Record(files, state == "settled")


def record(folder: Path, *, begins: bool = False) -> None:
    """Add new files and drop deleted ones; never replaces the hash of a known file.

    A missing record is created only if `begins`: the table is new, or was verified.
    """
    try:
        before = read(folder)
    except Unreadable:
        return  # checks report it; only a new table repairs it
    if before is None and not begins:
        return
    known = before.files if before else {}
    files = {
        path: _make_entry(folder, path, stamp, known.get(path)) for path, stamp in _walk(folder)
    }
    if before is None or not before.is_settled or files != known:
        _write(folder, Record(files))


def unsettle(folder: Path) -> None:
    """Mark that files are about to be removed: until the next record, missing is not damage."""
    with contextlib.suppress(Unreadable):
        before = read(folder)
        if before is not None:
            _write(folder, Record(before.files, is_settled=False))


def find_damage(folder: Path, verified: dict[str, Stamp], most_bytes: int) -> str | None:
    """A description of damage to the table's files, if any.

    `verified` has the files hashed before, and this check adds to it. Apart from files touched
    since they were written, at most about `most_bytes` are hashed.
    """
    while True:
        try:
            found = read(folder)
        except Unreadable:
            return f"{NAME} is not what was written"
        if found is None:
            verified.clear()
            return None
        damage = _compare(folder, found, verified, most_bytes)
        # The writer may have compacted or swapped the files meanwhile.
        with contextlib.suppress(Unreadable):
            if damage is not None and read(folder) != found:
                continue
        return damage


def find_cut_off(folder: Path, verified: Collection[str]) -> str | None:
    """A description of truncated files among those that were not hashed."""
    versions = list(folder.glob("_versions/*.manifest"))
    if not versions:
        return "it has no version that can be opened"
    for file in (*versions, *folder.glob("data/*.lance")):
        if f"{file.parent.name}/{file.name}" in verified:
            continue
        with contextlib.suppress(FileNotFoundError), file.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - len(_MAGIC)))
            if stream.read() != _MAGIC:
                return f"{file.name} is cut off"
    return None


def _compare(
    folder: Path, record: Record, verified: dict[str, Stamp], most_bytes: int
) -> str | None:
    is_current = record.is_settled and not _has_newer(folder, record)
    left = most_bytes
    above = os.fspath(folder)
    for path, entry in record.files.items():
        stamp = _read_stamp(f"{above}/{path}")
        if stamp is None:
            if is_current:
                return f"{path} is missing"
            continue
        if stamp.size != entry.size:
            return f"{path} has {stamp.size} bytes instead of {entry.size}"
        if verified.get(path) == stamp:
            continue
        is_touched = stamp != entry[:3]
        if not is_touched and left < stamp.size:
            continue
        left -= stamp.size
        try:
            if _hash(folder / path) != entry.hash:
                return f"{path} is not what was written"
        except OSError as error:
            return f"{path} cannot be read ({error.strerror})"
        verified[path] = stamp
    return None


def _has_newer(folder: Path, record: Record) -> bool:
    """Whether the table has versions newer than the record: its writer died or is at work."""
    try:
        names = [file.name for file in (folder / "_versions").iterdir()]
    except OSError:
        return False
    return any(f"_versions/{n}" not in record.files for n in names if n.endswith(_VERSION))


def _make_entry(folder: Path, path: str, stamp: Stamp, known: Entry | None) -> Entry:
    if known is not None and known[:3] == stamp:
        return known
    digest = _hash(folder / path)
    # A copied folder has other mtimes and inodes; damage has other content.
    if known is not None and known.hash != digest:
        return known
    return Entry(*stamp, digest)


def _walk(folder: Path) -> Iterator[tuple[str, Stamp]]:
    for part in _PARTS:
        yield from _walk_below(os.fspath(folder / part), part)


def _walk_below(where: str, path: str) -> Iterator[tuple[str, Stamp]]:
    """The files below a folder; uses plain strings for speed, as it runs after every edit."""
    try:
        with os.scandir(where) as found:
            entries = list(found)
    except OSError:
        return
    for entry in entries:
        below = f"{path}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _walk_below(entry.path, below)
        elif below != _REWRITTEN_FILE:
            with contextlib.suppress(OSError):  # gone meanwhile
                yield below, _stamp_of(entry.stat())


def _read_stamp(file: str) -> Stamp | None:
    try:
        return _stamp_of(os.stat(file))  # noqa: PTH116  (a Path takes longer than the call)
    except OSError:
        return None


def _stamp_of(found: os.stat_result) -> Stamp:
    return Stamp(found.st_size, found.st_mtime_ns, found.st_ino)


def _hash(file: Path) -> str:
    digest = xxhash.xxh3_128()
    with file.open("rb", buffering=0) as stream:
        while block := stream.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _write(folder: Path, record: Record) -> None:
    lines = [_TITLE, "settled" if record.is_settled else "unsettled"]
    lines += [
        f"{entry.hash} {entry.size} {entry.mtime_ns} {entry.inode} {path}"
        for path, entry in sorted(record.files.items())
    ]
    body = "\n".join(lines).encode("utf-8", "surrogateescape")
    temporary = folder / f".{NAME}.{secrets.token_hex(4)}.tmp"
    try:
        temporary.write_bytes(body + b"\n" + xxhash.xxh3_128_hexdigest(body).encode() + b"\n")
        temporary.replace(folder / NAME)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
