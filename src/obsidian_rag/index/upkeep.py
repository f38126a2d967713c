"""Maintenance while idle: refresh the search indexes, merge files, drop old versions."""

import contextlib
import time
from pathlib import Path

from obsidian_rag.errors import Busy
from obsidian_rag.index.parts import Parts
from obsidian_rag.index.run import compact
from obsidian_rag.store import READER_WINDOW_S, ChunkStore, Database, writer_lock

# Idle time after the last change: longer than pauses in writing, and disk space can wait.
MIN_IDLE_S = 20.0
# Wait at least this many times the duration of a round.
_IDLE_PER_ROUND = 30.0
# Versions that readers may still use are dropped by a later round.
_ROUND_INTERVAL_S = READER_WINDOW_S + 5.0
_MAX_ROUNDS = 5


class Upkeep:
    """Schedules maintenance rounds: some time after the last change, a few at most."""

    def __init__(self) -> None:
        self._due = 0.0
        self._rounds = 0
        self._idle_s = MIN_IDLE_S

    @property
    def due(self) -> float | None:
        """When to call `run`, by the monotonic clock; None if nothing is left to do."""
        return self._due if self._rounds else None

    def put_off(self) -> None:
        """The index may have changed: postpone until it is idle."""
        self._rounds, self._due = _MAX_ROUNDS, time.monotonic() + self._idle_s

    def run(self, parts: Parts) -> None:
        """One round; after a failure there is none until the next change.

        Raises:
            IndexCorrupted: the index is damaged.
            IndexerFailed: the disk is full.
        """
        begun, left = time.monotonic(), self._rounds - 1
        self._rounds = 0
        parts.reopen()
        is_tidy = tidy_up(parts.config.home, parts.database, parts.chunks)
        # Large indexes take long, so run their rounds less often.
        self._idle_s = max(MIN_IDLE_S, _IDLE_PER_ROUND * (time.monotonic() - begun))
        self._rounds = 0 if is_tidy else left
        self._due = time.monotonic() + _ROUND_INTERVAL_S


def tidy_up(
    home: Path, database: Database, chunks: ChunkStore, window_s: float = READER_WINDOW_S
) -> bool:
    """One round over the live index; returns whether no further round is needed.

    Raises:
        IndexCorrupted: the index is damaged.
        IndexerFailed: the disk is full.
    """
    # Skip while another process writes: a later round follows.
    with contextlib.suppress(Busy), writer_lock(home, "upkeep"):
        if not chunks.exists():
            return True
        chunks.close()
        compact(database, chunks, window_s=window_s)
        return chunks.version_count() == 1
    return False
