"""Writing ONNX files: just the protobuf messages that a network of ours needs.

Weights are not in the file: each is named with its place in a file beside it.
"""

import struct
from collections.abc import Sequence

from obsidian_rag.embed.tensor_file import Place

FLOAT, INT8, INT64 = 1, 3, 7
_IR_VERSION = 8
# The oldest sets of operators that have all we use.
_OPERATORS = {"": 17, "com.microsoft": 1}
_VARINT, _LENGTH, _FIXED = 0, 2, 5
_FLOAT_KIND, _INT_KIND = 1, 2


def node(
    operator: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    domain: str = "",
    **attributes: int | float,
) -> bytes:
    """One operation; an input that is left out is an empty name."""
    message = b"".join(_text(1, name) for name in inputs)
    message += b"".join(_text(2, name) for name in outputs)
    message += _text(3, outputs[0]) + _text(4, operator)
    message += b"".join(_part(5, _attribute(name, value)) for name, value in attributes.items())
    return message + (_text(7, domain) if domain else b"")


def constant(name: str, values: Sequence[int]) -> bytes:
    """A small list of whole numbers inside the file."""
    raw = struct.pack(f"<{len(values)}q", *values)
    return _number(1, len(values)) + _number(2, INT64) + _text(8, name) + _part(9, raw)


def outside(name: str, kind: int, shape: Sequence[int], file: str, place: Place) -> bytes:
    """An array by its place in a file beside the model."""
    message = b"".join(_number(1, size) for size in shape)
    message += _number(2, kind) + _text(8, name)
    told = {"location": file, "offset": str(place.start), "length": str(place.length)}
    for key, value in told.items():
        message += _part(13, _text(1, key) + _text(2, value))
    return message + _number(14, 1)


def value(name: str, kind: int, shape: Sequence[int | str]) -> bytes:
    """An input or output of the network; a size with a name is free."""
    sizes = b"".join(
        _part(1, _number(1, size) if isinstance(size, int) else _text(2, size)) for size in shape
    )
    return _text(1, name) + _part(2, _part(1, _number(1, kind) + _part(2, sizes)))


def model(
    nodes: Sequence[bytes],
    weights: Sequence[bytes],
    inputs: Sequence[bytes],
    outputs: Sequence[bytes],
) -> bytes:
    """The whole file."""
    graph = b"".join(_part(1, message) for message in nodes) + _text(2, "network")
    for field, messages in ((5, weights), (11, inputs), (12, outputs)):
        graph += b"".join(_part(field, message) for message in messages)
    file = _number(1, _IR_VERSION) + _text(2, "obsidian-rag") + _part(7, graph)
    for domain, version in _OPERATORS.items():
        file += _part(8, _text(1, domain) + _number(2, version))
    return file


def _attribute(name: str, value: int | float) -> bytes:
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, _INT_KIND)
    number = _key(2, _FIXED) + struct.pack("<f", value)
    return _text(1, name) + number + _number(20, _FLOAT_KIND)


def _text(field: int, text: str) -> bytes:
    return _part(field, text.encode())


def _part(field: int, message: bytes) -> bytes:
    return _key(field, _LENGTH) + _varint(len(message)) + message


def _number(field: int, number: int) -> bytes:
    return _key(field, _VARINT) + _varint(number)


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    digits = bytearray()
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])
