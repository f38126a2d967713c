"""What tells a vault's folder from another one at the same path, and which of its notes are there.

A mount point without its disk, an unmounted share and a restored copy all have the right path.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from obsidian_rag.vault.scan import FileEntry, file_entry


class RootIdentity(NamedTuple):
    """The folder itself, whatever it is called."""

    device: int
    inode: int


def root_identity(root: Path) -> RootIdentity | None:
    """The identity of a vault's folder; None if there is no such folder."""
    try:
        status = root.stat()
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    return RootIdentity(status.st_dev, status.st_ino)


def find_files(root: Path, paths: Iterable[str]) -> Mapping[str, FileEntry]:
    """Those of a few files that are there; no folder is walked."""
    found = {}
    for path in paths:
        file = os.path.join(root, path)  # noqa: PTH118  (called often)
        try:
            found[path] = file_entry(path, os.stat(file), os.path.islink(file))  # noqa: PTH114, PTH116
        except OSError:
            continue
    return found
