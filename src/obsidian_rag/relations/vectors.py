"""The vectors of whole notes: the mean of their passages', static ones and meaning vectors."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.errors import IndexNotFound
from obsidian_rag.relations.kinds import Kind
from obsidian_rag.relations.rows import Rows
from obsidian_rag.store import ChunkStore, MeaningStore, StoredChunk, embedded_chunks, text_digest

_NOTES_AT_ONCE = 500

Indexed = Callable[[Sequence[str]], Mapping[str, str | None]]


def refresh_vectors(
    rows: Rows,
    chunks: ChunkStore,
    link_id: str,
    *,
    indexed: Indexed | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> int:
    """Give every note that changed the vector of its present passages; how many were given.

    `indexed` tells for paths of which content the passages are: one that has changed since waits.
    """
    wanted = rows.without_vector(link_id)
    done = 0
    for few in _few(list(wanted), stop):
        try:
            stored = chunks.fetch(link_id, few)
        except IndexNotFound:
            break
        contents = indexed(few) if indexed is not None else wanted
        made = [
            (path, wanted[path], static_vector(_passages(stored.get(path, []))))
            for path in few
            if wanted[path] == contents.get(path)
        ]
        if made:
            with rows.changing():
                rows.put_vectors(link_id, made)
        done += sum(vector is not None for _, _, vector in made)
    return done


def refresh_meaning_vectors(
    rows: Rows,
    chunks: ChunkStore,
    link_id: str,
    store: MeaningStore,
    *,
    paths: Collection[str] | None = None,
    indexed: Indexed | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> int:
    """Give notes the meaning vector of their present passages; how many were given.

    A note waits, with the vector it had, until all its passages have theirs. Of `paths`, those
    that are waiting.
    """
    rows.expect_meanings_of(store.fingerprint)
    wanted = rows.without_vector(link_id, Kind.MEANING)
    if paths is not None:
        wanted = {path: wanted[path] for path in paths if path in wanted}
    done = 0
    for few in _few(list(wanted), stop):
        try:
            meant = _meant(chunks, link_id, store, few)
        except IndexNotFound:
            break
        contents = indexed(few) if indexed is not None else wanted
        made = [
            (path, wanted[path], Kind.MEANING.pack(vector) if len(vector) else None)
            for path, vector in meant.items()
            if wanted[path] == contents.get(path)
        ]
        if made:
            with rows.changing():
                rows.put_vectors(link_id, made, Kind.MEANING)
        done += sum(vector is not None for _, _, vector in made)
    return done


def _few(paths: list[str], stop: Callable[[], bool]) -> Iterator[list[str]]:
    for start in range(0, len(paths), _NOTES_AT_ONCE):
        if stop():
            return
        yield paths[start : start + _NOTES_AT_ONCE]


def _meant(
    chunks: ChunkStore, link_id: str, store: MeaningStore, paths: Sequence[str]
) -> dict[str, NDArray[np.float64]]:
    """The mean of each note whose passages all have vectors of their present texts.

    Of a note without passages it is empty.
    """
    found: dict[str, list[tuple[bytes, str]]] = {path: [] for path in paths}
    for batch in embedded_chunks(chunks, [(link_id, path) for path in paths]):
        for place, text, _ in batch:
            found[place.source_file].append((text_digest(text), place.chunk_id))
    rows = [(chunk_id, digest) for some in found.values() for digest, chunk_id in some]
    lacking = store.lacking(rows) if rows else ()
    present = [one for (one, _), is_lacking in zip(rows, lacking, strict=True) if not is_lacking]
    vectors = store.vectors(present)
    # In the order of their texts: the same mean, whatever the order of the rows.
    return {
        path: _mean([vectors[chunk_id] for _, chunk_id in sorted(some)])
        for path, some in found.items()
        if all(chunk_id in vectors for _, chunk_id in some)
    }


def static_vector(passages: Iterable[tuple[str, NDArray[np.float32]]]) -> bytes | None:
    """The mean of passages, each a content hash and a vector; None if they mean nothing together.

    Whatever their order, it is the same.
    """
    ordered = sorted(passages, key=lambda one: (one[0], one[1].tobytes()))
    return Kind.STATIC.pack(_mean([vector for _, vector in ordered])) if ordered else None


def _passages(stored: Iterable[StoredChunk]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    return ((one.content_hash, one.vector) for one in stored)


def _mean(vectors: Sequence[NDArray[np.float32]]) -> NDArray[np.float64]:
    mean: NDArray[np.float64] = np.mean(vectors, axis=0, dtype=np.float64) if vectors else _NONE
    return mean


_NONE = np.zeros(0)
