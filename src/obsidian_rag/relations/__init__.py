"""Related notes: signals, scores and suggestions, and writing ids and relations."""

from obsidian_rag.relations.heldout import LinksFound
from obsidian_rag.relations.ids import AddedId, AddOutcome, FoundId, IdReport, add_note_ids
from obsidian_rag.relations.memory_index import Card
from obsidian_rag.relations.note_map import NoteGraph
from obsidian_rag.relations.place import KeptIndex
from obsidian_rag.relations.query import (
    LinkedNotes,
    RelatedAnswer,
    RelatedNote,
    known_notes,
    linked_notes,
    links_found,
    memory_index,
    related_notes,
    relations_state,
    similar_titles,
)
from obsidian_rag.relations.rows_file import find_rows, format_of
from obsidian_rag.relations.upkeep import (
    check_relations,
    differing_answers,
    forget_vault,
    refresh_meanings,
)
from obsidian_rag.relations.vault_ids import (
    DanglingRelation,
    IdCheck,
    check_note_ids,
    has_id,
    note_for_id,
    notes_without_id,
)
from obsidian_rag.relations.vault_map import DrawnMap, VaultMap
from obsidian_rag.relations.vectors import refresh_vectors
from obsidian_rag.relations.write import add_relation, preview_relation
from obsidian_rag.relations.writer import (
    ContentReader,
    RelatedChanges,
    RelatedText,
    RelationsWriter,
)

__all__ = [
    "AddOutcome",
    "AddedId",
    "Card",
    "ContentReader",
    "DanglingRelation",
    "DrawnMap",
    "FoundId",
    "IdCheck",
    "IdReport",
    "KeptIndex",
    "LinkedNotes",
    "LinksFound",
    "NoteGraph",
    "RelatedAnswer",
    "RelatedChanges",
    "RelatedNote",
    "RelatedText",
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
    "memory_index",
    "note_for_id",
    "notes_without_id",
    "preview_relation",
    "refresh_meanings",
    "refresh_vectors",
    "related_notes",
    "relations_state",
    "similar_titles",
]
