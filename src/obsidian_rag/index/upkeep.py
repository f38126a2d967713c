"""While nothing else is to be done: refresh the search indexes, merge files, drop old versions."""

import contextlib
from pathlib import Path

from obsidian_rag.errors import Busy
from obsidian_rag.index.run import compact
from obsidian_rag.store import READER_WINDOW_S, ChunkStore, Database, writer_lock

# After the last change: somebody who writes pauses that long, and nobody waits for the space.
QUIET_S = 20.0
# Longer where a round takes longer.
QUIET_SHARE = 30.0
# Versions that readers may still use are dropped by a later round.
ROUNDS_APART_S = READER_WINDOW_S + 5.0
MOST_ROUNDS = 5


def tidy_up(
    home: Path, database: Database, chunks: ChunkStore, window_s: float = READER_WINDOW_S
) -> bool:
    """One round over the index in use; whether nothing is left for another one.

    Raises:
        IndexCorrupted: the index is damaged.
        IndexerFailed: the disk is full.
    """
    # Whoever writes meanwhile is tidied up after: no round is lost.
    with contextlib.suppress(Busy), writer_lock(home, "upkeep"):
        if not chunks.exists():
            return True
        chunks.close()
        compact(database, chunks, window_s=window_s)
        return chunks.version_count() == 1
    return False
