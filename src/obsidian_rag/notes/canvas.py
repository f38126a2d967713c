"""Obsidian Canvas: the text of the cards in a JSON file, as lines.

All lines of a card have the number of the JSON line that the card is on.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from obsidian_rag.notes.dates import parse_date
from obsidian_rag.notes.lines import LINE_END, Body, find_fences, split_lines
from obsidian_rag.notes.links import file_title
from obsidian_rag.notes.markdown import scan
from obsidian_rag.notes.note import Heading, Link, LinkKind, Note, RagPolicy
from obsidian_rag.notes.tags import unique_tags

_ID = re.compile(r'"id"\s*+:\s*+("(?:[^"\\]|\\.)*+")')


@dataclass(frozen=True, slots=True)
class Card:
    """One element of a canvas that has text, and its line in the JSON file."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Canvas:
    """The text and file links of a canvas."""

    cards: tuple[Card, ...]
    links: tuple[Link, ...]


def parse_canvas(path: str, text: str) -> Note:
    """Parse a Canvas file."""
    canvas, error = read_canvas(text)
    found = scan(canvas_body(canvas))
    return Note(
        path=path,
        title=file_title(path),
        text="" if error else text,
        body_line=1,
        frontmatter={},
        aliases=(),
        tags=unique_tags(found.tags),
        frontmatter_tags=(),
        headings=tuple(head for _, head in found.heads),
        links=(*found.links, *canvas.links),
        date=parse_date(path, {}),
        policy=RagPolicy.INDEX,
        parse_error=error,
    )


def canvas_outline(note: Note) -> tuple[Body, list[tuple[int, Heading]]]:
    """The lines of all cards, and each heading with its index among them."""
    body = canvas_body(read_canvas(note.text)[0])
    return body, scan(body).heads


def read_canvas(text: str) -> tuple[Canvas, str | None]:
    """The canvas, and what is wrong if the file cannot be read."""
    text = text.removeprefix("\ufeff")
    if not text.strip():
        return Canvas((), ()), None
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        return Canvas((), ()), f"The canvas is not valid JSON{where}."
    if not isinstance(tree, dict):
        return Canvas((), ()), "The canvas is not a JSON object."
    lines = _find_id_lines(text)
    cards, links = [], []
    for entry in (*_read_entries(tree, "nodes"), *_read_entries(tree, "edges")):
        line = lines.get(_text(entry, "id"), 1)
        cards.append(Card(_entry_words(entry), line))
        if file := _text(entry, "file"):
            links.append(_file_link(file, _text(entry, "subpath"), line))
    return Canvas(tuple(card for card in cards if card.text), tuple(links)), None


def canvas_body(canvas: Canvas) -> Body:
    """All cards as one text, a blank line between them."""
    lines: list[str] = []
    numbers: list[int] = []
    breaks: list[int] = []
    for card in canvas.cards:
        breaks.append(len(lines))
        own = [*split_lines(card.text), ""]
        lines += own
        numbers += [card.line] * len(own)
    # An unclosed fence must not extend into the next card, so each card is searched on its own.
    ends = [*breaks[1:], len(lines)]
    fences = tuple(
        fence
        for start, end in zip(breaks, ends, strict=False)
        for fence in find_fences(lines[start:end], 0, start)
    )
    return Body(lines, 0, numbers, fences, frozenset(breaks))


def _read_entries(tree: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    value = tree.get(key)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _entry_words(entry: Mapping[str, object]) -> str:
    file = _text(entry, "file") + _text(entry, "subpath")
    parts = (_text(entry, "label"), _text(entry, "text"), file, _text(entry, "url"))
    return "\n".join(part for part in parts if part.strip())


def _text(entry: Mapping[str, object], key: str) -> str:
    value = entry.get(key)
    # JSON can contain half a surrogate pair (\ud800), which no store can write.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _file_link(file: str, subpath: str, line: int) -> Link:
    anchor = subpath.removeprefix("#")
    is_block = anchor.startswith("^")
    return Link(
        LinkKind.EMBED,
        file,
        None if is_block else anchor or None,
        anchor[1:] or None if is_block else None,
        None,
        line,
    )


def _find_id_lines(text: str) -> dict[str, int]:
    ends = [match.end() for match in LINE_END.finditer(text)]
    lines: dict[str, int] = {}
    for match in _ID.finditer(text):
        try:
            name = json.loads(match[1])
        except ValueError:
            continue
        lines.setdefault(name, bisect_left(ends, match.start() + 1) + 1)
    return lines
