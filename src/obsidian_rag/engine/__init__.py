"""Owns all that lives: wiring, index runs, health and diagnosis."""

from obsidian_rag.engine.daemon import Daemon
from obsidian_rag.engine.doctor import examine
from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.events import Bus, Event
from obsidian_rag.engine.facts import Facts, FoundFact
from obsidian_rag.engine.foreground import index_in_foreground
from obsidian_rag.engine.ids import (
    DanglingRelation,
    IdCheck,
    add_note_ids,
    check_note_ids,
    has_id,
    note_for_id,
    notes_without_id,
)
from obsidian_rag.engine.indexing import result_fields, run_index
from obsidian_rag.engine.job import Job
from obsidian_rag.engine.listing import indexed_notes, list_notes
from obsidian_rag.engine.livesync_care import (
    LivesyncCheck,
    Restored,
    WaitingConflict,
    check_livesync,
    finish_resolving,
    resolve_conflict,
    restore_trashed,
    trashed_files,
    unlock_database,
    waiting_conflicts,
)
from obsidian_rag.engine.livesync_loop import run_livesync
from obsidian_rag.engine.livesync_restore import RestoredMany, restore_many, take_held_deletions
from obsidian_rag.engine.livesync_setup import (
    SetUp,
    SetupWish,
    livesync_setup,
    needs_consent,
    needs_password,
)
from obsidian_rag.engine.livesync_site import PASSPHRASE_VARIABLE, PASSWORD_VARIABLE, Wish
from obsidian_rag.engine.livesync_state import LivesyncState
from obsidian_rag.engine.livesync_status import LivesyncStatus, livesync_status
from obsidian_rag.engine.livesyncing import SyncResult, sync_once
from obsidian_rag.engine.models import Model, Models
from obsidian_rag.engine.note_files import NoteFiles
from obsidian_rag.engine.presence import announce, claim
from obsidian_rag.engine.probes import health_of, index_stamp
from obsidian_rag.engine.query import ask, known_folder, note_passages, vault_roots
from obsidian_rag.engine.relating import (
    RelatedAnswer,
    RelatedNote,
    links_found,
    related_notes,
    relation_troubles,
    relations_state,
    similar_titles,
)
from obsidian_rag.engine.relation_index import update_relations
from obsidian_rag.engine.resident import ResidentEngine
from obsidian_rag.engine.status import report_status
from obsidian_rag.engine.vault_choice import accept_replacement, offered_vaults, replaced_vault
from obsidian_rag.livesync import Direction, LeftOut, NotEncrypted, Resolved, Tweaks
from obsidian_rag.relations import AddedId, AddOutcome, IdReport

__all__ = [
    "PASSPHRASE_VARIABLE",
    "PASSWORD_VARIABLE",
    "AddOutcome",
    "AddedId",
    "Bus",
    "Daemon",
    "DanglingRelation",
    "Direction",
    "Engine",
    "Event",
    "Facts",
    "FoundFact",
    "IdCheck",
    "IdReport",
    "Job",
    "LeftOut",
    "LivesyncCheck",
    "LivesyncState",
    "LivesyncStatus",
    "Model",
    "Models",
    "NotEncrypted",
    "NoteFiles",
    "RelatedAnswer",
    "RelatedNote",
    "ResidentEngine",
    "Resolved",
    "Restored",
    "RestoredMany",
    "SetUp",
    "SetupWish",
    "SyncResult",
    "Tweaks",
    "WaitingConflict",
    "Wish",
    "accept_replacement",
    "add_note_ids",
    "announce",
    "ask",
    "check_livesync",
    "check_note_ids",
    "claim",
    "examine",
    "finish_resolving",
    "has_id",
    "health_of",
    "index_in_foreground",
    "index_stamp",
    "indexed_notes",
    "known_folder",
    "links_found",
    "list_notes",
    "livesync_setup",
    "livesync_status",
    "needs_consent",
    "needs_password",
    "note_for_id",
    "note_passages",
    "notes_without_id",
    "offered_vaults",
    "related_notes",
    "relation_troubles",
    "relations_state",
    "replaced_vault",
    "report_status",
    "resolve_conflict",
    "restore_many",
    "restore_trashed",
    "result_fields",
    "run_index",
    "run_livesync",
    "similar_titles",
    "sync_once",
    "take_held_deletions",
    "trashed_files",
    "unlock_database",
    "update_relations",
    "vault_roots",
    "waiting_conflicts",
]
