"""Meaning vectors: a transformer's vectors of each chunk, in one append-only file.

A chunk has the vector of its whole text and, if that is long, those of its parts: the whole covers
the topic, a part may hold the one sentence that was searched for. The nearest of them counts.

One process writes at a time, under a separate lock, so that adding vectors and syncing do not block
each other. Readers map the file, and map it again when it was replaced or has grown. A chunk's old
records are blanked before its new ones are appended, that of the whole text last: a kill in between
loses a chunk's vectors, which are recomputed, and never leaves two. Each model has its own file;
the old one is removed when the new one is complete.
"""

import contextlib
import os
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import FileIO
from pathlib import Path

import numpy as np
import xxhash
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from obsidian_rag.errors import Busy, disk_fault
from obsidian_rag.store.folder import own_folder
from obsidian_rag.store.meaning_file import (
    HEAD_BYTES,
    HEADER_BYTES,
    Header,
    Records,
    Rows,
    View,
    id_of,
    is_scale,
    new_records,
    open_view,
    pack_digests,
    pack_ids,
    signed,
    stamp_of,
)

_SUFFIX = ".vectors"
_PART = ".part"
# Rows multiplied at once: as float32 they fit into a core's cache.
_BLOCK_ROWS = 1024
# From here on two threads halve the time; below, starting them costs more.
_PARALLEL_FROM_ROWS = 32_768
# Compact if one record in four is waste, and at least the minimum below.
_WASTE_SHARE = 4
_MIN_WASTE_RECORDS = 64
# A passage of 2,000 characters has four parts at most.
_MAX_RECORDS_PER_CHUNK = 5


def text_digest(text: str) -> bytes:
    """The identity of an embedded text."""
    return xxhash.xxh3_64_digest(text.encode(errors="surrogatepass"))


def stored_vectors(folder: Path) -> int:
    """Number of chunks with vectors in this folder, of whichever model."""
    views = [open_view(file, None) for file in folder.glob(f"*{_SUFFIX}")]
    return max((view.count() for view in views), default=0)


class MeaningStore:
    """The meaning vectors of one model."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        """`folder` need not exist; `fingerprint` is the embedder's."""
        self.fingerprint = fingerprint
        self.file = folder / (xxhash.xxh3_64_hexdigest(fingerprint.encode()) + _SUFFIX)
        self._folder = folder
        self._lock = threading.RLock()
        self._writer = FileLock(folder / "writer.lock", mode=0o600)
        self._mapped: View | None = None
        self._cached_count: tuple[tuple[int, int, int], int] | None = None

    def count(self) -> int:
        """How many chunks have vectors."""
        stamp = stamp_of(self.file)
        counted = self._cached_count
        if counted is None or counted[0] != stamp:
            counted = self._cached_count = (stamp, self._view().count())
        return counted[1]

    @property
    def created_ns(self) -> int | None:
        """When the file was created; None if there is none."""
        header = self._view().header
        return header.created_ns if header is not None else None

    def nearest(
        self, vector: NDArray[np.float32], limit: int, among: Collection[str] | None = None
    ) -> dict[str, float]:
        """Cosine similarities of the chunks nearest to a vector, best first."""
        view = self._view()
        question = _normalise(vector, view)
        if question is None or limit <= 0:
            return {}
        rows = None if among is None else view.all_rows_of(pack_ids(among))
        scores = _score(view.records, question, rows)
        found: dict[str, float] = {}
        for place in _top_rows(scores, limit * _MAX_RECORDS_PER_CHUNK):
            score = float(scores[place])
            if score == -np.inf or len(found) == limit:
                break
            chunk_id = id_of(view.records[place if rows is None else rows[place]])
            if chunk_id is not None:
                found.setdefault(chunk_id, min(1.0, max(-1.0, score)))
        return found

    def similarities(
        self, vector: NDArray[np.float32], chunk_ids: Collection[str]
    ) -> dict[str, float]:
        """Cosine similarities of the given chunks that have a vector."""
        return self.nearest(vector, len(chunk_ids), chunk_ids) if chunk_ids else {}

    def vectors(self, chunk_ids: Collection[str]) -> dict[str, NDArray[np.float32]]:
        """Unit vectors of the whole texts of the given chunks that have one."""
        view = self._view()
        asked = list(chunk_ids)
        rows = view.rows_of(pack_ids(asked))
        records = view.records[_present(rows)]
        made = records["vector"].astype(np.float32)
        with np.errstate(all="ignore"):
            made /= np.linalg.norm(made, axis=1, keepdims=True)
        there = [chunk_id for chunk_id, row in zip(asked, rows, strict=True) if row >= 0]
        return {
            chunk_id: vector
            for chunk_id, vector in zip(there, made, strict=True)
            if np.isfinite(vector[0])
        }

    def has(self, ids: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of these chunks, given as `pack_ids`, have a vector."""
        return self._view().rows_of(ids) >= 0

    def lacking(self, rows: Sequence[tuple[str, bytes]]) -> NDArray[np.bool_]:
        """Which of these (chunk id, digest) have no vector, or one of another text."""
        view = self._view()
        places = view.rows_of(pack_ids([chunk_id for chunk_id, _ in rows]))
        digests = pack_digests([digest for _, digest in rows])
        is_lacking = places < 0
        known = ~is_lacking
        is_lacking[known] = view.records["digest"][places[known]] != digests[known]
        return is_lacking

    def damaged(self) -> int:
        """Number of damaged records; the next writer removes them."""
        return len(open_view(self.file, self.fingerprint).damaged())

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the writer lock; first removes what a crash or damage left behind.

        Raises:
            Busy: another process is adding vectors.
            ReadOnly, IndexerFailed: the data folder is not writable.
        """
        with _translate_errors(self._folder):
            own_folder(self._folder)
            try:
                self._writer.acquire(timeout=0)
            except Timeout:
                raise Busy(
                    "Another obsidian-rag process is adding meaning vectors.",
                    "Wait for it to finish, or stop it, then run the command again.",
                ) from None
        try:
            if self._writer.lock_counter == 1:
                self._heal()
            yield
        finally:
            self._writer.release()

    def put(
        self, rows: Sequence[tuple[str, bytes]], vectors: Iterable[NDArray[np.float32]]
    ) -> None:
        """Add the vectors of chunks, given as (chunk id, digest of the embedded text).

        Each has the vector of its whole text, followed by those of its parts if there are any.

        Raises:
            Busy: another process is adding vectors.
            ReadOnly, IndexerFailed: the file cannot be written.
        """
        if rows:
            ids = pack_ids([chunk_id for chunk_id, _ in rows])
            if not ids.any(axis=1).all():
                raise ValueError("a chunk id is not a UUID")
            digests = pack_digests([digest for _, digest in rows])
            of_chunks = [np.atleast_2d(np.asarray(some, dtype=np.float32)) for some in vectors]
            self._put(new_records(ids, digests, of_chunks))

    def adopt(self, rows: Sequence[tuple[str, bytes]]) -> int:
        """Copy vectors from other chunks with the same text; returns how many chunks got some."""
        if not rows:
            return 0
        view = self._view()
        places = view.rows_with(pack_digests([digest for _, digest in rows]))
        known = [row for row, place in zip(rows, places, strict=True) if place >= 0]
        if not known:
            return 0
        ids = pack_ids([chunk_id for chunk_id, _ in known])
        copies = []
        for chunk_id, place in zip(ids, _present(places), strict=True):
            owner = view.records[place]
            others = view.all_rows_of(np.array([[owner["key"], owner["rest"]]], dtype=np.uint64))
            copy = np.array(view.records[np.append(others[others != place], place)])
            copy["key"], copy["rest"] = chunk_id
            copies.append(copy)
        self._put(signed(np.concatenate(copies)))
        return len(known)

    def keep_only(self, chunk_ids: Sequence[NDArray[np.uint64]]) -> int:
        """Remove the vectors of all chunks but these `pack_ids`; returns how many."""
        with self.writing():
            before = self.count()
            view = self._view()
            is_gone = view.is_there()
            for ids in chunk_ids:
                is_gone[view.all_rows_of(ids)] = False
            self._blank(np.flatnonzero(is_gone))
            self._compact()
            return before - self.count()

    def remove_others(self) -> None:
        """Remove the files of other models, once this one's vectors are complete."""
        with self.writing(), contextlib.suppress(OSError):
            for file in self._folder.glob(f"*{_SUFFIX}"):
                if file != self.file:
                    file.unlink(missing_ok=True)

    def close(self) -> None:
        """Unmap the file; it is mapped again when needed."""
        self._mapped = None

    def _view(self) -> View:
        """The current file; blanked records show through an existing mapping."""
        now = stamp_of(self.file)
        with self._lock:
            if (
                self._mapped is None
                or self._mapped.stamp[:2] != now[:2]
                or self._mapped.header is None
            ):
                self._mapped = open_view(self.file, self.fingerprint)
            return self._mapped

    def _put(self, records: Records) -> None:
        with self.writing():
            view = self._view()
            width = records.dtype["vector"].shape[0]
            if view.header is None or view.header.width != width:
                self._replace(Header.new(self.fingerprint, width), b"")
                view = self._view()
            ids = np.unique(np.stack([records["key"], records["rest"]], axis=1), axis=0)
            self._blank(view.all_rows_of(ids))
            with _translate_errors(self._folder), self.file.open("ab", buffering=0) as stream:
                _write(stream, records.tobytes())
            self._compact()

    def _blank(self, rows: Rows) -> None:
        if not len(rows):
            return
        size = self._view().records.dtype.itemsize
        with _translate_errors(self._folder), self.file.open("r+b", buffering=0) as stream:
            for row in rows:
                stream.seek(HEADER_BYTES + int(row) * size)
                stream.write(bytes(HEAD_BYTES))
        self._cached_count = None

    def _heal(self) -> None:
        """Truncate a torn record, blank damaged ones, remove leftovers of interrupted copies."""
        with _translate_errors(self._folder):
            for part in self._folder.glob(f"*{_PART}"):
                part.unlink(missing_ok=True)
            self._mapped = self._cached_count = None
            view = self._view()
            if view.header is None:
                return
            whole = HEADER_BYTES + view.records.nbytes
            if stamp_of(self.file)[1] > whole:
                os.truncate(self.file, whole)
        self._blank(view.damaged())
        self._compact()

    def _compact(self) -> None:
        view = self._view()
        waste = len(view.records) - int(np.count_nonzero(view.is_there()))
        if view.header is not None and waste >= max(
            _MIN_WASTE_RECORDS, len(view.records) // _WASTE_SHARE
        ):
            self._replace(view.header, view.records[view.is_there()].tobytes())

    def _replace(self, header: Header, records: bytes) -> None:
        """Replace the file atomically."""
        part = self.file.with_suffix(_PART)
        with _translate_errors(self._folder):
            with open(part, "wb", buffering=0, opener=_open_private) as stream:
                _write(stream, header.packed() + records)
                os.fsync(stream.fileno())
            self._mapped = None  # Windows cannot replace a mapped file
            part.replace(self.file)


def _score(
    records: Records, question: NDArray[np.float32], rows: Rows | None
) -> NDArray[np.float32]:
    """The cosine of each record, or of the given rows; -inf for those without a vector."""
    total = len(records) if rows is None else len(rows)
    scores = np.empty(total, dtype=np.float32)
    scales = np.array(records["scale"]) if rows is None else records["scale"][rows]
    vectors = records["vector"]

    def multiply(first: int, last: int) -> None:
        room = np.empty((min(_BLOCK_ROWS, last - first), len(question)), dtype=np.float32)
        for start in range(first, last, _BLOCK_ROWS):
            end = min(last, start + _BLOCK_ROWS)
            block = room[: end - start]
            block[:] = vectors[start:end] if rows is None else vectors[rows[start:end]]
            np.dot(block, question, out=scores[start:end])

    if total < _PARALLEL_FROM_ROWS:
        multiply(0, total)
    else:  # numpy releases the GIL here
        half = total // 2
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(multiply, (0, half), (half, total)))
    with np.errstate(all="ignore"):
        is_there = is_scale(scales)
        scores *= np.where(is_there, scales, 0)
    scores[~is_there] = -np.inf
    return scores


def _top_rows(scores: NDArray[np.float32], limit: int) -> Rows:
    """Positions of the best scores, best first, at most `limit`."""
    if len(scores) <= limit:
        return np.argsort(-scores, kind="stable")
    best = np.argpartition(-scores, limit - 1)[:limit]
    return best[np.argsort(-scores[best], kind="stable")]


def _normalise(vector: NDArray[np.float32], view: View) -> NDArray[np.float32] | None:
    """The query vector at length one; None if it cannot be compared with the records."""
    question = np.asarray(vector, dtype=np.float32)
    if view.header is None or not len(view.records) or question.shape != (view.header.width,):
        return None
    length = float(np.linalg.norm(question))
    return question / np.float32(length) if 0 < length < np.inf else None


def _present(rows: Rows) -> Rows:
    return rows[rows >= 0]


def _open_private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def _write(stream: FileIO, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[stream.write(rest) :]


@contextlib.contextmanager
def _translate_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        then = "run `obsidian-rag sync`: it adds the rest; searching works meanwhile"
        raise disk_fault(error, f"the folder {folder} of meaning vectors", then) from error
