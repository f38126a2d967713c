"""What the indexes need of one note: a parsed note in, plain values out. No I/O."""

import posixpath
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.notes import (
    Note,
    RagPolicy,
    Relation,
    body_lines,
    parse_date,
    read_id,
    read_kind,
    read_related,
    read_summary,
)
from obsidian_rag.relations.templates import Lines, line_number, line_numbers
from obsidian_rag.relations.words import LINE_END, Speller, prose

_MOST_SUMMARY = 500
_MOST_PHRASE = 12


@dataclass(frozen=True, slots=True)
class Content:
    """One note as the indexes see it.

    `stream` and `phrases` (its names) are terms as the speller numbers them; the stream begins on
    line `first_line` of the file. `lines` are all lines, those that come from templates too.
    """

    path: str
    title: str
    aliases: tuple[str, ...]
    uid: str | None
    kind: str
    summary: str
    tags: tuple[str, ...]
    links: tuple[str, ...]
    related: tuple[Relation, ...]
    is_daily: bool
    is_private: bool
    stream: NDArray[np.int32]
    first_line: int
    phrases: tuple[tuple[int, ...], ...]
    lines: Lines


def read_content(
    note: Note, speller: Speller, max_chars: int | None, templates: frozenset[int] | None = None
) -> Content:
    """The content of a note; lines that come from templates do not count as its words.

    None for the templates means that nobody wants to know of lines at all.
    """
    first, body = body_lines(note)
    lines = line_numbers(body if templates is not None else ())
    if templates and not templates.isdisjoint(lines.tolist()):
        body = ["" if line and line_number(line) in templates else line for line in body]
    text = LINE_END.join(body)
    found = read_id(note.frontmatter)
    names = dict.fromkeys((note.title, _file_name(note.path), *note.aliases))
    phrases = (tuple(speller.name(name)[:_MOST_PHRASE].tolist()) for name in names)
    return Content(
        path=note.path,
        title=note.title,
        aliases=note.aliases,
        uid=found.value if found and not found.trouble else None,
        kind=read_kind(note.frontmatter),
        summary=read_summary(note.frontmatter)[:_MOST_SUMMARY],
        tags=tuple(dict.fromkeys(tag.lstrip("#").lower() for tag in note.tags)),
        links=tuple(dict.fromkeys(link.target for link in note.links if link.target)),
        related=read_related(note.frontmatter).relations,
        is_daily=parse_date(note.path, {}) is not None,
        is_private=note.policy is RagPolicy.PRIVATE,
        stream=speller.read(prose(text[:max_chars] if max_chars else text)),
        first_line=first,
        phrases=tuple(dict.fromkeys(phrase for phrase in phrases if phrase)),
        lines=lines,
    )


def _file_name(path: str) -> str:
    stem = posixpath.splitext(posixpath.basename(path))[0]
    return stem.replace("_", " ").replace("-", " ")
