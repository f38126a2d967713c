"""The meaning of whole notes: the mean of their passages' vectors, taken from the chunk store."""

from collections.abc import Callable

import numpy as np

from obsidian_rag.errors import IndexNotFound
from obsidian_rag.relations.rows import Rows
from obsidian_rag.store import ChunkStore

_NOTES_AT_ONCE = 500


def refresh_vectors(
    rows: Rows, chunks: ChunkStore, link_id: str, stop: Callable[[], bool] = lambda: False
) -> int:
    """Give every note that changed the vector of its present passages; how many were given."""
    wanted = rows.without_vector()
    paths = list(wanted)
    done = 0
    for start in range(0, len(paths), _NOTES_AT_ONCE):
        if stop():
            break
        few = paths[start : start + _NOTES_AT_ONCE]
        try:
            stored = chunks.fetch(link_id, few)
        except IndexNotFound:
            break
        made = []
        for path, passages in stored.items():
            mean = np.mean([passage.vector for passage in passages], axis=0)
            length = float(np.linalg.norm(mean))
            if length > 0:
                made.append((path, wanted[path], (mean / length).astype(np.float16).tobytes()))
        with rows.changing():
            rows.put_vectors(made)
        done += len(made)
    return done
