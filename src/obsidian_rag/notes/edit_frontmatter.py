"""Put something into a note's frontmatter and change no other byte.

Threat: a YAML library that writes back what it has read loses comments, quotes, order and line
ends. So the place is found by the parser's own marks, one piece of text is put in there, and the
result is read again: unless the body and every other field are as before, the edit is refused.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from obsidian_rag.notes.frontmatter import read_frontmatter, split_frontmatter
from obsidian_rag.notes.identity import Relation, id_trouble, is_uuid, read_id, read_related
from obsidian_rag.notes.yaml_fields import Field, Layout, Shape, read_layout

MAX_REL_CHARS = 100

_LINE_END = re.compile(r"\r\n?|\n")
_OPENING = re.compile(r"\ufeff?---[ \t]*+(?:[\r\n]|\Z)")
_CLOSING = re.compile(r"(?:---|\.\.\.)[ \t]*+(?:\r\n?|\n)?\Z")
_REST_OF_LINE = re.compile(r"(?:[ \t]++(?:#[^\r\n]*+)?+)?+(?:\r\n?|\n)")
_COLON = re.compile(r"[ \t]*+:(?=[ \t]+[^ \t\r\n])")
_DASH = re.compile(r"(?:^|(?<=[\r\n]))( *+)-(?=[ \t\r\n])")
_DISPUTED = re.compile(r"[\r\n]\t|[\x85\u2028\u2029]")
_DEEPER = "  "
_UNSAFE = "The frontmatter has a form that cannot be changed safely."


class EditRefused(ValueError):
    """The frontmatter has a shape that cannot be changed safely; the message says which."""


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
        """These lines, each with the line end of this note."""
        return "".join(f"{line}{self.line_end}" for line in lines)


@dataclass(frozen=True, slots=True)
class _Insertion:
    """What is put where, and what the field is expected to be afterwards."""

    at: int
    text: str
    name: str
    value: object


def with_id(text: str, value: str) -> str:
    """The note with `id` as its first field; an empty `id:` is filled in where it stands.

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
    layout = _layout(block)
    if field := _the_field(layout, "id"):
        return _apply(block, _filling(field, value))
    indented = " " * layout.column + line
    return _apply(block, _Insertion(block.start, block.lines(indented), "id", value))


def with_related(text: str, entries: Sequence[Relation], *, rich: bool) -> str:
    """The note with these entries in its `related:` list; ids that are there are left out.

    Raises:
        EditRefused: an entry cannot be written, or the frontmatter cannot be changed safely.
    """
    block = _read_block(text)
    fresh = _not_there_yet(block.values if block else {}, entries)
    added = [_plain(entry, rich) for entry in fresh]
    if not added:
        return text
    if block is None:
        return _with_new_block(text, "related:", *_items(_DEEPER, added))
    layout = _layout(block)
    indent = " " * layout.column
    field = _the_field(layout, "related")
    if field is None:
        lines = block.lines(f"{indent}related:", *_items(indent + _DEEPER, added))
        return _apply(block, _Insertion(block.end, lines, "related", added))
    return _apply(block, _addition(block, field, indent + _DEEPER, added))


def _read_block(text: str) -> _Block | None:
    yaml_text, body, _ = split_frontmatter(text)
    if yaml_text is None:
        if _OPENING.match(text):
            raise EditRefused("The frontmatter has no closing line.")
        return None
    values, error = read_frontmatter(yaml_text)
    if error:
        raise EditRefused(error)
    opened, closing = _LINE_END.search(text), _CLOSING.search(text, 0, body)
    assert opened is not None and closing is not None  # split_frontmatter found both
    return _Block(text, opened.end(), closing.start(), text[body:], opened[0], values)


def _layout(block: _Block) -> Layout:
    # Parsers disagree about where such lines start and end.
    if _DISPUTED.search(block.text, block.start - 1, block.end):
        raise EditRefused("The frontmatter has a tab before a field, or a rare line break.")
    layout = read_layout(block.text[block.start : block.end], block.start)
    if layout is None:
        raise EditRefused(_UNSAFE)
    if layout.is_flow:
        raise EditRefused("The frontmatter is written in braces, not in lines.")
    return layout


def _the_field(layout: Layout, name: str) -> Field | None:
    named = [field for field in layout.fields if field.name.lower() == name]
    if len(named) > 1:
        raise EditRefused(f"The field `{name}` is there more than once.")
    return named[0] if named else None


def _filling(field: Field, value: str) -> _Insertion:
    """A value for a field that has none: after the colon, or between the quotes."""
    piece = field.pieces[0]
    if piece.shape is not Shape.SCALAR or piece.value or piece.is_marked:
        raise EditRefused(f"The field `{field.name}` is there and cannot be filled in.")
    if piece.quote:
        return _Insertion(piece.end - 1, value, field.name, value)
    return _Insertion(piece.end, f' "{value}"', field.name, value)


def _not_there_yet(values: Mapping[str, object], entries: Sequence[Relation]) -> list[Relation]:
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


def _plain(entry: Relation, rich: bool) -> object:
    if not rich:
        return entry.target
    rel = {"rel": entry.rel} if entry.rel else {}
    return {"id": entry.target, **rel, "auto": entry.auto}


def _parts(entry: object) -> list[str]:
    """One entry as YAML; JSON's quotes and words are YAML's too."""
    if isinstance(entry, dict):
        return [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()]
    return [json.dumps(entry)]


def _items(indent: str, added: Sequence[object]) -> list[str]:
    lines = []
    for entry in added:
        first, *others = _parts(entry)
        lines += [f"{indent}- {first}", *(f"{indent}  {other}" for other in others)]
    return lines


def _addition(block: _Block, field: Field, indent: str, added: list[object]) -> _Insertion:
    """Where and how to add to the `related` that is there."""
    before = block.values[field.name]
    first = field.pieces[0]
    if first.shape is Shape.LIST and isinstance(before, list):
        add = _into_brackets if first.is_flow else _below_the_last
        return _Insertion(*add(block, field, added), field.name, [*before, *added])
    if first.shape is not Shape.SCALAR:
        raise EditRefused(f"The field `{field.name}` is not a list.")
    if before not in (None, ""):
        text = _before_the_only(block, indent, added)
        return _Insertion(_after_colon(block, field), text, field.name, [*added, before])
    if first.value or first.quote or first.is_marked:
        raise EditRefused(f"The field `{field.name}` holds an empty value; remove it first.")
    lines = block.lines(*_items(indent, added))
    return _Insertion(_next_line(block, first.end), lines, field.name, added)


def _into_brackets(block: _Block, field: Field, added: list[object]) -> tuple[int, str]:
    first, *inside, closing = field.pieces
    before = block.values[field.name]
    if isinstance(before, list) and any(isinstance(entry, list) for entry in before):
        raise EditRefused(f"A link in `{field.name}` has no quotes around it.")
    words = [", ".join(_parts(entry)) for entry in added]
    entries = [f"{{{word}}}" if isinstance(added[0], dict) else word for word in words]
    if inside:
        return inside[-1].end, "".join(f", {entry}" for entry in entries)
    if "#" in block.text[first.start : closing.end]:
        raise EditRefused(f"There is a comment in the empty list of `{field.name}`.")
    return closing.start, ", ".join(entries)


def _below_the_last(block: _Block, field: Field, added: list[object]) -> tuple[int, str]:
    first, *inside, closing = field.pieces
    dash = _DASH.search(block.text, first.start - first.column, closing.end)
    if dash is None:
        raise EditRefused(f"The list of `{field.name}` does not start on a line of its own.")
    last = [piece for piece in inside if piece.shape is not Shape.END or piece.start < piece.end]
    return _next_line(block, last[-1].end), block.lines(*_items(dash[1], added))


def _after_colon(block: _Block, field: Field) -> int:
    colon = _COLON.match(block.text, field.name_end)
    if colon is None:
        raise EditRefused(f"The value of `{field.name}` does not follow its name.")
    return colon.end()


def _before_the_only(block: _Block, indent: str, added: list[object]) -> str:
    """Make a list of a single value without moving it: what is new stands before it."""
    lines = ("", *_items(indent, added), f"{indent}-")
    return block.line_end.join(lines)


def _next_line(block: _Block, at: int) -> int:
    if block.text[at - 1] in "\r\n":
        return at
    rest = _REST_OF_LINE.match(block.text, at)
    if rest is None:
        raise EditRefused(_UNSAFE)
    return rest.end()


def _with_new_block(text: str, *lines: str) -> str:
    found = _LINE_END.search(text)
    at = 1 if text.startswith("\ufeff") else 0
    block = _Block(text, at, at, text[at:], found[0] if found else "\n", {})
    result = text[:at] + block.lines("---", *lines, "---") + text[at:]
    if _read_again(result).body != block.body:
        raise EditRefused(_UNSAFE)
    return result


def _apply(block: _Block, insertion: _Insertion) -> str:
    at, name = insertion.at, insertion.name
    result = block.text[:at] + insertion.text + block.text[at:]
    after = _read_again(result)
    if (
        after.body != block.body
        or repr(after.values.get(name)) != repr(insertion.value)
        or _others(after.values, name) != _others(block.values, name)
    ):
        raise EditRefused(_UNSAFE)
    return result


def _read_again(text: str) -> _Block:
    try:
        block = _read_block(text)
    except EditRefused:
        block = None
    if block is None:
        raise EditRefused(_UNSAFE)
    return block


def _others(values: Mapping[str, object], name: str) -> str:
    # As text, because to Python 1, 1.0 and True are equal.
    return repr([(key, value) for key, value in values.items() if key != name])
