"""What `reindex` does first: set aside what is damaged, save what nobody can build again."""

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

from obsidian_rag.errors import IndexCorrupted, ObsidianRagError
from obsidian_rag.store.database import Database, now
from obsidian_rag.store.salvage import salvage

_SUFFIXES = ("", "-wal", "-shm")
_NAMES = {
    "memory": "facts",
    "vault_link": "links",
    "livesync_file": "LiveSync records",
    "livesync_trash": "entries of the trash",
}


def repaired(file: Path, opened: Callable[[], Database], let_go: Callable[[], None]) -> str:
    """Make a rebuild possible, whatever is damaged; what was done, in words, or nothing.

    `opened` opens the file, or a new one where there is none; `let_go` closes it.
    """
    if _is_sound(opened):
        return ""
    let_go()
    aside = _set_aside(file)
    saved: dict[str, int] = {}
    with contextlib.suppress(ObsidianRagError, sqlite3.Error, OSError):
        saved = salvage(aside, opened())
    told = ", ".join(f"{count} {_NAMES[name]}" for name, count in saved.items() if name in _NAMES)
    return f"state.db was damaged and is kept as {aside}; saved from it: {told or 'nothing'}."


def _is_sound(opened: Callable[[], Database]) -> bool:
    with contextlib.suppress(IndexCorrupted):
        return opened().check(is_deep=True) is None
    return False


def _set_aside(file: Path) -> Path:
    """Keep a broken file under another name, with its log: it may be read again some day."""
    stamp = now()[:19].replace(":", "")
    aside = file.with_name(f"{file.name}.damaged-{stamp}")
    for suffix in _SUFFIXES:
        part = file.with_name(file.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    return aside
