"""Which notes belong together: signals, score, suggest, and ids and relations that are written."""

from obsidian_rag.relations.compare import differing_relations
from obsidian_rag.relations.consumer import RelationsConsumer
from obsidian_rag.relations.early import EarlyRelations, update_relations
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
from obsidian_rag.relations.upkeep import check_relations, forget_vault, refresh_meanings
from obsidian_rag.relations.vault_ids import (
    DanglingRelation,
    IdCheck,
    check_note_ids,
    has_id,
    note_for_id,
    notes_without_id,
)
from obsidian_rag.relations.vault_map import DrawnMap, VaultMap
from obsidian_rag.relations.write import add_relation, preview_relation

__all__ = [
    "AddOutcome",
    "AddedId",
    "Card",
    "DanglingRelation",
    "DrawnMap",
    "EarlyRelations",
    "FoundId",
    "IdCheck",
    "IdReport",
    "KeptIndex",
    "LinkedNotes",
    "LinksFound",
    "NoteGraph",
    "RelatedAnswer",
    "RelatedNote",
    "RelationsConsumer",
    "VaultMap",
    "add_note_ids",
    "add_relation",
    "check_note_ids",
    "check_relations",
    "differing_relations",
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
    "related_notes",
    "relations_state",
    "similar_titles",
    "update_relations",
]
