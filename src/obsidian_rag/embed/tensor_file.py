"""Read and write safetensors files: 8 bytes of length, a JSON header, raw numbers.

Half-precision arrays are converted to float32; all others are memory-mapped.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.errors import ConfigInvalid

Array = NDArray[Any]
_KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I8": "<i1", "I64": "<i8"}
_NAMES = {"float32": "F32", "int8": "I8"}
_MAX_HEADER_BYTES = 64 << 20
_ALIGNMENT_BYTES = 64
_FIX = "Get the model's files again."


@dataclass(frozen=True, slots=True)
class Place:
    """The position of one array in the file."""

    start: int
    length: int


def read_tensors(file: Path) -> dict[str, Array]:
    """Every array of the file by name, memory-mapped unless it is converted.

    Raises:
        ConfigInvalid: not a safetensors file, or a truncated one.
    """
    header, start = _read_header(file)
    return {name: _widen(_map_array(file, name, entry, start)) for name, entry in header.items()}


def map_tensor(file: Path, name: str) -> Array:
    """One array as it is stored, memory-mapped.

    Raises:
        ConfigInvalid: not a safetensors file, or it does not have this array.
    """
    header, start = _read_header(file)
    return _map_array(file, name, header.get(name, {}), start)


def write_tensors(file: Path, tensors: Mapping[str, Array]) -> dict[str, Place]:
    """Write float32 and int8 arrays, aligned, and return their positions."""
    places, header, end = {}, {}, 0
    for name, array in tensors.items():
        start = -(-end // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        end = start + array.nbytes
        places[name] = Place(start, array.nbytes)
        kind = _NAMES[array.dtype.name]
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT_BYTES)
    first = 8 + len(text)
    with file.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for name, array in tensors.items():
            stream.write(bytes(first + places[name].start - stream.tell()))
            stream.write(np.ascontiguousarray(array).data)
    return {name: Place(first + place.start, place.length) for name, place in places.items()}


def _read_header(file: Path) -> tuple[dict[str, dict[str, Any]], int]:
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            text = stream.read(length) if length < _MAX_HEADER_BYTES else b""
        header = json.loads(text)
        header.pop("__metadata__", None)
    except (OSError, ValueError, AttributeError) as error:
        raise ConfigInvalid(f"{file} is not a safetensors file.", _FIX) from error
    return header, 8 + length


def _map_array(file: Path, name: str, entry: dict[str, Any], first: int) -> Array:
    try:
        kind = np.dtype(_KINDS[entry["dtype"]])
        shape = tuple(int(number) for number in entry["shape"])
        start, end = entry["data_offsets"]
        if end - start != int(np.prod(shape, dtype=np.int64)) * kind.itemsize or start < 0:
            raise ValueError(name)
        array: Array = np.memmap(file, kind, "r", offset=first + start, shape=shape)
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise ConfigInvalid(f"{file}: the array '{name}' cannot be read.", _FIX) from error
    return array


def _widen(array: Array) -> Array:
    if array.dtype == np.uint16:  # BF16, which numpy does not have: the upper half of a float32
        return (array.astype(np.uint32) << np.uint32(16)).view(np.float32)
    is_other = array.dtype.kind == "f" and array.dtype.itemsize != 4
    return array.astype(np.float32) if is_other else array
