"""Takes edits up into the related notes at once, while search still collects them."""

import logging
import threading

from obsidian_rag.engine.engine import Engine, Live
from obsidian_rag.engine.events import EventKind
from obsidian_rag.engine.relation_index import update_relations
from obsidian_rag.errors import ObsidianRagError

# More at once is the work of an index run, in a process of its own.
_MOST_PATHS = 50
_log = logging.getLogger(__name__)


class EarlyRelations:
    """One thread that reads a few changed notes again; what it cannot do the next sync does."""

    def __init__(self, engine: Engine, live: Live) -> None:
        self._engine = engine
        self._live = live
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._paths: set[str] = set()

    def changed(self, paths: frozenset[str] | None) -> None:
        """These notes are quiet; None and large numbers are left to the index run."""
        if paths is not None and len(paths) <= _MOST_PATHS:
            with self._lock:
                self._paths |= paths
            self._woken.set()

    def wake(self) -> None:
        """Make `run` notice that it shall stop."""
        self._woken.set()

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set and `wake` was called."""
        while not stop.is_set():
            self._woken.wait()
            self._woken.clear()
            with self._lock:
                paths, self._paths = sorted(self._paths), set()
            if paths:
                self._take_up(paths)

    def _take_up(self, paths: list[str]) -> None:
        try:
            with self._engine.one_set_of_settings():
                updated = update_relations(self._engine, paths)
        except ObsidianRagError as error:
            _log.warning("related notes are behind: %s", error.message)
            return
        if updated is not None and any(updated):
            counts = dict(zip(("written", "removed"), updated, strict=True))
            self._live.bus.publish(EventKind.RELATIONS, {"paths": paths, **counts})
