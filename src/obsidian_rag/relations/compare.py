"""Whether indexes of related notes give the answers of new ones, which are made for it."""

import contextlib
import tempfile
from pathlib import Path

from obsidian_rag.config import RelationsSettings
from obsidian_rag.relations.consumer import RelationsConsumer
from obsidian_rag.relations.memory_index import MemoryIndex
from obsidian_rag.relations.place import RelationsPlace, format_now
from obsidian_rag.relations.rows import Rows
from obsidian_rag.relations.rows_file import find_rows
from obsidian_rag.relations.score import related
from obsidian_rag.relations.source import note_source
from obsidian_rag.relations.vectors import refresh_vectors

_MOST_COMPARED = 300
_SAME = 1e-3
# By link id and path.
_Note = tuple[str, str]


def differing_relations(place: RelationsPlace) -> list[str]:
    """Notes whose related notes are not those that an index made just now would tell.

    Raises:
        IndexCorrupted: the indexes are damaged.
    """
    rows = find_rows(place.config.home, format_now(place), is_strict=True)
    if rows is None:
        return []
    settings = place.config.settings.relations
    # To compare is not to write: no note gets an id for it.
    unwritten = settings.model_copy(update={"auto_add_ids": False})
    with (
        contextlib.closing(rows),
        tempfile.TemporaryDirectory(dir=place.config.home, prefix=".compared-") as folder,
        RelationsConsumer(Path(folder), unwritten) as clean,
    ):
        clean.begin("")
        vaults = {vault.link_id: vault for vault in place.vaults}
        for vault in vaults.values():
            place.hand_over(vault, clean, {})
        # Places that were not kept are read again.
        while stale := clean.settle():
            for link_id in {of for of, _ in stale}:
                paths = [path for of, path in stale if of == link_id]
                place.hand_over(vaults[link_id], clean, {}, paths)
        for link_id in vaults:
            refresh_vectors(clean.rows, place.chunks, link_id)
        return differing_answers(rows, clean.rows, settings)


def differing_answers(rows: Rows, clean: Rows, settings: RelationsSettings) -> list[str]:
    """Notes of which two indexes tell other related notes; of many notes some are asked for."""
    use_links = settings.use_links and settings.profile != "seed"
    ours, theirs = (MemoryIndex(one, use_links=use_links) for one in (rows, clean))
    notes = sorted({*ours.by_path, *theirs.by_path})
    compared = notes[:: len(notes) // _MOST_COMPARED + 1]
    return [
        note[1]
        for note in compared
        if not _is_same(_told(ours, note, settings), _told(theirs, note, settings))
    ]


def _told(
    loaded: MemoryIndex, note: _Note, settings: RelationsSettings
) -> dict[_Note, float] | None:
    slot = loaded.by_path.get(note)
    if slot is None:
        return None
    found = related(loaded, note_source(loaded, slot, ()), settings)
    return {loaded.cards[one.slot].key: one.score for one in found}


def _is_same(one: dict[_Note, float] | None, other: dict[_Note, float] | None) -> bool:
    if one is None or other is None or one.keys() != other.keys():
        return one is other is None
    return all(abs(score - other[note]) < _SAME for note, score in one.items())
