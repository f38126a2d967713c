"""Extracts what the indexes need from a parsed note, as plain values. No I/O."""

import posixpath
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.config import RelationsSettings
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
from obsidian_rag.relations.words import LINE_END, Vocabulary, prose

_MAX_SUMMARY_CHARS = 500
_MAX_PHRASE_TERMS = 12


@dataclass(frozen=True, slots=True)
class Content:
    """The indexed content of one note.

    `stream` and `phrases` (its names) are terms as the vocabulary numbers them; `stream` begins
    with the first of `lines`. Both include template lines.
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
    """The terms new to a vocabulary since the last such list, and a word for each."""

    vocabulary: str
    terms: list[str]
    words: list[str]


class Draft(NamedTuple):
    """A note to write, and the terms that were new in it.

    A vector of this content comes with its hash; without one, the old vector is kept.
    """

    content: Content
    content_hash: str
    fresh: Terms
    vector: bytes | None = None
    vector_hash: str | None = None


def read_content(
    note: Note, vocabulary: Vocabulary, max_chars: int | None, *, with_lines: bool = True
) -> Content:
    """The content of a note; without `with_lines`, only the first line's number is kept."""
    first, body = body_lines(note)
    text = LINE_END.join(body)
    found = read_id(note.frontmatter)
    names = dict.fromkeys((note.title, _file_name(note.path), *note.aliases))
    phrases = (tuple(vocabulary.name(name)[:_MAX_PHRASE_TERMS]) for name in names)
    return Content(
        path=note.path,
        title=note.title,
        uid=found.value if found and not found.trouble else None,
        kind=read_kind(note.frontmatter),
        summary=read_summary(note.frontmatter)[:_MAX_SUMMARY_CHARS],
        tags=tuple(dict.fromkeys(tag.lstrip("#").lower() for tag in note.tags)),
        links=tuple(dict.fromkeys(link.target for link in note.links if link.target)),
        related=read_related(note.frontmatter),
        is_daily=parse_date(note.path, {}) is not None,
        is_private=note.policy is RagPolicy.PRIVATE,
        stream=vocabulary.read(prose(text[:max_chars] if max_chars else text)),
        phrases=tuple(dict.fromkeys(phrase for phrase in phrases if phrase)),
        lines=note_lines(first, body if with_lines else ()),
    )


def _file_name(path: str) -> str:
    stem = posixpath.splitext(posixpath.basename(path))[0]
    return stem.replace("_", " ").replace("-", " ")


def is_admitted(path: str, settings: RelationsSettings) -> bool:
    """Whether the note at this path is related to others."""
    folders = settings.excluded_folders
    return not path.startswith(tuple(f"{folder.strip('/ ')}/" for folder in folders))
