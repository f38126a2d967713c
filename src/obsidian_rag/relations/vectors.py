"""The vectors of whole notes: the mean of their passage vectors, static or meaning.

Notes are compared by one kind at a time; all notes switch at once.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.errors import IndexNotFound
from obsidian_rag.relations.packed import VectorKind, exact_factors
from obsidian_rag.relations.rows import Rows
from obsidian_rag.store import ChunkStore, MeaningStore, StoredChunk, embedded_chunks, text_digest

_INT8_MAX = 127
# Small enough that NumPy multiplies in one thread: waiting for a second one takes longer.
_ROWS_PER_BATCH = 1024
_MIN_SQUARE = 1e-12
_SCALE_STEPS = 2.0**30


class NoteVectors:
    """Vectors of one width; a slot without one has a scale of zero."""

    def __init__(self, size: int, width: int) -> None:
        self.width = width
        self._rows = np.zeros((size, width), dtype=np.int8)
        self._scales = np.zeros(size, dtype=np.float32)
        self._centred: tuple[NDArray[np.float32], NDArray[np.float64]] | None = None

    def grow(self, size: int) -> None:
        """Make room for more slots."""
        more = size - len(self._scales)
        self._rows = np.pad(self._rows, ((0, more), (0, 0)))
        self._scales = np.pad(self._scales, (0, more))
        self._centred = None

    def put(self, slot: int, vector: NDArray[np.floating] | None) -> None:
        """Give a slot its vector, or take it away."""
        highest = 0.0 if vector is None else float(np.abs(vector).max(initial=0))
        # Rounded to steps, so that the sum over all notes does not depend on their order.
        scale = round(highest / _INT8_MAX * _SCALE_STEPS) / _SCALE_STEPS
        self._scales[slot] = scale
        self._centred = None
        self._rows[slot] = np.rint(vector / scale) if vector is not None and scale else 0

    def of(self, slot: int) -> NDArray[np.float32] | None:
        """The vector of a slot, if it has one."""
        scale = self._scales[slot]
        return self._rows[slot].astype(np.float32) * scale if scale else None

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Which slots have a vector."""
        return self._scales > 0

    def alike(self, vector: NDArray[np.float32]) -> NDArray[np.float64]:
        """The cosine of each slot with a vector, both centred on the mean of all notes.

        The notes of one vault all point in much the same direction; they differ in how they
        deviate from the mean. Negative values become 0.
        """
        is_known = self.is_known
        if not is_known.any():
            return np.zeros(len(self._scales))
        centre, lengths = self._centre()
        turned = vector - centre
        turned /= float(np.linalg.norm(turned)) or 1.0
        found = (self._dot(turned) - float(centre @ turned)) / lengths
        return np.where(is_known, np.maximum(0, found), 0)

    def directions(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """The centred unit vectors of these slots; zeros for a slot without a vector."""
        if not self.is_known.any():
            return np.zeros((len(slots), self.width), dtype=np.float32)
        centre, lengths = self._centre()
        scales = (self._scales[slots] / lengths[slots]).astype(np.float32)
        found = self._rows[slots] * scales[:, None]
        found -= (centre / lengths[slots, None]).astype(np.float32)
        found[~self.is_known[slots]] = 0
        return np.asarray(found)

    def _centre(self) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """The mean vector, and the distance of each slot from it."""
        if self._centred is None:
            known = np.nonzero(self._scales > 0)[0]
            total = np.zeros(self.width, dtype=np.float64)
            for start in range(0, len(known), _ROWS_PER_BATCH):
                few = known[start : start + _ROWS_PER_BATCH]
                total += self._scales[few].astype(np.float64) @ self._rows[few].astype(np.float64)
            centre = (total / len(known)).astype(np.float32)
            squares = np.zeros(len(self._scales))
            for start in range(0, len(squares), _ROWS_PER_BATCH):
                some = slice(start, start + _ROWS_PER_BATCH)
                away = self._rows[some] * self._scales[some, None] - centre
                squares[some] = np.einsum("ij,ij->i", away, away)
            self._centred = centre, np.sqrt(np.maximum(squares, _MIN_SQUARE))
        return self._centred

    def _dot(self, vector: NDArray[np.float32]) -> NDArray[np.float64]:
        found = np.zeros(len(self._scales))
        # Exact sums: a note scores the same in any slot.
        high = exact_factors(vector, _INT8_MAX)
        low = exact_factors(vector - high, _INT8_MAX)
        # Integer products are slow, and converting all rows to floats would take too much memory.
        for start in range(0, len(found), _ROWS_PER_BATCH):
            few = slice(start, start + _ROWS_PER_BATCH)
            numbers = self._rows[few].astype(np.float32)
            found[few] = (numbers @ high).astype(np.float64) + numbers @ low
        return found * self._scales


_NOTES_PER_BATCH = 500
# Share of notes with a meaning vector: with fewer, one vault would be ranked in two ways.
_MIN_MEANING_SHARE = 0.95

Indexed = Callable[[Sequence[str]], Mapping[str, str | None]]


@dataclass(frozen=True, slots=True)
class VectorsInUse:
    """How many notes have a meaning vector, and how many a static one."""

    meant: int = 0
    static: int = 0

    @classmethod
    def of(cls, rows: Rows, model: str | None) -> "VectorsInUse":
        """Count the vectors in these rows; meaning vectors of another model do not count."""
        static = rows.with_vector(VectorKind.STATIC)
        is_ours = model is not None and rows.vectors_made_by(VectorKind.MEANING) == model
        return cls(rows.with_vector(VectorKind.MEANING) if is_ours else 0, static)

    @property
    def kind(self) -> VectorKind:
        """Meaning vectors once nearly all notes have one.

        The whole vault switches at once, so that scores do not change from minute to minute.
        """
        is_enough = self.meant > 0 and self.meant >= _MIN_MEANING_SHARE * self.static
        return VectorKind.MEANING if is_enough else VectorKind.STATIC

    @property
    def is_mixed(self) -> bool:
        """Whether some notes have only a static vector while others are compared by meaning."""
        return self.kind is VectorKind.MEANING and self.meant < self.static


def refresh_vectors(
    rows: Rows,
    chunks: ChunkStore,
    link_id: str,
    *,
    indexed: Indexed | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> int:
    """Update the vectors of changed notes from their passages; returns how many were written.

    `indexed` gives the content hash of the passages by path; a note changed since then waits.
    """

    def make(paths: Sequence[str]) -> dict[str, bytes | None]:
        stored = chunks.fetch(link_id, paths)
        return {path: static_vector(_passages(stored.get(path, []))) for path in paths}

    wanted = rows.without_vector(link_id)
    return _refresh(rows, link_id, VectorKind.STATIC, wanted, make, indexed=indexed, stop=stop)


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
    """Update the meaning vectors of notes; returns how many were written.

    A note keeps its old vector until all its passages have new ones. `paths` limits the notes.
    """

    def make(few: Sequence[str]) -> dict[str, bytes | None]:
        return _meaning_means(chunks, link_id, store, few)

    rows.expect_meanings_of(store.fingerprint)
    wanted = rows.without_vector(link_id, VectorKind.MEANING)
    if paths is not None:
        wanted = {path: wanted[path] for path in paths if path in wanted}
    return _refresh(rows, link_id, VectorKind.MEANING, wanted, make, indexed=indexed, stop=stop)


def _refresh(
    rows: Rows,
    link_id: str,
    kind: VectorKind,
    wanted: Mapping[str, str],
    make: Callable[[Sequence[str]], Mapping[str, bytes | None]],
    *,
    indexed: Indexed | None,
    stop: Callable[[], bool],
) -> int:
    """Make and write the vectors of the wanted notes (path to content hash)."""
    paths, done = list(wanted), 0
    for start in range(0, len(paths), _NOTES_PER_BATCH):
        if stop():
            break
        few = paths[start : start + _NOTES_PER_BATCH]
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


def _meaning_means(
    chunks: ChunkStore, link_id: str, store: MeaningStore, paths: Sequence[str]
) -> dict[str, bytes | None]:
    """The mean of each note whose passages all have current vectors; None without passages."""
    found: dict[str, list[tuple[bytes, str]]] = {path: [] for path in paths}
    for batch in embedded_chunks(chunks, [(link_id, path) for path in paths]):
        for place, text, _ in batch:
            found[place.source_file].append((text_digest(text), place.chunk_id))
    rows = [(chunk_id, digest) for some in found.values() for digest, chunk_id in some]
    lacking = store.lacking(rows) if rows else ()
    present = [one for (one, _), is_lacking in zip(rows, lacking, strict=True) if not is_lacking]
    vectors = store.vectors(present)
    # Sorted by text, so that the mean does not depend on the row order.
    return {
        path: _mean([vectors[chunk_id] for _, chunk_id in sorted(some)], VectorKind.MEANING)
        for path, some in found.items()
        if all(chunk_id in vectors for _, chunk_id in some)
    }


def static_vector(passages: Iterable[tuple[str, NDArray[np.float32]]]) -> bytes | None:
    """The mean of passages, each a content hash and a vector; None if it has no direction.

    The result does not depend on their order.
    """
    ordered = sorted(passages, key=lambda one: (one[0], one[1].tobytes()))
    return _mean([vector for _, vector in ordered], VectorKind.STATIC)


def _passages(stored: Iterable[StoredChunk]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    return ((one.content_hash, one.vector) for one in stored)


def _mean(vectors: Sequence[NDArray[np.float32]], kind: VectorKind) -> bytes | None:
    return kind.pack(np.mean(vectors, axis=0, dtype=np.float64)) if vectors else None
