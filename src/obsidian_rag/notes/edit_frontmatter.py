"""Insert into a note's frontmatter without changing any other byte.

Threat: a YAML library that writes back what it has read loses comments, quotes, order and line
ends. So the place is found by the parser's own marks, one piece of text is inserted there, and the
result is parsed again: unless the body and every other field are as before, the edit is refused.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import yaml

from obsidian_rag.notes.frontmatter import read_frontmatter, split_frontmatter
from obsidian_rag.notes.identity import Relation, id_trouble, is_uuid, read_id, read_related
from obsidian_rag.notes.lines import LINE_END

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_REL_CHARS = 100
_OPENING = re.compile(r"\ufeff?---[ \t]*+(?:[\r\n]|\Z)")
_CLOSING = re.compile(r"(?:---|\.\.\.)[ \t]*+(?:\r\n?|\n)?\Z")
_REST_OF_LINE = re.compile(r"(?:[ \t]++(?:#[^\r\n]*+)?+)?+(?:\r\n?|\n)")
_COLON = re.compile(r"[ \t]*+:(?=[ \t]+[^ \t\r\n])")
_DASH = re.compile(r"(?:^|(?<=[\r\n]))( *+)-(?=[ \t\r\n])")
_AMBIGUOUS_LINES = re.compile(r"[\r\n]\t|[\x85\u2028\u2029]")
_INDENT = "  "
_UNSAFE = "The frontmatter has a form that cannot be changed safely."


class EditRefused(ValueError):
    """The frontmatter has a form that cannot be changed safely; the message names it."""


def with_id(text: str, value: str) -> str:
    """The note with `id` as its first field; an empty `id:` is filled in where it is.

    Raises:
        EditRefused: there is an id already, or the frontmatter cannot be changed safely.
    """
    if id_trouble(value):
        raise EditRefused(f"'{value}' is not a UUID v4.")
    line = f'id: "{value}"'
    block = _read_block(text)
    if block is None:
        return _with_new_block(text, line)
    if found := read_id(block.values):
        if found.trouble:
            raise EditRefused(f"Its `{found.field}` is not a UUID v4; correct or remove it.")
        raise EditRefused(f"It has an id in `{found.field}`, and ids never change.")
    layout = _read_safe_layout(block)
    if field := _find_field(layout, "id"):
        return _apply(block, _fill_empty(field, value))
    indented = " " * layout.column + line
    return _apply(block, _Insertion(block.start, block.lines(indented), "id", value))


def with_related(text: str, entries: Sequence[Relation], *, rich: bool) -> str:
    """The note with these entries added to its `related:` list, unless their ids are there.

    Raises:
        EditRefused: an entry cannot be written, or the frontmatter cannot be changed safely.
    """
    block = _read_block(text)
    fresh = _new_entries(block.values if block else {}, entries)
    added = [_entry_value(entry, rich) for entry in fresh]
    if not added:
        return text
    if block is None:
        return _with_new_block(text, "related:", *_format_items(_INDENT, added))
    layout = _read_safe_layout(block)
    indent = " " * layout.column
    field = _find_field(layout, "related")
    if field is None:
        lines = block.lines(f"{indent}related:", *_format_items(indent + _INDENT, added))
        return _apply(block, _Insertion(block.end, lines, "related", added))
    return _apply(block, _extend_field(block, field, indent + _INDENT, added))


@dataclass(frozen=True, slots=True)
class _Block:
    """A frontmatter in its note: from `start` up to the closing line at `end`."""

    text: str
    start: int
    end: int
    body: str
    line_end: str
    values: Mapping[str, object]

    def lines(self, *lines: str) -> str:
        """Join lines with the line end of this note."""
        return "".join(f"{line}{self.line_end}" for line in lines)


@dataclass(frozen=True, slots=True)
class _Insertion:
    """A text to insert, and the expected value of the field afterwards."""

    at: int
    text: str
    name: str
    value: object


class Shape(StrEnum):
    """The kind of a parser event."""

    SCALAR = "scalar"
    ALIAS = "alias"
    LIST = "list"
    MAPPING = "mapping"
    END = "end"


@dataclass(frozen=True, slots=True)
class Piece:
    """A scalar or alias, or the beginning or end of a list or mapping.

    The end of a list or mapping in block style is empty, and at the start of the next piece.
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
    """A top-level field: its name, where the name ends, and the pieces of its value."""

    name: str
    name_end: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields in order, their indentation, and whether they are in braces."""

    fields: tuple[Field, ...] = ()
    column: int = 0
    is_flow: bool = False


def _read_block(text: str) -> _Block | None:
    yaml_text, body, _ = split_frontmatter(text)
    if yaml_text is None:
        if _OPENING.match(text):
            raise EditRefused("The frontmatter has no closing line.")
        return None
    values, error = read_frontmatter(yaml_text)
    if error:
        raise EditRefused(error)
    opened, closing = LINE_END.search(text), _CLOSING.search(text, 0, body)
    assert opened is not None and closing is not None  # found by split_frontmatter
    return _Block(text, opened.end(), closing.start(), text[body:], opened[0], values)


def _read_safe_layout(block: _Block) -> Layout:
    # YAML parsers disagree on where such lines start and end.
    if _AMBIGUOUS_LINES.search(block.text, block.start - 1, block.end):
        raise EditRefused("The frontmatter has a tab before a field, or a rare line break.")
    layout = read_layout(block.text[block.start : block.end], block.start)
    if layout is None:
        raise EditRefused(_UNSAFE)
    if layout.is_flow:
        raise EditRefused("The frontmatter is written in braces, not in lines.")
    return layout


def read_layout(yaml_text: str, offset: int) -> Layout | None:
    """The layout of a mapping that starts at `offset` of a note; None if it cannot be parsed.

    Parsing events is iterative, so deep nesting is safe here.
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
    """Alternating keys and values, each with all its pieces."""
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


def _find_field(layout: Layout, name: str) -> Field | None:
    named = [field for field in layout.fields if field.name.lower() == name]
    if len(named) > 1:
        raise EditRefused(f"The field `{name}` is there more than once.")
    return named[0] if named else None


def _fill_empty(field: Field, value: str) -> _Insertion:
    """Fill in an empty field: after the colon, or between the quotes."""
    piece = field.pieces[0]
    if piece.shape is not Shape.SCALAR or piece.value or piece.is_marked:
        raise EditRefused(f"The field `{field.name}` is there and cannot be filled in.")
    if piece.quote:
        return _Insertion(piece.end - 1, value, field.name, value)
    return _Insertion(piece.end, f' "{value}"', field.name, value)


def _new_entries(values: Mapping[str, object], entries: Sequence[Relation]) -> list[Relation]:
    known = {relation.target for relation in read_related(values) if not relation.is_link}
    fresh = []
    for entry in entries:
        if entry.is_link or not is_uuid(entry.target):
            raise EditRefused(f"'{entry.target}' is not the id of a note.")
        if not entry.rel.isprintable() or len(entry.rel) > MAX_REL_CHARS:
            raise EditRefused(f"A relation is named in one line of {MAX_REL_CHARS} characters.")
        if entry.target not in known:
            known.add(entry.target)
            fresh.append(entry)
    return fresh


def _entry_value(entry: Relation, rich: bool) -> object:
    if not rich:
        return entry.target
    rel = {"rel": entry.rel} if entry.rel else {}
    return {"id": entry.target, **rel, "auto": entry.auto}


def _format_entry(entry: object) -> list[str]:
    """The fields of one entry as YAML; JSON scalars are valid YAML."""
    if isinstance(entry, dict):
        return [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()]
    return [json.dumps(entry)]


def _format_items(indent: str, added: Sequence[object]) -> list[str]:
    lines = []
    for entry in added:
        first, *others = _format_entry(entry)
        lines += [f"{indent}- {first}", *(f"{indent}  {other}" for other in others)]
    return lines


def _extend_field(block: _Block, field: Field, indent: str, added: list[object]) -> _Insertion:
    """Where and how to extend an existing `related` field."""
    before = block.values[field.name]
    first = field.pieces[0]
    if first.shape is Shape.LIST and isinstance(before, list):
        add = _insert_into_flow_list if first.is_flow else _insert_after_last_item
        return _Insertion(*add(block, field, added), field.name, [*before, *added])
    if first.shape is not Shape.SCALAR:
        raise EditRefused(f"The field `{field.name}` is not a list.")
    if before not in (None, ""):
        text = _format_before_single(block, indent, added)
        return _Insertion(_find_value_start(block, field), text, field.name, [*added, before])
    if first.value or first.quote or first.is_marked:
        raise EditRefused(f"The field `{field.name}` has an empty value; remove it first.")
    lines = block.lines(*_format_items(indent, added))
    return _Insertion(_find_next_line(block, first.end), lines, field.name, added)


def _insert_into_flow_list(block: _Block, field: Field, added: list[object]) -> tuple[int, str]:
    first, *inside, closing = field.pieces
    before = block.values[field.name]
    if isinstance(before, list) and any(isinstance(entry, list) for entry in before):
        raise EditRefused(f"A link in `{field.name}` has no quotes around it.")
    words = [", ".join(_format_entry(entry)) for entry in added]
    entries = [f"{{{word}}}" if isinstance(added[0], dict) else word for word in words]
    if inside:
        return inside[-1].end, "".join(f", {entry}" for entry in entries)
    if "#" in block.text[first.start : closing.end]:
        raise EditRefused(f"There is a comment in the empty list of `{field.name}`.")
    return closing.start, ", ".join(entries)


def _insert_after_last_item(block: _Block, field: Field, added: list[object]) -> tuple[int, str]:
    first, *inside, closing = field.pieces
    dash = _DASH.search(block.text, first.start - first.column, closing.end)
    if dash is None:
        raise EditRefused(f"The list of `{field.name}` does not start on a line of its own.")
    last = [piece for piece in inside if piece.shape is not Shape.END or piece.start < piece.end]
    return _find_next_line(block, last[-1].end), block.lines(*_format_items(dash[1], added))


def _find_value_start(block: _Block, field: Field) -> int:
    colon = _COLON.match(block.text, field.name_end)
    if colon is None:
        raise EditRefused(f"The value of `{field.name}` does not follow its name.")
    return colon.end()


def _format_before_single(block: _Block, indent: str, added: list[object]) -> str:
    """Turn a single value into a list without moving it, by inserting the new items before it."""
    lines = ("", *_format_items(indent, added), f"{indent}-")
    return block.line_end.join(lines)


def _find_next_line(block: _Block, at: int) -> int:
    if block.text[at - 1] in "\r\n":
        return at
    rest = _REST_OF_LINE.match(block.text, at)
    if rest is None:
        raise EditRefused(_UNSAFE)
    return rest.end()


def _with_new_block(text: str, *lines: str) -> str:
    found = LINE_END.search(text)
    at = 1 if text.startswith("\ufeff") else 0
    block = _Block(text, at, at, text[at:], found[0] if found else "\n", {})
    result = text[:at] + block.lines("---", *lines, "---") + text[at:]
    if _read_result(result).body != block.body:
        raise EditRefused(_UNSAFE)
    return result


def _apply(block: _Block, insertion: _Insertion) -> str:
    at, name = insertion.at, insertion.name
    result = block.text[:at] + insertion.text + block.text[at:]
    after = _read_result(result)
    if (
        after.body != block.body
        or repr(after.values.get(name)) != repr(insertion.value)
        or _other_fields(after.values, name) != _other_fields(block.values, name)
    ):
        raise EditRefused(_UNSAFE)
    return result


def _read_result(text: str) -> _Block:
    try:
        block = _read_block(text)
    except EditRefused:
        block = None
    if block is None:
        raise EditRefused(_UNSAFE)
    return block


def _other_fields(values: Mapping[str, object], name: str) -> str:
    # As text, because 1, 1.0 and True are equal in Python.
    return repr([(key, value) for key, value in values.items() if key != name])
