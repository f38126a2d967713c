"""The map of notes: their graph, laid out once, stored in map.json, updated in its own thread.

A note without ties is tied to the notes it resembles, so that it is placed near them.

Binary format:

4 bytes        length of the head
the head       JSON, padded with spaces to a multiple of 4
positions      2 numbers of 16 bits per note, in units of `unit` from the head
ties           2 numbers per tie, of 16 bits or, if `is_wide`, 32; relations first, then links,
               then likeness; the head has the number of each in `ties`
"""

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.config import write_atomically
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.relations.layout import Edges, Positions, groups, lay_out
from obsidian_rag.relations.memory_index import Card, MemoryIndex
from obsidian_rag.relations.query import RelationParts, memory_index, related_notes

NoteKey = tuple[str, str]  # vault and path
Places = Mapping[NoteKey, tuple[float, float]]
_MIN_GROUP_NOTES = 4  # smaller groups are tied to the notes they resemble
_MAX_LIKENESS_TIES = 2
_MIN_LIKENESS = 0.35
_NOTES_PER_BATCH = 1024
_MAX_NEIGHBOURS = 48
_MAX_SUGGESTED = 12
MAP_FILE = "map.json"
# Up to this many notes are laid out while the client waits.
_MAX_NOTES_AT_ONCE = 400
_ROUGH_STEPS = 8
_MAX_COORDINATE = 65535
_log = logging.getLogger(__name__)


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
        return lay_out(Edges(len(self.notes), self.pairs, weights), start, steps=steps)


def vault_graph(parts: RelationParts) -> NoteGraph:
    """All related notes and the ties among them; reads no note files.

    Raises:
        IndexNotFound: nothing is indexed yet.
    """
    loaded = memory_index(parts)
    with loaded.lock:
        slots = _map_slots(parts, loaded, loaded.slot_of.values())
        graph = _graph(loaded, slots)
        meanings = loaded.meanings
        directions = meanings.directions(np.array(slots, dtype=np.int64)) if meanings else None
    # Without the lock: with many notes this takes seconds.
    return graph if directions is None else _with_likeness(graph, directions)


def graph_around(parts: RelationParts, link_id: str, path: str) -> NoteGraph:
    """A note, the notes tied to it, those it resembles most, and the ties among all of them.

    Raises:
        NotFound: the note is not in the index of related notes.
        IndexNotFound: nothing is indexed yet.
    """
    alike = related_notes(
        parts,
        note=path,
        vault=link_id,
        limit=_MAX_SUGGESTED,
        hide_linked=True,
        with_passages=False,
    )
    loaded = memory_index(parts)
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
        slots = _map_slots(parts, loaded, {middle, *near[:_MAX_NEIGHBOURS], *suggested})
        graph = _graph(loaded, slots)
        number = {slot: at for at, slot in enumerate(slots)}
        more = [
            _pair(number[middle], number[slot])
            for slot in suggested
            if slot in number and slot not in near
        ]
        return _add_likeness(graph, more)


def _map_slots(parts: RelationParts, loaded: MemoryIndex, slots: Iterable[int]) -> list[int]:
    """The admitted slots in map order; folders may have been denied since they were indexed."""
    admitted = (slot for slot in slots if parts.admits(loaded.cards[slot]))
    return sorted(admitted, key=lambda slot: loaded.cards[slot].key)


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
    label = groups(Edges(count, graph.pairs, np.ones(len(graph.pairs))))
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


@dataclass(frozen=True, slots=True)
class KeptMap:
    """The last layout, and the version of its graph."""

    version: str = ""
    places: Mapping[NoteKey, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def made(cls, graph: NoteGraph, version: str, places: NDArray[np.float64]) -> Self:
        """A new layout of a graph."""
        rounded = [(round(float(x), 2), round(float(y), 2)) for x, y in places]
        return cls(version, dict(zip((note.key for note in graph.notes), rounded, strict=True)))

    @classmethod
    def load(cls, home: Path) -> Self:
        """The stored layout; an empty one if it is missing or damaged."""
        try:
            found = json.loads((home / MAP_FILE).read_text(encoding="utf-8"))
            places = {(str(link), str(path)): (x, y) for link, path, x, y in found["places"]}
            return cls(str(found["version"]), places)
        except (OSError, ValueError, KeyError, TypeError):  # it is rebuilt
            return cls()

    def save(self, home: Path) -> None:
        """Store the layout."""
        places = [[*key, *at] for key, at in self.places.items()]
        write_atomically(home / MAP_FILE, json.dumps({"version": self.version, "places": places}))

    def of(self, graph: NoteGraph) -> NDArray[np.float64]:
        """The positions of a graph's notes; the graph must have this version."""
        return np.array([self.places[note.key] for note in graph.notes]).reshape(-1, 2)


@dataclass(frozen=True, slots=True)
class DrawnMap:
    """A graph and its layout; a better one follows unless it `is_settled`."""

    graph: NoteGraph
    places: NDArray[np.float64]
    version: str
    is_settled: bool = True

    def encoded(self) -> bytes:
        """The map as bytes."""
        notes, places = self.graph.notes, self.places
        count = len(notes)
        low = places.min(axis=0) if count else np.zeros(2)
        unit = (float((places - low).max()) if count else 0.0) / _MAX_COORDINATE or 1.0
        is_wide = count > _MAX_COORDINATE
        order = np.argsort(self.graph.kinds, kind="stable")
        tags = sorted({tag for note in notes for tag in note.tags})
        number = {tag: at for at, tag in enumerate(tags)}
        vaults = sorted({note.link_id for note in notes})
        head = {
            "version": self.version,
            "is_settled": self.is_settled,
            "unit": unit,
            "is_wide": is_wide,
            "ties": np.bincount(self.graph.kinds, minlength=len(Tie)).tolist(),
            "paths": [note.path for note in notes],
            # None where the title is the file name, as for most notes.
            "titles": [_title(note.path, note.title) for note in notes],
            "vaults": vaults,
            "vault": [vaults.index(note.link_id) for note in notes] if len(vaults) > 1 else None,
            "tags": tags,
            "tag": [[number[tag] for tag in note.tags] for note in notes],
        }
        text = json.dumps(head, separators=(",", ":")).encode("ascii")
        text += b" " * (-len(text) % 4)
        return b"".join(
            (
                len(text).to_bytes(4, "little"),
                text,
                np.rint((places - low) / unit).astype("<u2").tobytes(),
                self.graph.pairs[order].astype("<u4" if is_wide else "<u2").tobytes(),
            )
        )


class VaultMap:
    """Returns the best layout available at once; a thread in `run` computes a better one."""

    def __init__(
        self, parts: Callable[[], RelationParts], on_settled: Callable[[str], None]
    ) -> None:
        """`parts` gives the current ones; `on_settled` gets the version of a better layout."""
        self._parts = parts
        self._on_settled = on_settled
        self._wanted = threading.Event()
        self._lock = threading.Lock()
        self._kept: KeptMap | None = None
        self._graph: tuple[object, NoteGraph, str] | None = None

    def drawn(self) -> DrawnMap:
        """The map of all notes.

        Raises:
            IndexNotFound: nothing is indexed yet.
        """
        graph, version = self._current_graph()
        kept = self._load_kept()
        if kept.version == version:
            return DrawnMap(graph, kept.of(graph), version)
        if len(graph.notes) <= _MAX_NOTES_AT_ONCE:
            return DrawnMap(graph, self._lay_out_and_save(graph, version), version)
        self._wanted.set()
        steps = 0 if kept.places else _ROUGH_STEPS
        return DrawnMap(graph, graph.laid_out(kept.places, steps=steps), version, is_settled=False)

    def around(self, link_id: str, path: str) -> DrawnMap:
        """The neighbourhood of one note of a vault.

        Raises:
            NotFound: the note is not in the index of related notes.
            IndexNotFound: nothing is indexed yet.
        """
        graph = graph_around(self._parts(), link_id, path)
        return DrawnMap(graph, graph.laid_out(), graph.version)

    def wake(self) -> None:
        """Make `run` check its stop event."""
        self._wanted.set()

    def run(self, stop: threading.Event) -> None:
        """Compute the full layout after each rough one returned, until `stop` is set."""
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if stop.is_set():
                return
            try:
                graph, version = self._current_graph()
                if self._load_kept().version != version:
                    self._lay_out_and_save(graph, version)
                    self._on_settled(version)
            except ObsidianRagError as error:
                _log.warning("the map is not up to date: %s", error.message)
            except Exception:  # noqa: BLE001  (a background loop: the next round may do better)
                _log.exception("the map could not be laid out")

    def _current_graph(self) -> tuple[NoteGraph, str]:
        """The graph, rebuilt only when notes or rules have changed."""
        parts = self._parts()
        loaded = memory_index(parts)
        of = (loaded, loaded.change, loaded.vectors_in_use, parts.vaults)
        with self._lock:
            if self._graph is None or self._graph[0] != of:
                graph = vault_graph(parts)
                self._graph = of, graph, graph.version
            return self._graph[1], self._graph[2]

    def _lay_out_and_save(self, graph: NoteGraph, version: str) -> NDArray[np.float64]:
        places = graph.laid_out(self._load_kept().places)
        self._kept = kept = KeptMap.made(graph, version, places)
        try:
            kept.save(self._parts().home)
        except OSError as error:
            _log.warning("the map is not kept: %s", error)
        return places

    def _load_kept(self) -> KeptMap:
        if self._kept is None:
            self._kept = KeptMap.load(self._parts().home)
        return self._kept


def _title(path: str, title: str) -> str | None:
    name, dot, _ = path.rpartition("/")[2].rpartition(".")
    return None if dot and name == title else title
