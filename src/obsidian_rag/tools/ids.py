"""Ids of notes as the command line uses them: functions with types, and no envelope."""

from obsidian_rag.relations import (
    AddedId,
    AddOutcome,
    DanglingRelation,
    IdCheck,
    IdReport,
    add_note_ids,
    check_note_ids,
    has_id,
    note_for_id,
    notes_without_id,
    similar_titles,
)

__all__ = [
    "AddOutcome",
    "AddedId",
    "DanglingRelation",
    "IdCheck",
    "IdReport",
    "add_note_ids",
    "check_note_ids",
    "has_id",
    "note_for_id",
    "notes_without_id",
    "similar_titles",
]
