"""Meaning vectors: a transformer's vectors of each chunk, in one file that only grows.

A chunk has the vector of its whole text and, where that is long, those of its parts: the whole
tells what it is about, a part has the one sentence that is asked for. A chunk is as near as the
nearest of them.

One process writes at a time, under a lock of its own, so that adding vectors and syncing do not
wait for each other. Many read, through a mapping that is renewed when the file is another one or
longer. A chunk's old records are blanked before its new ones are appended, that of the whole text
last: a kill in between loses a chunk's vectors, which are made again, and never leaves two. Another
model has another file; the one before is removed when the new one is complete.
"""

import contextlib
import errno
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

from obsidian_rag.errors import Busy, IndexerFailed, ReadOnly
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
    packed_digests,
    packed_ids,
    signed,
    stamp_of,
)

_SUFFIX = ".vectors"
_PART = ".part"
# Rows that are multiplied at once: as float32 they fit into a core's cache.
_BLOCK = 1024
# From here on two threads take half the time; below, starting them takes longer.
_MANY = 32_768
# Compacted when one record in four is waste, and there is something to gain.
_WASTE_SHARE = 4
_LEAST_WASTE = 64
# A passage of 2,000 characters has four parts at most.
_RECORDS_PER_CHUNK = 5


def text_digest(text: str) -> bytes:
    """The identity of an embedded text."""
    return xxhash.xxh3_64_digest(text.encode(errors="surrogatepass"))


def stored_vectors(folder: Path) -> int:
    """How many chunks have vectors that some model has left here, whichever it was."""
    views = [open_view(file, None) for file in folder.glob(f"*{_SUFFIX}")]
    return max((view.count() for view in views), default=0)


class MeaningStore:
    """The meaning vectors that one model made."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        """`folder` need not exist; `fingerprint` is the embedder's."""
        self.fingerprint = fingerprint
        self.file = folder / (xxhash.xxh3_64_hexdigest(fingerprint.encode()) + _SUFFIX)
        self._folder = folder
        self._lock = threading.RLock()
        self._writer = FileLock(folder / "writer.lock", mode=0o600)
        self._held: View | None = None
        self._counted: tuple[tuple[int, int, int], int] | None = None

    def count(self) -> int:
        """How many chunks have vectors."""
        stamp = stamp_of(self.file)
        counted = self._counted
        if counted is None or counted[0] != stamp:
            counted = self._counted = (stamp, self._view().count())
        return counted[1]

    @property
    def created_ns(self) -> int | None:
        """When the first vector was about to be added; None if there is none."""
        header = self._view().header
        return header.created_ns if header is not None else None

    def nearest(
        self, vector: NDArray[np.float32], limit: int, among: Collection[str] | None = None
    ) -> dict[str, float]:
        """The cosines of the chunks nearest to a vector, best first."""
        view = self._view()
        question = _unit(vector, view)
        if question is None or limit <= 0:
            return {}
        rows = None if among is None else view.all_rows_of(packed_ids(among))
        scores = _scores(view.records, question, rows)
        found: dict[str, float] = {}
        for place in _best_first(scores, limit * _RECORDS_PER_CHUNK):
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
        """The cosines of those of the chunks that have a vector."""
        return self.nearest(vector, len(chunk_ids), chunk_ids) if chunk_ids else {}

    def vectors(self, chunk_ids: Collection[str]) -> dict[str, NDArray[np.float32]]:
        """The unit vectors of the whole texts of those of the chunks that have one."""
        view = self._view()
        asked = list(chunk_ids)
        rows = view.rows_of(packed_ids(asked))
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
        """Which of these chunks, given as `packed_ids`, have a vector."""
        return self._view().rows_of(ids) >= 0

    def lacking(self, rows: Sequence[tuple[str, bytes]]) -> NDArray[np.bool_]:
        """Which of these (chunk id, digest) have no vector, or one of another text."""
        view = self._view()
        places = view.rows_of(packed_ids([chunk_id for chunk_id, _ in rows]))
        digests = packed_digests([digest for _, digest in rows])
        is_lacking = places < 0
        known = ~is_lacking
        is_lacking[known] = view.records["digest"][places[known]] != digests[known]
        return is_lacking

    def damaged(self) -> int:
        """How many records are not as they were written; the next writer clears them away."""
        return len(open_view(self.file, self.fingerprint).damaged())

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only one who adds vectors; what a crash or damage left is cleared away first.

        Raises:
            Busy: another process is adding vectors.
            ReadOnly, IndexerFailed: the data folder cannot be written.
        """
        with _told(self._folder):
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

        Of each the vector of the whole text, or several with that one first.

        Raises:
            Busy: another process is adding vectors.
            ReadOnly, IndexerFailed: the file cannot be written.
        """
        if rows:
            ids = packed_ids([chunk_id for chunk_id, _ in rows])
            if not ids.any(axis=1).all():
                raise ValueError("a chunk id that is no UUID")
            digests = packed_digests([digest for _, digest in rows])
            of_chunks = [np.atleast_2d(np.asarray(some, dtype=np.float32)) for some in vectors]
            self._put(new_records(ids, digests, of_chunks))

    def adopt(self, rows: Sequence[tuple[str, bytes]]) -> int:
        """Give chunks the vectors that other chunks with the same text have; tells how many."""
        if not rows:
            return 0
        view = self._view()
        places = view.rows_with(packed_digests([digest for _, digest in rows]))
        known = [row for row, place in zip(rows, places, strict=True) if place >= 0]
        if not known:
            return 0
        ids = packed_ids([chunk_id for chunk_id, _ in known])
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
        """Remove the vectors of all chunks but these, given as `packed_ids`; tells of how many."""
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
        """Remove the files of other models: the vectors of this one are complete."""
        with self.writing(), contextlib.suppress(OSError):
            for file in self._folder.glob(f"*{_SUFFIX}"):
                if file != self.file:
                    file.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the mapping; it is made again when needed."""
        self._held = None

    def _view(self) -> View:
        """The file as it is now; where records were only blanked, the mapping shows it."""
        now = stamp_of(self.file)
        with self._lock:
            if self._held is None or self._held.stamp[:2] != now[:2] or self._held.header is None:
                self._held = open_view(self.file, self.fingerprint)
            return self._held

    def _put(self, records: Records) -> None:
        with self.writing():
            view = self._view()
            width = records.dtype["vector"].shape[0]
            if view.header is None or view.header.width != width:
                self._replace(Header.new(self.fingerprint, width), b"")
                view = self._view()
            ids = np.unique(np.stack([records["key"], records["rest"]], axis=1), axis=0)
            self._blank(view.all_rows_of(ids))
            with _told(self._folder), self.file.open("ab", buffering=0) as stream:
                _write(stream, records.tobytes())
            self._compact()

    def _blank(self, rows: Rows) -> None:
        if not len(rows):
            return
        size = self._view().records.dtype.itemsize
        with _told(self._folder), self.file.open("r+b", buffering=0) as stream:
            for row in rows:
                stream.seek(HEADER_BYTES + int(row) * size)
                stream.write(bytes(HEAD_BYTES))
        self._counted = None

    def _heal(self) -> None:
        """Cut a torn record off, blank damaged ones, and remove what an interrupted copy left."""
        with _told(self._folder):
            for part in self._folder.glob(f"*{_PART}"):
                part.unlink(missing_ok=True)
            self._held = self._counted = None
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
            _LEAST_WASTE, len(view.records) // _WASTE_SHARE
        ):
            self._replace(view.header, view.records[view.is_there()].tobytes())

    def _replace(self, header: Header, records: bytes) -> None:
        """Put a new file in the place of the old one, at once."""
        part = self.file.with_suffix(_PART)
        with _told(self._folder):
            with open(part, "wb", buffering=0, opener=_private) as stream:
                _write(stream, header.packed() + records)
                os.fsync(stream.fileno())
            self._held = None  # Windows replaces no file that is mapped
            part.replace(self.file)


def _scores(
    records: Records, question: NDArray[np.float32], rows: Rows | None
) -> NDArray[np.float32]:
    """The cosine of each record, or of each of these; -inf for those without a vector."""
    total = len(records) if rows is None else len(rows)
    scores = np.empty(total, dtype=np.float32)
    scales = np.array(records["scale"]) if rows is None else records["scale"][rows]
    vectors = records["vector"]

    def multiply(first: int, last: int) -> None:
        room = np.empty((min(_BLOCK, last - first), len(question)), dtype=np.float32)
        for start in range(first, last, _BLOCK):
            end = min(last, start + _BLOCK)
            block = room[: end - start]
            block[:] = vectors[start:end] if rows is None else vectors[rows[start:end]]
            np.dot(block, question, out=scores[start:end])

    if total < _MANY:
        multiply(0, total)
    else:  # numpy lets other threads work meanwhile
        half = total // 2
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(multiply, (0, half), (half, total)))
    with np.errstate(all="ignore"):
        is_there = is_scale(scales)
        scores *= np.where(is_there, scales, 0)
    scores[~is_there] = -np.inf
    return scores


def _best_first(scores: NDArray[np.float32], limit: int) -> Rows:
    """Where the best scores stand, at most `limit` of them."""
    if len(scores) <= limit:
        return np.argsort(-scores, kind="stable")
    best = np.argpartition(-scores, limit - 1)[:limit]
    return best[np.argsort(-scores[best], kind="stable")]


def _unit(vector: NDArray[np.float32], view: View) -> NDArray[np.float32] | None:
    """The question's vector at length one; None if it cannot be compared with what is there."""
    question = np.asarray(vector, dtype=np.float32)
    if view.header is None or not len(view.records) or question.shape != (view.header.width,):
        return None
    length = float(np.linalg.norm(question))
    return question / np.float32(length) if 0 < length < np.inf else None


def _present(rows: Rows) -> Rows:
    return rows[rows >= 0]


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def _write(stream: FileIO, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[stream.write(rest) :]


@contextlib.contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise IndexerFailed(
                "The disk is full; meaning vectors could not be written.",
                "Free some space; the rest is added afterwards.",
            ) from error
        raise ReadOnly(
            f"Meaning vectors cannot be written to {folder} ({error.strerror}).",
            "Searching works. To add them, give yourself the right to write there.",
        ) from error
