"""The map of all notes: laid out once, stored in map.json, updated in its own thread.

Binary format:

4 bytes        length of the head
the head       JSON, padded with spaces to a multiple of 4
positions      2 numbers of 16 bits per note, in units of `unit` from the head
ties           2 numbers per tie, of 16 bits or, if `is_wide`, 32; relations first, then links,
               then likeness; the head has the number of each in `ties`
"""

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.config import write_atomically
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.relations.note_map import NoteGraph, NoteKey, Tie, graph_around, vault_graph
from obsidian_rag.relations.place import RelationsPlace
from obsidian_rag.relations.query import memory_index

MAP_FILE = "map.json"


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


# Up to this many notes are laid out while the client waits.
_MAX_NOTES_AT_ONCE = 400
_ROUGH_STEPS = 8
_MAX_COORDINATE = 65535
_log = logging.getLogger(__name__)


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

    def __init__(self, place: RelationsPlace, on_settled: Callable[[str], None]) -> None:
        """`on_settled` is called with the version of a better layout."""
        self._place = place
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

    def around(self, path: str, vault: str | None = None) -> DrawnMap:
        """The neighbourhood of one note of a vault, by default of the primary one.

        Raises:
            NotFound: the note is not in the index of related notes.
            IndexNotFound: nothing is indexed yet.
        """
        graph = graph_around(self._place, path, vault)
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
        loaded = memory_index(self._place)
        of = (loaded, loaded.change, loaded.vectors_in_use, tuple(self._place.vaults))
        with self._lock:
            if self._graph is None or self._graph[0] != of:
                graph = vault_graph(self._place)
                self._graph = of, graph, graph.version
            return self._graph[1], self._graph[2]

    def _lay_out_and_save(self, graph: NoteGraph, version: str) -> NDArray[np.float64]:
        places = graph.laid_out(self._load_kept().places)
        self._kept = kept = KeptMap.made(graph, version, places)
        try:
            kept.save(self._place.config.home)
        except OSError as error:
            _log.warning("the map is not kept: %s", error)
        return places

    def _load_kept(self) -> KeptMap:
        if self._kept is None:
            self._kept = KeptMap.load(self._place.config.home)
        return self._kept


def _title(path: str, title: str) -> str | None:
    name, dot, _ = path.rpartition("/")[2].rpartition(".")
    return None if dot and name == title else title
