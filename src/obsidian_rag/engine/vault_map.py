"""The map of all notes: laid out once, kept in map.json, refined after edits in its own thread."""

import logging
import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.events import Bus, EventKind
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.relations import KeptMap, NoteGraph, graph_around, memory_index, vault_graph

# So few notes are laid out while the client waits.
_AT_ONCE = 400
_ROUGH_STEPS = 8
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DrawnMap:
    """A graph and where its notes lie; a better layout follows unless it `is_settled`."""

    graph: NoteGraph
    places: NDArray[np.float64]
    version: str
    is_settled: bool = True


class VaultMap:
    """Answers at once with the best layout there is; a thread in `run` makes a better one."""

    def __init__(self, engine: Engine, bus: Bus) -> None:
        self._engine = engine
        self._bus = bus
        self._wanted = threading.Event()
        self._lock = threading.Lock()
        self._kept: KeptMap | None = None
        self._graph: tuple[object, NoteGraph, str] | None = None

    def drawn(self) -> DrawnMap:
        """The whole vault.

        Raises:
            IndexNotFound: nothing is indexed yet.
        """
        graph, version = self._now()
        kept = self._known()
        if kept.version == version:
            return DrawnMap(graph, kept.of(graph), version)
        if len(graph.notes) <= _AT_ONCE:
            return DrawnMap(graph, self._settled(graph, version), version)
        self._wanted.set()
        steps = 0 if kept.places else _ROUGH_STEPS
        return DrawnMap(graph, graph.laid_out(kept.places, steps=steps), version, is_settled=False)

    def around(self, path: str, vault: str | None = None) -> DrawnMap:
        """The neighbourhood of one note of a vault, by default of the primary one.

        Raises:
            NotFound: the note is not one of those that are related.
            IndexNotFound: nothing is indexed yet.
        """
        graph = graph_around(self._engine, path, vault)
        return DrawnMap(graph, graph.laid_out(), graph.version)

    def wake(self) -> None:
        """Make `run` notice that it shall stop."""
        self._wanted.set()

    def run(self, stop: threading.Event) -> None:
        """Settle the map whenever somebody was given a rough one, until `stop` is set."""
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if stop.is_set():
                return
            try:
                graph, version = self._now()
                if self._known().version != version:
                    self._settled(graph, version)
                    self._bus.publish(EventKind.MAP, {"version": version})
            except ObsidianRagError as error:
                _log.warning("the map is not up to date: %s", error.message)
            except Exception:  # noqa: BLE001  (a background loop: the next round may do better)
                _log.exception("the map could not be laid out")

    def _now(self) -> tuple[NoteGraph, str]:
        """The graph, made anew only when notes or rules have changed."""
        loaded = memory_index(self._engine)
        of = (loaded, loaded.change, loaded.vectors_in_use, tuple(self._engine.vaults))
        with self._lock:
            if self._graph is None or self._graph[0] != of:
                graph = vault_graph(self._engine)
                self._graph = of, graph, graph.version
            return self._graph[1], self._graph[2]

    def _settled(self, graph: NoteGraph, version: str) -> NDArray[np.float64]:
        places = graph.laid_out(self._known().places)
        self._kept = kept = KeptMap.made(graph, version, places)
        try:
            kept.save(self._engine.config.home)
        except OSError as error:
            _log.warning("the map is not kept: %s", error)
        return places

    def _known(self) -> KeptMap:
        if self._kept is None:
            self._kept = KeptMap.load(self._engine.config.home)
        return self._kept
