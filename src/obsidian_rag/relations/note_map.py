"""The graph behind the map of notes: ties, their kinds, and the layout.

A note without ties is tied to the notes it resembles, so that it is placed near them.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.relations.layout import Positions, Ties, groups, lay_out
from obsidian_rag.relations.memory_index import Card, MemoryIndex
from obsidian_rag.relations.place import RelationsPlace
from obsidian_rag.relations.query import admitted_cards, memory_index, related_notes

NoteKey = tuple[str, str]  # vault and path
Places = Mapping[NoteKey, tuple[float, float]]
_MIN_GROUP_NOTES = 4  # smaller groups are tied to the notes they resemble
_MAX_LIKENESS_TIES = 2
_MIN_LIKENESS = 0.35
_NOTES_PER_BATCH = 1024
_MAX_NEIGHBOURS = 48
_MAX_SUGGESTED = 12


class Tie(IntEnum):
    """Why two notes are tied; the first reason that applies."""

    RELATION = 0
    LINK = 1
    LIKENESS = 2


_STRENGTH = {Tie.RELATION: 1.5, Tie.LINK: 1.0, Tie.LIKENESS: 0.4}


@dataclass(frozen=True, slots=True)
class NoteGraph:
    """Notes sorted by vault and path; `pairs` of their numbers, each once."""

    notes: tuple[Card, ...]
    pairs: NDArray[np.int64]
    kinds: NDArray[np.int64]

    @property
    def version(self) -> str:
        """A digest of the notes and ties, which a layout depends on."""
        digest = hashlib.blake2b(digest_size=12)
        for note in self.notes:
            digest.update("\0".join(note.key).encode("utf-8", "surrogatepass") + b"\n")
        digest.update(self.pairs.tobytes() + self.kinds.tobytes())
        return digest.hexdigest()

    def laid_out(self, known: Places | None = None, *, steps: int | None = None) -> Positions:
        """Positions of the notes, starting from known ones; rough with few `steps`."""
        weights = np.array([_STRENGTH[kind] for kind in Tie])[self.kinds]
        start = None
        if known:
            nowhere = (np.nan, np.nan)
            start = np.array([known.get(note.key, nowhere) for note in self.notes])
        return lay_out(Ties(len(self.notes), self.pairs, weights), start, steps=steps)


def vault_graph(place: RelationsPlace) -> NoteGraph:
    """All related notes and the ties among them; reads no note files.

    Raises:
        IndexNotFound: nothing is indexed yet.
    """
    loaded = memory_index(place)
    with loaded.lock:
        slots = _map_slots(place, loaded, loaded.slot_of.values())
        graph = _graph(loaded, slots)
        meanings = loaded.meanings
        directions = meanings.directions(np.array(slots, dtype=np.int64)) if meanings else None
    # Without the lock: with many notes this takes seconds.
    return graph if directions is None else _with_likeness(graph, directions)


def graph_around(place: RelationsPlace, path: str, vault: str | None = None) -> NoteGraph:
    """A note, the notes tied to it, those it resembles most, and the ties among all of them.

    `vault` is a name or link id; without one, it is the primary vault.

    Raises:
        NotFound: the note is not in the index of related notes.
        IndexNotFound: nothing is indexed yet.
    """
    link_id = place.vaults.one(vault).link_id
    alike = related_notes(
        place,
        note=path,
        vault=link_id,
        limit=_MAX_SUGGESTED,
        hide_linked=True,
        with_passages=False,
    )
    loaded = memory_index(place)
    with loaded.lock:
        middle = loaded.by_path[link_id, path]
        near = sorted(
            loaded.graph.neighbours(middle),
            key=lambda slot: (-len(loaded.graph.neighbours(slot)), loaded.cards[slot].order),
        )
        suggested = [
            slot
            for one in alike.notes
            if (slot := loaded.by_path.get(one.found.card.key)) is not None
        ]
        slots = _map_slots(place, loaded, {middle, *near[:_MAX_NEIGHBOURS], *suggested})
        graph = _graph(loaded, slots)
        number = {slot: at for at, slot in enumerate(slots)}
        more = [
            _pair(number[middle], number[slot])
            for slot in suggested
            if slot in number and slot not in near
        ]
        return _add_likeness(graph, more)


def _map_slots(place: RelationsPlace, loaded: MemoryIndex, slots: Iterable[int]) -> list[int]:
    """The admitted slots in map order; folders may have been denied since they were indexed."""
    admitted = {card.key for card in admitted_cards(place, (loaded.cards[slot] for slot in slots))}
    return sorted((loaded.by_path[key] for key in admitted), key=lambda at: loaded.cards[at].key)


def _graph(loaded: MemoryIndex, slots: Sequence[int]) -> NoteGraph:
    """The relations and links among these notes."""
    number = {slot: at for at, slot in enumerate(slots)}
    found: dict[tuple[int, int], Tie] = {}
    for kind, outgoing in ((Tie.LINK, loaded.graph.outgoing), (Tie.RELATION, loaded.graph.related)):
        for slot, targets in outgoing.items():
            if slot in number:
                at = number[slot]
                found |= {_pair(at, number[one]): kind for one in targets if one in number}
    pairs = sorted(found)
    return NoteGraph(
        tuple(loaded.cards[slot] for slot in slots),
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        np.array([found[pair] for pair in pairs], dtype=np.int64),
    )


def _with_likeness(graph: NoteGraph, directions: NDArray[np.float32]) -> NoteGraph:
    """The graph, with notes of small groups tied to those they resemble."""
    count = len(graph.notes)
    label = groups(Ties(count, graph.pairs, np.ones(len(graph.pairs))))
    loose = np.nonzero(np.bincount(label, minlength=count)[label] < _MIN_GROUP_NOTES)[0]
    more: list[tuple[int, int]] = []
    for start in range(0, len(loose), _NOTES_PER_BATCH):
        few = loose[start : start + _NOTES_PER_BATCH]
        rows = np.arange(len(few))
        likeness = directions[few] @ directions.T
        likeness[rows, few] = -1
        for _ in range(_MAX_LIKENESS_TIES):  # sorting would take far longer
            best = likeness.argmax(axis=1)
            is_alike = likeness[rows, best] >= _MIN_LIKENESS
            more += map(_pair, few[is_alike].tolist(), best[is_alike].tolist())
            likeness[rows, best] = -1
    return _add_likeness(graph, more)


def _add_likeness(graph: NoteGraph, more: Sequence[tuple[int, int]]) -> NoteGraph:
    known = {(int(left), int(right)) for left, right in graph.pairs}
    added = sorted({pair for pair in more if pair not in known and pair[0] != pair[1]})
    return NoteGraph(
        graph.notes,
        np.concatenate([graph.pairs, np.array(added, dtype=np.int64).reshape(-1, 2)]),
        np.concatenate([graph.kinds, np.full(len(added), Tie.LIKENESS, dtype=np.int64)]),
    )


def _pair(left: int, right: int) -> tuple[int, int]:
    return (left, right) if left < right else (right, left)
