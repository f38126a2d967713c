"""Where in a frontmatter's text its fields stand, by the marks of the YAML parser."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import yaml

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Shape(StrEnum):
    """What the parser saw."""

    SCALAR = "scalar"
    ALIAS = "alias"
    LIST = "list"
    MAPPING = "mapping"
    END = "end"


@dataclass(frozen=True, slots=True)
class Piece:
    """A scalar or alias, or the beginning or end of a list or mapping.

    A list or mapping that is written in lines ends, with no width, where the next thing begins.
    """

    shape: Shape
    start: int
    end: int
    column: int
    is_flow: bool
    value: str
    quote: str
    is_marked: bool


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the top level: its name, where that ends, and the pieces of its value."""

    name: str
    name_end: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields in their order, how far they are indented, and whether braces hold them."""

    fields: tuple[Field, ...] = ()
    column: int = 0
    is_flow: bool = False


def read_layout(yaml_text: str, offset: int) -> Layout | None:
    """The layout of a mapping that starts at `offset` of a note; None if it cannot be parsed.

    Events come from a flat loop, so depth is no danger here.
    """
    try:
        pieces = [*_pieces(yaml_text, offset)]
    except yaml.YAMLError:
        return None
    if not pieces or pieces[0].shape is not Shape.MAPPING:
        return Layout()
    nodes = _nodes(pieces[1:-1])
    fields = tuple(
        Field(key[0].value, key[0].end, tuple(value))
        for key, value in zip(nodes[::2], nodes[1::2], strict=True)
        if key[0].shape is Shape.SCALAR
    )
    return Layout(fields, pieces[0].column, pieces[0].is_flow)


def _nodes(pieces: list[Piece]) -> list[list[Piece]]:
    """Keys and values in turn, each with all that is inside."""
    nodes: list[list[Piece]] = []
    depth = 0
    for piece in pieces:
        if piece.shape is Shape.END:
            depth -= 1
        elif not depth:
            nodes.append([])
        nodes[-1].append(piece)
        if piece.shape in (Shape.LIST, Shape.MAPPING):
            depth += 1
    return nodes


def _pieces(yaml_text: str, offset: int) -> Iterator[Piece]:
    for event in yaml.parse(yaml_text, Loader=_Loader):
        shape = _shape(event)
        first, last = event.start_mark, event.end_mark
        if shape is not None and first is not None and last is not None:
            yield Piece(
                shape,
                start=offset + first.index,
                end=offset + last.index,
                column=first.column,
                is_flow=bool(getattr(event, "flow_style", False)),
                value=getattr(event, "value", ""),
                quote=getattr(event, "style", "") or "",
                is_marked=bool(getattr(event, "anchor", None) or getattr(event, "tag", None)),
            )


def _shape(event: yaml.Event) -> Shape | None:
    match event:
        case yaml.ScalarEvent():
            return Shape.SCALAR
        case yaml.AliasEvent():
            return Shape.ALIAS
        case yaml.SequenceStartEvent():
            return Shape.LIST
        case yaml.MappingStartEvent():
            return Shape.MAPPING
        case yaml.CollectionEndEvent():
            return Shape.END
    return None
