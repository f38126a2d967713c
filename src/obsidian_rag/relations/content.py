"""What the indexes need of one note: a parsed note in, plain values out. No I/O."""

import posixpath
from dataclasses import dataclass
from typing import NamedTuple

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
from obsidian_rag.relations.templates import NoteLines, note_lines
from obsidian_rag.relations.words import LINE_END, Speller, prose

_MOST_SUMMARY = 500
_MOST_PHRASE = 12


@dataclass(frozen=True, slots=True)
class Content:
    """One note as the indexes see it.

    `stream` and `phrases` (its names) are terms as the speller numbers them; `stream` begins with
    the first of `lines`. Both have all lines, those that come from templates too.
    """

    path: str
    title: str
    uid: str | None
    kind: str
    summary: str
    tags: tuple[str, ...]
    links: tuple[str, ...]
    related: tuple[Relation, ...]
    is_daily: bool
    is_private: bool
    stream: NDArray[np.int32]
    phrases: tuple[tuple[int, ...], ...]
    lines: NoteLines


class Terms(NamedTuple):
    """The terms that a speller met since it told of them last, and a word for each."""

    speller: str
    terms: list[str]
    words: list[str]


class Draft(NamedTuple):
    """A note that is to be written, and the terms that were new in it.

    A vector that is of this content has its hash; without, the one from before is kept.
    """

    content: Content
    content_hash: str
    fresh: Terms
    vector: bytes | None = None
    vector_hash: str | None = None


def read_content(
    note: Note, speller: Speller, max_chars: int | None, *, with_lines: bool = True
) -> Content:
    """The content of a note; lines are known by their place alone if nobody wants to count them."""
    first, body = body_lines(note)
    text = LINE_END.join(body)
    found = read_id(note.frontmatter)
    names = dict.fromkeys((note.title, _file_name(note.path), *note.aliases))
    phrases = (tuple(speller.name(name)[:_MOST_PHRASE]) for name in names)
    return Content(
        path=note.path,
        title=note.title,
        uid=found.value if found and not found.trouble else None,
        kind=read_kind(note.frontmatter),
        summary=read_summary(note.frontmatter)[:_MOST_SUMMARY],
        tags=tuple(dict.fromkeys(tag.lstrip("#").lower() for tag in note.tags)),
        links=tuple(dict.fromkeys(link.target for link in note.links if link.target)),
        related=read_related(note.frontmatter),
        is_daily=parse_date(note.path, {}) is not None,
        is_private=note.policy is RagPolicy.PRIVATE,
        stream=speller.read(prose(text[:max_chars] if max_chars else text)),
        phrases=tuple(dict.fromkeys(phrase for phrase in phrases if phrase)),
        lines=note_lines(first, body if with_lines else ()),
    )


def _file_name(path: str) -> str:
    stem = posixpath.splitext(posixpath.basename(path))[0]
    return stem.replace("_", " ").replace("-", " ")
