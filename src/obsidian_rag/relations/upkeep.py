"""Maintains the indexes of related notes between runs: checks, meaning vectors, removed vaults."""

import contextlib
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path

from obsidian_rag.config import RelationsSettings
from obsidian_rag.errors import IndexCorrupted
from obsidian_rag.relations.memory_index import MemoryIndex
from obsidian_rag.relations.rows import Rows, discard, find_rows, forget_notes, format_of
from obsidian_rag.relations.score import related
from obsidian_rag.relations.signals import note_source
from obsidian_rag.relations.vectors import refresh_meaning_vectors
from obsidian_rag.store import ChunkStore, Database, IndexState, MeaningStore

_MAX_NOTES_COMPARED = 300
_SCORE_TOLERANCE = 1e-3
# By link id and path.
_NoteKey = tuple[str, str]


def check_relations(
    home: Path, settings: RelationsSettings, *, is_deep: bool = False
) -> tuple[int, str | None]:
    """The number of related notes, and the damage found in the indexes, if any."""
    try:
        rows = find_rows(home, format_of(settings), is_strict=True)
        if rows is None:
            return 0, None
        with contextlib.closing(rows):
            if (damage := rows.database.check(is_deep=is_deep)) is not None:
                return 0, damage
            loaded = MemoryIndex(rows, use_links=True)
            if is_deep:
                rows.places([card.number for card in loaded.cards])
            return loaded.count, None
    except IndexCorrupted as error:
        return 0, error.message


def refresh_meanings(
    home: Path,
    settings: RelationsSettings,
    store: MeaningStore | None,
    chunks: ChunkStore,
    database: Database,
    paths: Collection[tuple[str, str]] | None = None,
) -> int:
    """Update the meaning vectors of notes whose passages all have theirs now.

    Returns how many notes got one. `paths`, each with a link id, limits the notes; only those with
    an outdated vector are checked. Damage is left to the next index run.
    """
    found = 0
    rows = find_rows(home, format_of(settings)) if store is not None else None
    if store is None or rows is None:
        return 0
    state = IndexState(database)
    with contextlib.suppress(IndexCorrupted), _closing_after_write(home, rows):
        for link_id in rows.link_ids().values():
            of_vault = None if paths is None else [path for of, path in paths if of == link_id]
            found += refresh_meaning_vectors(
                rows,
                chunks,
                link_id,
                store,
                paths=of_vault,
                indexed=partial(state.hashes, link_id),
            )
    return found


def forget_vault(home: Path, settings: RelationsSettings, link_id: str) -> int:
    """Remove all notes of a vault from the indexes of related notes; returns their number.

    Damage is left to the next index run.
    """
    rows = find_rows(home, format_of(settings))
    if rows is None:
        return 0
    with contextlib.suppress(IndexCorrupted), _closing_after_write(home, rows):
        return forget_notes(rows, link_id)
    return 0


@contextlib.contextmanager
def _closing_after_write(home: Path, rows: Rows) -> Iterator[Rows]:
    """Close the indexes after writing; discard them if damaged, so that they are rebuilt."""
    try:
        yield rows
    except IndexCorrupted:
        rows.close()
        discard(home)
        raise
    finally:
        rows.close()


def differing_answers(rows: Rows, clean: Rows, settings: RelationsSettings) -> list[str]:
    """Notes whose related notes differ between two indexes; of many notes, only a sample."""
    use_links = settings.use_links and settings.profile != "seed"
    ours, theirs = (MemoryIndex(one, use_links=use_links) for one in (rows, clean))
    notes = sorted({*ours.by_path, *theirs.by_path})
    compared = notes[:: len(notes) // _MAX_NOTES_COMPARED + 1]
    return [
        note[1]
        for note in compared
        if not _is_same(_scores(ours, note, settings), _scores(theirs, note, settings))
    ]


def _scores(
    loaded: MemoryIndex, note: _NoteKey, settings: RelationsSettings
) -> dict[_NoteKey, float] | None:
    slot = loaded.by_path.get(note)
    if slot is None:
        return None
    found = related(loaded, note_source(loaded, slot, ()), settings)
    return {loaded.cards[one.slot].key: one.score for one in found}


def _is_same(one: dict[_NoteKey, float] | None, other: dict[_NoteKey, float] | None) -> bool:
    if one is None or other is None or one.keys() != other.keys():
        return one is other is None
    return all(abs(score - other[note]) < _SCORE_TOLERANCE for note, score in one.items())
