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

    def make(paths: Sequence[str]) -> dict[str, bytes | None]:
        stored = chunks.fetch(link_id, paths)
        return {path: static_vector(_passages(stored.get(path, []))) for path in paths}

    wanted = rows.without_vector(link_id)
    return _refresh(rows, link_id, Kind.STATIC, wanted, make, indexed=indexed, stop=stop)


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

    def make(few: Sequence[str]) -> dict[str, bytes | None]:
        return _meant(chunks, link_id, store, few)

    rows.expect_meanings_of(store.fingerprint)
    wanted = rows.without_vector(link_id, Kind.MEANING)
    if paths is not None:
        wanted = {path: wanted[path] for path in paths if path in wanted}
    return _refresh(rows, link_id, Kind.MEANING, wanted, make, indexed=indexed, stop=stop)


def _refresh(
    rows: Rows,
    link_id: str,
    kind: Kind,
    wanted: Mapping[str, str],
    make: Callable[[Sequence[str]], Mapping[str, bytes | None]],
    *,
    indexed: Indexed | None,
    stop: Callable[[], bool],
) -> int:
    """Write the vectors that are made for the wanted notes, by path with their content."""
    paths, done = list(wanted), 0
    for start in range(0, len(paths), _NOTES_AT_ONCE):
        if stop():
            break
        few = paths[start : start + _NOTES_AT_ONCE]
        try:
            vectors = make(few)
        except IndexNotFound:
            break
        contents = indexed(few) if indexed is not None else wanted
        made = [
            (path, wanted[path], vector)
            for path, vector in vectors.items()
            if wanted[path] == contents.get(path)
        ]
        if made:
            with rows.changing():
                rows.put_vectors(link_id, made, kind)
        done += sum(vector is not None for _, _, vector in made)
    return done


def _meant(
    chunks: ChunkStore, link_id: str, store: MeaningStore, paths: Sequence[str]
) -> dict[str, bytes | None]:
    """The mean of each note whose passages all have vectors of their present texts.

    Of a note without passages there is none.
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
        path: _mean([vectors[chunk_id] for _, chunk_id in sorted(some)], Kind.MEANING)
        for path, some in found.items()
        if all(chunk_id in vectors for _, chunk_id in some)
    }


def static_vector(passages: Iterable[tuple[str, NDArray[np.float32]]]) -> bytes | None:
    """The mean of passages, each a content hash and a vector; None if they mean nothing together.

    Whatever their order, it is the same.
    """
    ordered = sorted(passages, key=lambda one: (one[0], one[1].tobytes()))
    return _mean([vector for _, vector in ordered], Kind.STATIC)


def _passages(stored: Iterable[StoredChunk]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    return ((one.content_hash, one.vector) for one in stored)


def _mean(vectors: Sequence[NDArray[np.float32]], kind: Kind) -> bytes | None:
    return kind.pack(np.mean(vectors, axis=0, dtype=np.float64)) if vectors else None
