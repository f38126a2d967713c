"""Related notes: signals, scores and suggestions, and writing ids and relations."""

from obsidian_rag.relations.heldout import LinksFound
from obsidian_rag.relations.ids import (
    FoundId,
    IdCheck,
    check_note_ids,
    has_id,
    note_for_id,
    notes_without_id,
)
from obsidian_rag.relations.map import VaultMap
from obsidian_rag.relations.memory_index import Card
from obsidian_rag.relations.note_edit import (
    AddedId,
    add_note_ids,
    add_relation,
    preview_relation,
)
from obsidian_rag.relations.query import (
    KeptIndex,
    LinkedNotes,
    RelatedAnswer,
    RelatedNote,
    RelationParts,
    known_notes,
    linked_notes,
    links_found,
    related_notes,
    relations_state,
    similar_titles,
)
from obsidian_rag.relations.rows import find_rows, format_of
from obsidian_rag.relations.upkeep import (
    check_relations,
    differing_answers,
    forget_vault,
    refresh_meanings,
)
from obsidian_rag.relations.vectors import refresh_vectors
from obsidian_rag.relations.writer import (
    ContentReader,
    RelatedChanges,
    RelatedText,
    RelationsWriter,
)

__all__ = [
    "AddedId",
    "Card",
    "ContentReader",
    "FoundId",
    "IdCheck",
    "KeptIndex",
    "LinkedNotes",
    "LinksFound",
    "RelatedAnswer",
    "RelatedChanges",
    "RelatedNote",
    "RelatedText",
    "RelationParts",
    "RelationsWriter",
    "VaultMap",
    "add_note_ids",
    "add_relation",
    "check_note_ids",
    "check_relations",
    "differing_answers",
    "find_rows",
    "forget_vault",
    "format_of",
    "has_id",
    "known_notes",
    "linked_notes",
    "links_found",
    "note_for_id",
    "notes_without_id",
    "preview_relation",
    "refresh_meanings",
    "refresh_vectors",
    "related_notes",
    "relations_state",
    "similar_titles",
]
