"""What `reindex` does first: set aside what is damaged, save what nobody can build again."""

import contextlib
import sqlite3
from pathlib import Path

from obsidian_rag.engine.engine import Engine
from obsidian_rag.errors import IndexCorrupted, ObsidianRagError
from obsidian_rag.store import now, salvage

_SUFFIXES = ("", "-wal", "-shm")
_NAMES = {
    "memory": "facts",
    "vault_link": "links",
    "livesync_file": "LiveSync records",
    "livesync_trash": "entries of the trash",
}


def repaired(engine: Engine) -> str:
    """Make a rebuild possible, whatever is damaged; what was done, in words, or nothing."""
    if _is_sound(engine):
        return ""
    engine.close()
    aside = _set_aside(engine.config.database)
    saved: dict[str, int] = {}
    with contextlib.suppress(ObsidianRagError, sqlite3.Error, OSError):
        saved = salvage(aside, engine.database)
    told = ", ".join(f"{count} {_NAMES[name]}" for name, count in saved.items() if name in _NAMES)
    return f"state.db was damaged and is kept as {aside}; saved from it: {told or 'nothing'}."


def _is_sound(engine: Engine) -> bool:
    with contextlib.suppress(IndexCorrupted):
        return engine.database.check(is_deep=True) is None
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
