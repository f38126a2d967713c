"""Named arrays in a safetensors file: 8 bytes of length, a JSON header, raw numbers.

Half-precision numbers come out as float32; everything else stays in the file until it is used.
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
_LONGEST_HEADER = 64 << 20
_ALIGNED = 64
_FIX = "Get the model's files again."


@dataclass(frozen=True, slots=True)
class Place:
    """Where the numbers of one array stand in the file."""

    start: int
    length: int


def read_tensors(file: Path) -> dict[str, Array]:
    """Every array of the file by name, mapped where its numbers need no widening.

    Raises:
        ConfigInvalid: not a safetensors file, or one that was cut off.
    """
    header, start = _header(file)
    return {name: _widened(_mapped(file, name, said, start)) for name, said in header.items()}


def map_tensor(file: Path, name: str) -> Array:
    """One array as it is stored; its numbers stay in the file until they are used.

    Raises:
        ConfigInvalid: not a safetensors file, or one without this array.
    """
    header, start = _header(file)
    return _mapped(file, name, header.get(name, {}), start)


def write_tensors(file: Path, tensors: Mapping[str, Array]) -> dict[str, Place]:
    """Write float32 and int8 arrays, each at a rounded place, and say where they stand."""
    places, header, end = {}, {}, 0
    for name, array in tensors.items():
        start = -(-end // _ALIGNED) * _ALIGNED
        end = start + array.nbytes
        places[name] = Place(start, array.nbytes)
        kind = _NAMES[array.dtype.name]
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNED)
    first = 8 + len(text)
    with file.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for name, array in tensors.items():
            stream.write(bytes(first + places[name].start - stream.tell()))
            stream.write(np.ascontiguousarray(array).data)
    return {name: Place(first + place.start, place.length) for name, place in places.items()}


def _header(file: Path) -> tuple[dict[str, dict[str, Any]], int]:
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            text = stream.read(length) if length < _LONGEST_HEADER else b""
        header = json.loads(text)
        header.pop("__metadata__", None)
    except (OSError, ValueError, AttributeError) as error:
        raise ConfigInvalid(f"{file} is not a safetensors file.", _FIX) from error
    return header, 8 + length


def _mapped(file: Path, name: str, said: dict[str, Any], first: int) -> Array:
    try:
        kind = np.dtype(_KINDS[said["dtype"]])
        shape = tuple(int(number) for number in said["shape"])
        start, end = said["data_offsets"]
        if end - start != int(np.prod(shape, dtype=np.int64)) * kind.itemsize or start < 0:
            raise ValueError(name)
        array: Array = np.memmap(file, kind, "r", offset=first + start, shape=shape)
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise ConfigInvalid(f"{file}: the array '{name}' cannot be read.", _FIX) from error
    return array


def _widened(array: Array) -> Array:
    if array.dtype == np.uint16:  # BF16, which numpy does not know: the first half of a float32
        return (array.astype(np.uint32) << np.uint32(16)).view(np.float32)
    is_other = array.dtype.kind == "f" and array.dtype.itemsize != 4
    return array.astype(np.float32) if is_other else array
