"""Which notes belong together: signals, score, suggest, and ids and relations that are written."""

from obsidian_rag.relations.compare import differing_answers
from obsidian_rag.relations.consumer import RelationsConsumer
from obsidian_rag.relations.explain import explain
from obsidian_rag.relations.ground import Ground, format_of
from obsidian_rag.relations.heldout import LinksFound
from obsidian_rag.relations.ids import AddedId, AddOutcome, FoundId, IdReport
from obsidian_rag.relations.kinds import Kind
from obsidian_rag.relations.linked import LinkedNotes, known_notes, linked_notes
from obsidian_rag.relations.memory_index import Card, MemoryIndex
from obsidian_rag.relations.note_map import (
    MapNote,
    NoteGraph,
    NoteKey,
    Tie,
    graph_around,
    vault_graph,
)
from obsidian_rag.relations.place import KeptIndex, ground_of
from obsidian_rag.relations.query import (
    RelatedAnswer,
    RelatedNote,
    links_found,
    memory_index,
    related_notes,
    relation_troubles,
    relations_state,
    similar_titles,
)
from obsidian_rag.relations.rows import Rows
from obsidian_rag.relations.rows_file import find_rows, open_rows
from obsidian_rag.relations.score import related, weights_of
from obsidian_rag.relations.signals import kind_of
from obsidian_rag.relations.source import note_source
from obsidian_rag.relations.upkeep import check_relations, forget_vault, refresh_meanings
from obsidian_rag.relations.vault_ids import (
    DanglingRelation,
    IdCheck,
    add_note_ids,
    check_note_ids,
    has_id,
    note_for_id,
    notes_without_id,
)
from obsidian_rag.relations.vectors import refresh_vectors
from obsidian_rag.relations.write import add_relation, preview_relation

__all__ = [
    "AddOutcome",
    "AddedId",
    "Card",
    "DanglingRelation",
    "FoundId",
    "Ground",
    "IdCheck",
    "IdReport",
    "KeptIndex",
    "Kind",
    "LinkedNotes",
    "LinksFound",
    "MapNote",
    "MemoryIndex",
    "NoteGraph",
    "NoteKey",
    "RelatedAnswer",
    "RelatedNote",
    "RelationsConsumer",
    "Rows",
    "Tie",
    "add_note_ids",
    "add_relation",
    "check_note_ids",
    "check_relations",
    "differing_answers",
    "explain",
    "find_rows",
    "forget_vault",
    "format_of",
    "graph_around",
    "ground_of",
    "has_id",
    "kind_of",
    "known_notes",
    "linked_notes",
    "links_found",
    "memory_index",
    "note_for_id",
    "note_source",
    "notes_without_id",
    "open_rows",
    "preview_relation",
    "refresh_meanings",
    "refresh_vectors",
    "related",
    "related_notes",
    "relation_troubles",
    "relations_state",
    "similar_titles",
    "vault_graph",
    "weights_of",
]
