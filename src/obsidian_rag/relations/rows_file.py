"""The file of the six indexes: opened, made anew beside the one in use, promoted, discarded."""

from pathlib import Path

from obsidian_rag.config import RelationsSettings
from obsidian_rag.errors import IndexCorrupted, ReadOnly
from obsidian_rag.relations.rows import Rows
from obsidian_rag.store import Database

FILE = "relations.db"
_NEXT_FILE = "relations-next.db"
_FORMAT = "format"
_VERSION = 5


def format_of(settings: RelationsSettings) -> str:
    """What indexes must agree in to be used together: our version, and how notes are read."""
    made_by = (settings.ngram_size, settings.max_chars, settings.store_positions)
    # A user who has ids added wants them in all notes, not only in those that change.
    return f"{_VERSION} {made_by} {settings.discount_boilerplate} {settings.auto_add_ids}"


def open_rows(home: Path, wanted: str) -> Rows:
    """The indexes, to be written; ones that are damaged or made otherwise begin afresh."""
    return find_rows(home, wanted) or _new_rows(home, wanted, FILE)


def begin_anew(home: Path, wanted: str) -> Rows:
    """New indexes beside those in use, whose place they take when `promote` says so."""
    return _new_rows(home, wanted, _NEXT_FILE)


def promote(home: Path) -> None:
    """Put the new indexes, which nobody has open, in the place of those in use.

    Between the two steps there are none, and whoever finds that makes them again.
    """
    discard(home)
    (home / _NEXT_FILE).rename(home / FILE)


def _new_rows(home: Path, wanted: str, name: str) -> Rows:
    discard(home, name)
    made = Rows(Database(home / name, "obsidian_rag.relations"))
    made.database.put(_FORMAT, wanted)
    return made


def find_rows(home: Path, wanted: str, *, is_strict: bool = False) -> Rows | None:
    """The indexes, if there are any that are sound and made as wanted.

    Raises:
        IndexCorrupted: they are damaged, and `is_strict` wants to know.
    """
    if not (home / FILE).exists():
        return None
    try:
        rows = Rows(Database(home / FILE, "obsidian_rag.relations"))
        if rows.database.get(_FORMAT) == wanted:
            return rows
    except IndexCorrupted:
        if is_strict:
            raise
        return None
    rows.close()
    return None


def discard(home: Path, name: str = FILE) -> None:
    """Remove the file: everything in it can be built again.

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


def forget_notes(rows: Rows, link_id: str, ngram_size: int) -> int:
    """Take all notes of a vault out; how many there were."""
    paths = list(rows.contents(link_id))
    if paths:
        with rows.changing():
            for path in paths:
                rows.remove(link_id, path, ngram_size)
            rows.is_unsettled = True
    return len(paths)
