"""Takes edits up into the related notes at once, while search still collects them."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence

from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.relations.consumer import RelationsConsumer
from obsidian_rag.relations.place import RelationsPlace
from obsidian_rag.store import Change, ChangeType, Consumer, Queue

# More at once is the work of an index run, in a process of its own.
_MOST_PATHS = 50
_MOST_NOTES = 50
_log = logging.getLogger(__name__)


class EarlyRelations:
    """One thread that reads a few changed notes again; what it cannot do the next sync does."""

    def __init__(
        self, place: RelationsPlace, on_updated: Callable[[Mapping[str, object]], None]
    ) -> None:
        """`on_updated` hears which paths were taken up, and how many notes that changed."""
        self._place = place
        self._on_updated = on_updated
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
            with self._place.one_set_of_settings():
                updated = update_relations(self._place, paths)
        except ObsidianRagError as error:
            _log.warning("related notes are behind: %s", error.message)
            return
        if updated is not None and any(updated):
            written, removed = updated
            self._on_updated({"paths": paths, "written": written, "removed": removed})


def update_relations(
    place: RelationsPlace, paths: Sequence[str], link_id: str | None = None
) -> tuple[int, int] | None:
    """Take up a few changed notes of a vault at once: how many were written and removed.

    None if nothing is related yet, or if it is the work of an index run.
    """
    vault = place.vaults.one(link_id)
    with RelationsConsumer(place.config.home, place.config.settings.relations) as notes:
        if not vault.link_id or not notes.begin_early():
            return None
        held = notes.contents_below(vault.link_id, paths)
        # A folder that vanished may be a disk that is away: that is for an index run to judge.
        if len(held) > _MOST_NOTES:
            return None
        looked_at = place.hand_over(vault, notes, held, paths)
        if looked_at is None or notes.is_lost:
            return None
        # What changes meanwhile is read once more by the next run.
        owed = (Change(path, ChangeType.UPDATE) for path in looked_at)
        Queue(place.database, Consumer.RELATIONS).add(vault.link_id, owed)
        return notes.written, notes.removed
