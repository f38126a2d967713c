"""Whether two indexes of related notes give the same answers."""

from obsidian_rag.config import RelationsSettings
from obsidian_rag.relations.memory_index import MemoryIndex
from obsidian_rag.relations.rows import Rows
from obsidian_rag.relations.score import related
from obsidian_rag.relations.source import note_source

_MOST_COMPARED = 300
_SAME = 1e-3
# By link id and path.
_Note = tuple[str, str]


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
