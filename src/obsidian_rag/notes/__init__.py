"""Text in, values out: notes, chunks, sanitising and sensitivity. No I/O."""

from obsidian_rag.notes.chunk import ChunkLimits, chunk_note, embedding_head, embedding_text
from obsidian_rag.notes.date_keys import SAID, date_keys, keys_within
from obsidian_rag.notes.dates import first_day, last_day, parse_date
from obsidian_rag.notes.edit_frontmatter import EditRefused, with_id, with_related
from obsidian_rag.notes.frontmatter import split_frontmatter
from obsidian_rag.notes.identity import (
    NoteId,
    Relation,
    make_id,
    read_id,
    read_kind,
    read_related,
    read_summary,
)
from obsidian_rag.notes.kinds import KINDS, body_lines, is_markdown, kind_of, parse_note
from obsidian_rag.notes.month_names import MONTH_NAMES
from obsidian_rag.notes.note import Chunk, Heading, Link, LinkKind, Note, RagPolicy
from obsidian_rag.notes.parts import text_parts
from obsidian_rag.notes.passage_dates import with_dates
from obsidian_rag.notes.properties import property_values
from obsidian_rag.notes.resolve import (
    NoteNames,
    asked_name,
    exact_paths,
    file_title,
    names_of,
    notes_called,
    notes_ending,
    without_extension,
)
from obsidian_rag.notes.scope import EVERYTHING, Scope, is_inside
from obsidian_rag.notes.sensitive import chunk_categories, sensitive_categories
from obsidian_rag.notes.shown import CUT_CHARS, cut_shown, shown_chars, shown_text
from obsidian_rag.notes.tags import tag_keys
from obsidian_rag.notes.words import MARKS, UNSPACED, WORD, folded

__all__ = [
    "CUT_CHARS",
    "EVERYTHING",
    "KINDS",
    "MARKS",
    "MONTH_NAMES",
    "SAID",
    "UNSPACED",
    "WORD",
    "Chunk",
    "ChunkLimits",
    "EditRefused",
    "Heading",
    "Link",
    "LinkKind",
    "Note",
    "NoteId",
    "NoteNames",
    "RagPolicy",
    "Relation",
    "Scope",
    "asked_name",
    "body_lines",
    "chunk_categories",
    "chunk_note",
    "cut_shown",
    "date_keys",
    "embedding_head",
    "embedding_text",
    "exact_paths",
    "file_title",
    "first_day",
    "folded",
    "is_inside",
    "is_markdown",
    "keys_within",
    "kind_of",
    "last_day",
    "make_id",
    "names_of",
    "notes_called",
    "notes_ending",
    "parse_date",
    "parse_note",
    "property_values",
    "read_id",
    "read_kind",
    "read_related",
    "read_summary",
    "sensitive_categories",
    "shown_chars",
    "shown_text",
    "split_frontmatter",
    "tag_keys",
    "text_parts",
    "with_dates",
    "with_id",
    "with_related",
    "without_extension",
]
