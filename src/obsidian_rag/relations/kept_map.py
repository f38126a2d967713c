"""map.json: where the notes of the last map lie, and of which notes and ties it was."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.config import write_atomically
from obsidian_rag.relations.note_map import NoteGraph, NoteKey

MAP_FILE = "map.json"


@dataclass(frozen=True, slots=True)
class KeptMap:
    """The last layout, and the version of the graph that it is of."""

    version: str = ""
    places: Mapping[NoteKey, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def made(cls, graph: NoteGraph, version: str, places: NDArray[np.float64]) -> Self:
        """A new layout of a graph."""
        rounded = [(round(float(x), 2), round(float(y), 2)) for x, y in places]
        return cls(version, dict(zip((note.key for note in graph.notes), rounded, strict=True)))

    @classmethod
    def load(cls, home: Path) -> Self:
        """The layout on file; none if there is none, or it cannot be used."""
        try:
            found = json.loads((home / MAP_FILE).read_text(encoding="utf-8"))
            places = {(str(link), str(path)): (x, y) for link, path, x, y in found["places"]}
            return cls(str(found["version"]), places)
        except (OSError, ValueError, KeyError, TypeError):  # it is made again
            return cls()

    def save(self, home: Path) -> None:
        """Keep it on file."""
        places = [[*key, *at] for key, at in self.places.items()]
        write_atomically(home / MAP_FILE, json.dumps({"version": self.version, "places": places}))

    def of(self, graph: NoteGraph) -> NDArray[np.float64]:
        """Where the notes of a graph lie, which must be the one it was made of."""
        return np.array([self.places[note.key] for note in graph.notes]).reshape(-1, 2)
