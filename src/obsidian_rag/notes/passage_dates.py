"""Which dates a passage belongs to: those of its note, or closer ones in the headings above it.

A passage under "## 2023-03-15" belongs to that day, whatever the note around it is dated. A line
that is only `#tag` is a section, but never a date.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from obsidian_rag.notes.dates import is_exact, named_dates, note_dates, said_dates
from obsidian_rag.notes.note import Chunk, Note

_INNER = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


def with_dates(note: Note, chunks: Sequence[Chunk]) -> list[Chunk]:
    """The chunks of a note with the dates they belong to, and those they speak of."""
    own = note_dates(note.path, note.title, note.frontmatter)
    return [_dated(chunk, own) for chunk in chunks]


def _dated(chunk: Chunk, own: tuple[str, ...]) -> Chunk:
    headings = [text for text in chunk.heading_path if not text.startswith("#")]
    dates = _closest(headings) or (*own, *(date for text in headings for date in named_dates(text)))
    inside = _INNER.findall(chunk.text) if "#" in chunk.text else ()
    inner = tuple(date for text in inside for date in named_dates(text))
    said = said_dates(f"{chunk.text}\n{chunk.words_only}" if chunk.words_only else chunk.text)
    if not dates and not inner and not said:
        return chunk
    found = tuple(dict.fromkeys((*dates, *inner)))
    return replace(chunk, dates=found, said=tuple(date for date in said if date not in found))


def _closest(headings: Iterable[str]) -> tuple[str, ...]:
    """The dates of the innermost heading that says more than a year."""
    for text in reversed(list(headings)):
        if exact := tuple(filter(is_exact, named_dates(text))):
            return exact
    return ()
