"""Parses text into notes and chunks, cleans it, and finds sensitive passages. No I/O."""

from obsidian_rag.notes.chunk import (
    ChunkLimits,
    chunk_note,
    embedding_head,
    embedding_text,
    text_parts,
    without_comments,
)
from obsidian_rag.notes.dates import (
    MENTIONED,
    MONTH_NAMES,
    date_keys,
    first_day,
    keys_within,
    last_day,
    parse_date,
    with_dates,
)
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
from obsidian_rag.notes.kinds import body_lines, is_markdown, kind_of, parse_note
from obsidian_rag.notes.lines import LINE_END
from obsidian_rag.notes.links import (
    NoteNames,
    asked_name,
    exact_paths,
    file_title,
    names_of,
    notes_called,
    notes_ending,
    without_extension,
)
from obsidian_rag.notes.note import Chunk, Heading, Link, LinkKind, Note, RagPolicy
from obsidian_rag.notes.policy import EVERYTHING, Scope, read_policy
from obsidian_rag.notes.properties import property_values
from obsidian_rag.notes.sensitive import chunk_categories, sensitive_categories
from obsidian_rag.notes.shown import CUT_CHARS, cut_shown, shown_chars, shown_text
from obsidian_rag.notes.split import QUARTERS, quarter_tokens
from obsidian_rag.notes.tags import tag_keys
from obsidian_rag.notes.words import LETTERS, MARKS, UNSPACED, WORD, WORD_PART, folded

__all__ = [
    "CUT_CHARS",
    "EVERYTHING",
    "LETTERS",
    "LINE_END",
    "MARKS",
    "MENTIONED",
    "MONTH_NAMES",
    "QUARTERS",
    "UNSPACED",
    "WORD",
    "WORD_PART",
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
    "quarter_tokens",
    "read_id",
    "read_kind",
    "read_policy",
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
    "without_comments",
    "without_extension",
]
