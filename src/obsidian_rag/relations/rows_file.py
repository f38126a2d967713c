"""Opens the index file, builds a new one beside it, promotes and discards it."""

from pathlib import Path

from obsidian_rag.config import RelationsSettings
from obsidian_rag.errors import IndexCorrupted, ReadOnly
from obsidian_rag.relations.rows import Rows
from obsidian_rag.store import Database, Schema

FILE = "relations.db"
_NEXT_FILE = "relations-next.db"
_FORMAT = "format"
# Of another version nothing is taken over: the notes are read again.
_SCHEMA = Schema("obsidian_rag.relations", 9)


def format_of(settings: RelationsSettings) -> str:
    """Identifies how indexes were built: our version, and how notes are read."""
    made_by = (settings.max_chars, settings.store_positions)
    # With auto_add_ids on, all notes need ids, not only those that change.
    return f"{_SCHEMA.version} {made_by} {settings.discount_boilerplate} {settings.auto_add_ids}"


def open_rows(home: Path, wanted: str) -> Rows:
    """Open the indexes for writing; damaged ones, and ones of another format, start empty."""
    return find_rows(home, wanted) or _new_rows(home, wanted, FILE)


def begin_anew(home: Path, wanted: str) -> Rows:
    """New indexes beside those in use; `promote` replaces the old ones."""
    return _new_rows(home, wanted, _NEXT_FILE)


def promote(home: Path) -> None:
    """Replace the indexes in use with the new ones, which must be closed.

    Between the two steps there are none; a process that dies there leaves a rebuild to the next.
    """
    discard(home)
    (home / _NEXT_FILE).rename(home / FILE)


def _new_rows(home: Path, wanted: str, name: str) -> Rows:
    discard(home, name)
    made = Rows(Database(home / name, _SCHEMA))
    made.database.put(_FORMAT, wanted)
    return made


def find_rows(home: Path, wanted: str, *, is_strict: bool = False) -> Rows | None:
    """Open the indexes; None if they are missing, damaged or of another format.

    Raises:
        IndexCorrupted: they are damaged, and `is_strict` is set.
    """
    if not (home / FILE).exists():
        return None
    try:
        database = Database(home / FILE, _SCHEMA)
        rows = Rows(database, database.facts())
        if rows.known_facts.get(_FORMAT) == wanted:
            return rows
    except IndexCorrupted:
        if is_strict:
            raise
        return None
    rows.close()
    return None


def discard(home: Path, name: str = FILE) -> None:
    """Remove the file; everything in it can be rebuilt.

    Raises:
        ReadOnly: it cannot be removed.
    """
    for suffix in ("", "-wal", "-shm"):
        file = home / f"{name}{suffix}"
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise ReadOnly(
                f"{file} is damaged and cannot be removed ({error.strerror}).",
                "Give yourself the right to write there, then run `obsidian-rag sync`.",
            ) from error


def forget_notes(rows: Rows, link_id: str) -> int:
    """Remove all notes of a vault; returns their number."""
    paths = list(rows.contents(link_id))
    if paths:
        with rows.changing():
            for path in paths:
                rows.remove(link_id, path)
    return len(paths)
