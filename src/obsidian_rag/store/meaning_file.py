"""Format of the meaning vector file: a header, then records of fixed size.

A record is the chunk's id, the digest of the embedded text, its place among the chunk's records,
the vector's scale, a checksum, and the vector as int8. A chunk's record with place 0 is the vector
of the whole text and has the number of the others: those of its parts. Readers map the file and
trust nothing in it: a record with an impossible scale is ignored, and a file with a bad header
counts as empty.
"""

import os
import struct
import time
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

_MAGIC = b"ORAGMV\x00\x02"
_HEADER = struct.Struct("<8s16sIq")
HEADER_BYTES = 64
HEAD_BYTES = 36
_MAX_WIDTH = 8192
# A unit vector's largest value is at most 1, and the largest stored is 127.
_LARGEST_SCALE = np.float32(1.001 / 127)

Records = np.ndarray[tuple[int], np.dtype[np.void]]
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Header:
    """The header: model, vector width and creation time."""

    model: bytes
    width: int
    created_ns: int

    @classmethod
    def new(cls, fingerprint: str, width: int) -> "Header":
        """The header for a new file."""
        return cls(_model_digest(fingerprint), width, time.time_ns())

    def packed(self) -> bytes:
        """The header as it is written."""
        said = _HEADER.pack(_MAGIC, self.model, self.width, self.created_ns)
        return (said + xxhash.xxh3_64_digest(said)).ljust(HEADER_BYTES, b"\0")

    @classmethod
    def read(cls, packed: bytes, fingerprint: str | None) -> "Header | None":
        """The header, unless damaged or another model's; any model if `fingerprint` is None."""
        if len(packed) < HEADER_BYTES:
            return None
        _, model, width, created_ns = _HEADER.unpack_from(packed)
        found = cls(model, width, created_ns)
        if fingerprint is not None and model != _model_digest(fingerprint):
            return None
        return found if 0 < width <= _MAX_WIDTH and found.packed() == packed else None


def record_type(width: int) -> np.dtype[np.void]:
    """The data type of a record."""
    return np.dtype(
        [
            ("key", "<u8"),
            ("rest", "<u8"),
            ("digest", "<u8"),
            ("place", "<u2"),
            ("others", "<u2"),
            ("scale", "<f4"),
            ("check", "<u4"),
            ("vector", "i1", (width,)),
        ]
    )


@dataclass(frozen=True)
class View:
    """The complete records of a file when mapped; later changes in place show through."""

    header: Header | None
    records: Records
    stamp: tuple[int, int, int]

    @cached_property
    def _firsts(self) -> tuple[Rows, NDArray[np.uint64]]:
        return self._sort_by("key", np.array(self.records["place"]) == 0)

    @cached_property
    def _others(self) -> tuple[Rows, NDArray[np.uint64]]:
        return self._sort_by("key", np.array(self.records["place"]) != 0)

    @cached_property
    def _digests(self) -> tuple[Rows, NDArray[np.uint64]]:
        return self._sort_by("digest", np.array(self.records["place"]) == 0)

    def _sort_by(self, name: str, chosen: NDArray[np.bool_]) -> tuple[Rows, NDArray[np.uint64]]:
        """The chosen rows in the order of a field, and that field."""
        rows = np.flatnonzero(chosen)
        values = self.records[name][rows]
        order = np.argsort(values, kind="stable")
        return rows[order], values[order]

    def is_there(self) -> NDArray[np.bool_]:
        """Which records hold a vector."""
        return is_scale(np.array(self.records["scale"]))

    def count(self) -> int:
        """How many chunks have a vector."""
        return int(np.count_nonzero(self.is_there() & (np.array(self.records["place"]) == 0)))

    def all_rows_of(self, ids: NDArray[np.uint64]) -> Rows:
        """Rows of all records of these chunks, of whole texts and parts."""
        order, keys = self._others
        starts = np.searchsorted(keys, ids[:, 0], side="left")
        counts = np.searchsorted(keys, ids[:, 0], side="right") - starts
        counts[ids[:, 0] == 0] = 0
        before = np.cumsum(counts) - counts
        rows = order[np.repeat(starts - before, counts) + np.arange(counts.sum())]
        is_same = self.records["rest"][rows] == np.repeat(ids[:, 1], counts)
        others = rows[is_same & is_scale(self.records["scale"][rows])]
        firsts = self.rows_of(ids)
        return np.concatenate([firsts[firsts >= 0], others])

    def rows_of(self, ids: NDArray[np.uint64]) -> Rows:
        """Rows of the whole-text vectors of these chunks; -1 if missing."""
        order, keys = self._firsts
        rows = _find_last(order, keys, ids[:, 0])
        if (known := rows >= 0).any():
            records = self.records
            at = rows[known]
            is_same = (records["key"][at] == ids[known, 0]) & (records["rest"][at] == ids[known, 1])
            rows[known] = np.where(is_same & is_scale(records["scale"][at]), at, -1)
        return rows

    def rows_with(self, digests: NDArray[np.uint64]) -> Rows:
        """Rows of whole-text vectors with these digests; -1 if missing."""
        order, sorted_digests = self._digests
        rows = _find_last(order, sorted_digests, digests)
        if (known := rows >= 0).any():
            at = rows[known]
            is_same = self.records["digest"][at] == digests[known]
            rows[known] = np.where(is_same & is_scale(self.records["scale"][at]), at, -1)
        return rows

    def damaged(self) -> Rows:
        """Rows that are corrupt, older duplicates, or of chunks with incomplete records."""
        records = self.records
        heads = np.array(records["check"])
        is_bad = np.zeros(len(records), dtype=bool)
        for row in np.flatnonzero((np.array(records["scale"]) != 0) | (heads != 0)):
            is_bad[row] = heads[row] != checksum(records[row : row + 1])
        by_chunk: dict[tuple[int, int], dict[int, int]] = {}
        for row in np.flatnonzero(self.is_there() & ~is_bad):
            record = records[row]
            mine = by_chunk.setdefault((int(record["key"]), int(record["rest"])), {})
            older = mine.get(int(record["place"]))
            if older is not None:
                is_bad[older] = True
            mine[int(record["place"])] = int(row)
        for mine in by_chunk.values():
            if 0 not in mine or len(mine) != 1 + records["others"][mine[0]]:
                is_bad[list(mine.values())] = True
        return np.flatnonzero(is_bad)


def open_view(file: Path, fingerprint: str | None) -> View:
    """Map a file; a missing or damaged one, or another model's, gives an empty view."""
    try:
        with file.open("rb") as stream:
            found = os.fstat(stream.fileno())
            header = Header.read(stream.read(HEADER_BYTES), fingerprint)
            stamp = (found.st_ino, found.st_size, found.st_mtime_ns)
            if header is None:
                return View(None, _no_records(1), stamp)
            shape = record_type(header.width)
            whole = (found.st_size - HEADER_BYTES) // shape.itemsize
            if whole == 0:
                return View(header, _no_records(header.width), stamp)
            data = np.memmap(stream, np.uint8, "r", HEADER_BYTES, (whole * shape.itemsize,))
            return View(header, np.asarray(data).view(shape), stamp)
    except (OSError, ValueError):
        return View(None, _no_records(1), (0, 0, 0))


def stamp_of(file: Path) -> tuple[int, int, int]:
    """Inode, size and mtime: changes if a file is replaced or written to."""
    try:
        found = file.stat()
    except OSError:
        return (0, 0, 0)
    return found.st_ino, found.st_size, found.st_mtime_ns


def pack_ids(chunk_ids: Collection[str]) -> NDArray[np.uint64]:
    """Chunk ids as pairs of numbers; an invalid id becomes (0, 0), which no chunk has."""
    try:  # all at once takes a twentieth of the time
        packed = bytes.fromhex("".join(chunk_ids).replace("-", ""))
    except ValueError:
        packed = b""
    if len(packed) != 16 * len(chunk_ids):
        packed = b"".join(_pack_id(chunk_id) for chunk_id in chunk_ids)
    return np.frombuffer(packed, "<u8").reshape(-1, 2)


def pack_digests(digests: Sequence[bytes]) -> NDArray[np.uint64]:
    """Digests as numbers."""
    return np.frombuffer(b"".join(digests), "<u8")


def id_of(record: Any) -> str | None:
    """The chunk id of a record; None if it was blanked meanwhile."""
    pair = int(record["key"]), int(record["rest"])
    return str(uuid.UUID(bytes=struct.pack("<QQ", *pair))) if any(pair) else None


def new_records(
    ids: NDArray[np.uint64], digests: NDArray[np.uint64], of_chunks: Sequence[NDArray[np.float32]]
) -> Records:
    """Build records: for each chunk those of its parts, then that of the whole text.

    `of_chunks` has the whole text's vector first; a zero or invalid vector gets a fixed direction.
    """
    counts = [len(some) for some in of_chunks]
    vectors = np.concatenate([some[::-1] for some in of_chunks])
    made = np.zeros(len(vectors), record_type(vectors.shape[1]))
    made["key"], made["rest"] = np.repeat(ids[:, 0], counts), np.repeat(ids[:, 1], counts)
    made["digest"] = np.repeat(digests, counts)
    made["place"] = np.concatenate([np.arange(count)[::-1] for count in counts])
    made["others"] = np.repeat(np.array(counts) - 1, counts)
    with np.errstate(all="ignore"):
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units = vectors / lengths
    units[~np.isfinite(units).all(axis=1)] = np.eye(1, vectors.shape[1], dtype=np.float32)[0]
    made["scale"] = np.abs(units).max(axis=1) / 127
    made["vector"] = np.rint(units / made["scale"][:, None])
    return signed(made)


def signed(records: Records) -> Records:
    """The records with their checksums."""
    records["check"] = [checksum(records[row : row + 1]) for row in range(len(records))]
    return records


def checksum(record: Records) -> int:
    """The checksum of one record, excluding the checksum field; never 0."""
    whole = record.tobytes()
    rest = whole[: HEAD_BYTES - 4] + whole[HEAD_BYTES:]
    return (xxhash.xxh3_64_intdigest(rest) & 0xFFFFFFFF) or 1


def _model_digest(fingerprint: str) -> bytes:
    return xxhash.xxh3_128_digest(fingerprint.encode())


def _pack_id(chunk_id: str) -> bytes:
    try:
        return uuid.UUID(chunk_id).bytes
    except ValueError:
        return bytes(16)


def _find_last(order: Rows, values: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> Rows:
    """Row of the last occurrence of each wanted value; -1 if missing, and for 0, a blank."""
    if not len(values):
        return np.full(len(wanted), -1, dtype=np.int64)
    places = np.searchsorted(values, wanted, side="right") - 1
    is_same = (places >= 0) & (values[places] == wanted) & (wanted != 0)
    return np.where(is_same, order[places], -1).astype(np.int64)


def is_scale(scales: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which of these scales are possible for a unit vector; false for NaN."""
    with np.errstate(invalid="ignore"):
        return (scales > 0) & (scales <= _LARGEST_SCALE)


def _no_records(width: int) -> Records:
    return np.zeros(0, record_type(width))
