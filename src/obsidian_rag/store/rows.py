"""Rows of the chunk table, as written and as read.

A hit shows a dozen small columns, and LanceDB reads and decodes each one separately: for the
hundred rows that are ranked that took longer than finding them. So a row also stores them as one
JSON text, its card, and only the text and the card are fetched.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import xxhash

from obsidian_rag.notes import Chunk, shown_chars, shown_text

_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class NoteRow:
    """What all chunks of one note have in common."""

    link_id: str
    source_file: str
    title: str
    aliases: tuple[str, ...]
    date: str | None
    is_private: bool
    modified_at: str
    indexed_at: str

    @property
    def source_directory(self) -> str:
        """The top-level folder; empty for a note in the vault's root."""
        return self.source_file.split("/", 1)[0] if "/" in self.source_file else ""


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """One row to be written."""

    note: NoteRow
    chunk: Chunk
    chunk_id: str
    chunk_index: int
    total_chunks: int
    content_hash: str

    @property
    def dates(self) -> tuple[str, ...]:
        """The chunk's own dates, or else the note's."""
        return self.chunk.dates or ((self.note.date,) if self.note.date else ())

    @property
    def names(self) -> str:
        """All names of the passage, one per line."""
        note, chunk = self.note, self.chunk
        return names(note.title, note.aliases, chunk.heading_path, chunk.text)


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A chunk as it is stored, without its vector; `words_only` is empty unless asked for.

    `names` has all names of the passage, one per line. `layout` says where code is in the text.
    """

    chunk_text: str
    words_only: str
    names: str
    title: str
    aliases: tuple[str, ...]
    heading_path: tuple[str, ...]
    tags: tuple[str, ...]
    section: str | None
    source_file: str
    link_id: str
    chunk_index: int
    date: str | None
    start_line: int
    end_line: int
    is_private: bool
    dates: Sequence[str] = ()
    layout: Sequence[int] = ()
    chunk_id: str = ""

    @property
    def shown_chars(self) -> int:
        """Maximum length of the shown text."""
        return shown_chars(self.chunk_text, self.layout)

    def shown(self) -> str:
        """The text as in the note, with its code if `words_only` was fetched."""
        return shown_text(self.chunk_text, self.words_only, self.layout)


def chunk_hash(text: str, words_only: str) -> str:
    """The identity of a chunk's text."""
    return xxhash.xxh3_128_hexdigest(f"{text}\0{words_only}".encode(errors="surrogatepass"))


def names(title: str, aliases: Sequence[str], heading_path: Sequence[str], text: str) -> str:
    """A passage's names: its note's title and aliases, and the headings above and in it."""
    headings = _HEADING.findall(text) if "#" in text else ()
    return "\n".join(dict.fromkeys((title, *aliases, *heading_path, *headings)))


def card(row: ChunkRow) -> str:
    """The JSON from which `found_row` rebuilds a row, together with its text."""
    note, chunk = row.note, row.chunk
    values = (
        note.title,
        note.aliases,
        chunk.heading_path,
        chunk.tags,
        chunk.section,
        note.source_file,
        note.link_id,
        row.chunk_index,
        note.date,
        chunk.start_line,
        chunk.end_line,
        note.is_private,
        bool(chunk.words_only),
        row.dates,
        chunk.layout,
    )
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def found_row(text: str, card: str, chunk_id: str, words_only: str = "") -> FoundRow:
    """A row from its text and card."""
    title, aliases, path, tags, *others, _, dates, layout = json.loads(card)
    called = names(title, aliases, path, text)
    lists: list[Any] = [tuple(aliases), tuple(path), tuple(tags)]
    said = [title, *lists, *others, dates, layout, chunk_id]
    return FoundRow(text, words_only, called, *said)
