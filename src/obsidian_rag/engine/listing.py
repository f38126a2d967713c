"""The indexed notes in the order of their paths, a page at a time.

Threat: a list of notes tells an agent what the user keeps to himself. Notes that say `rag: false`
are in no index; those that say `rag: private` are left out here, and so is every note of which
the index does not know yet whether it does.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from obsidian_rag.engine.asking import take_up_changes
from obsidian_rag.engine.engine import Engine
from obsidian_rag.errors import IndexCorrupted, IndexNotFound
from obsidian_rag.store import Links, quoted, titles_of


@dataclass(frozen=True, slots=True)
class ListedNote:
    """A note that an agent may know of."""

    path: str
    title: str


def list_notes(engine: Engine, after: str, limit: int) -> tuple[ListedNote, ...]:
    """The next notes of the primary vault whose paths follow `after`; empty without an index.

    Raises:
        IndexCorrupted: the index cannot be read.
    """
    try:
        take_up_changes(engine)
    except IndexNotFound:
        return ()
    link = Links(engine.database).primary()
    if link is None:
        return ()
    found: list[ListedNote] = []
    while len(found) < limit:
        paths = _indexed(engine, link.link_id, after, limit)
        # Folders may have been denied since; the next sync takes their notes out of the index.
        admitted = [path for path in paths if engine.rules.admits_file(path)]
        found += _open_notes(engine, link.link_id, admitted)
        if len(paths) < limit:
            break
        after = paths[-1]
    return tuple(found[:limit])


def _indexed(engine: Engine, link_id: str, after: str, limit: int) -> list[str]:
    """Paths of notes with text."""
    rows = engine.database.rows(
        "SELECT rel_path FROM vault_file_index_state WHERE link_id = ? AND rel_path > ?"
        " AND embedding_status = 'indexed' AND chunk_count > 0 ORDER BY rel_path LIMIT ?",
        (link_id, after, limit),
    )
    return [str(row[0]) for row in rows]


def _open_notes(engine: Engine, link_id: str, paths: Sequence[str]) -> list[ListedNote]:
    if not paths:
        return []
    try:
        titles = _titles(engine, link_id, paths)
    except IndexCorrupted:
        # Another process may have swapped in a new index under our feet: look once more.
        engine.chunks.close()
        titles = _titles(engine, link_id, paths)
    return [ListedNote(path, titles[path]) for path in paths if path in titles]


def _titles(engine: Engine, link_id: str, paths: Sequence[str]) -> dict[str, str]:
    """The titles of those notes that are not private, as their first chunks have them."""
    names = ", ".join(quoted(path) for path in paths)
    condition = (
        f"link_id = {quoted(link_id)} AND chunk_index = 0 AND is_private = false"
        f" AND source_file IN ({names})"
    )
    return titles_of(engine.chunks, condition, len(paths))
