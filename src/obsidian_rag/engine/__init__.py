"""Owns all that lives: wiring, index runs, health and diagnosis."""

from obsidian_rag.embed import (
    ModelInfo,
    add_model,
    get_model,
    installed_model,
    known_models,
    list_models,
    model_use,
    remove_model,
)
from obsidian_rag.engine.asking import (
    Asked,
    ask,
    folder_exists,
    note_passages,
    vault_roots,
)
from obsidian_rag.engine.daemon import Daemon
from obsidian_rag.engine.doctor import Finding, examine
from obsidian_rag.engine.engine import Engine, Live, index_version
from obsidian_rag.engine.events import Bus, Event, EventKind
from obsidian_rag.engine.health import (
    Health,
    HealthAnswer,
    HealthChange,
    HealthFacts,
    Subject,
    assess,
    worse,
)
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
from obsidian_rag.engine.jobs import Job, Jobs, JobStatus
from obsidian_rag.engine.listing import ListedNote, indexed_notes, list_notes
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
from obsidian_rag.engine.meaning import add_meaning, meaning_state, settle_meaning
from obsidian_rag.engine.meaning_state import MEANING_PHASE, MeaningState
from obsidian_rag.engine.note_files import note_text
from obsidian_rag.engine.presence import Presence, announce, claim
from obsidian_rag.engine.probes import health_of, look, newest_note
from obsidian_rag.engine.relating import (
    RelatedAnswer,
    RelatedNote,
    links_found,
    related_notes,
    relation_troubles,
    relations_state,
    similar_titles,
)
from obsidian_rag.engine.relation_index import refresh_meanings, update_relations
from obsidian_rag.engine.status import FileNotice, StatusReport, report_status
from obsidian_rag.engine.vault_choice import IndexedVault, accept_replacement, replaced_vault
from obsidian_rag.index import IndexResult, Mode, Phase, Progress, paced
from obsidian_rag.livesync import Direction, LeftOut, NotEncrypted, Resolved, Tweaks
from obsidian_rag.relations import AddedId, AddOutcome, IdReport, LinksFound
from obsidian_rag.store import Fact, FoundRow, Links, Manifest, Memory, now
from obsidian_rag.vault import (
    NoteFile,
    check_relative,
    obsidian_vaults,
    read_note,
    relative_to_root,
    resolve,
)

__all__ = [
    "MEANING_PHASE",
    "PASSPHRASE_VARIABLE",
    "PASSWORD_VARIABLE",
    "AddOutcome",
    "AddedId",
    "Asked",
    "Bus",
    "Daemon",
    "DanglingRelation",
    "Direction",
    "Engine",
    "Event",
    "EventKind",
    "Fact",
    "FileNotice",
    "Finding",
    "FoundRow",
    "Health",
    "HealthAnswer",
    "HealthChange",
    "HealthFacts",
    "IdCheck",
    "IdReport",
    "IndexResult",
    "IndexedVault",
    "Job",
    "JobStatus",
    "Jobs",
    "LeftOut",
    "Links",
    "LinksFound",
    "ListedNote",
    "Live",
    "LivesyncCheck",
    "LivesyncState",
    "LivesyncStatus",
    "Manifest",
    "MeaningState",
    "Memory",
    "Mode",
    "ModelInfo",
    "NotEncrypted",
    "NoteFile",
    "Phase",
    "Presence",
    "Progress",
    "RelatedAnswer",
    "RelatedNote",
    "Resolved",
    "Restored",
    "RestoredMany",
    "SetUp",
    "SetupWish",
    "StatusReport",
    "Subject",
    "SyncResult",
    "Tweaks",
    "WaitingConflict",
    "Wish",
    "accept_replacement",
    "add_meaning",
    "add_model",
    "add_note_ids",
    "announce",
    "ask",
    "assess",
    "check_livesync",
    "check_note_ids",
    "check_relative",
    "claim",
    "examine",
    "finish_resolving",
    "folder_exists",
    "get_model",
    "has_id",
    "health_of",
    "index_version",
    "indexed_notes",
    "installed_model",
    "known_models",
    "links_found",
    "list_models",
    "list_notes",
    "livesync_setup",
    "livesync_status",
    "look",
    "meaning_state",
    "model_use",
    "needs_consent",
    "needs_password",
    "newest_note",
    "note_for_id",
    "note_passages",
    "note_text",
    "notes_without_id",
    "now",
    "obsidian_vaults",
    "paced",
    "read_note",
    "refresh_meanings",
    "related_notes",
    "relation_troubles",
    "relations_state",
    "relative_to_root",
    "remove_model",
    "replaced_vault",
    "report_status",
    "resolve",
    "resolve_conflict",
    "restore_many",
    "restore_trashed",
    "result_fields",
    "run_index",
    "run_livesync",
    "settle_meaning",
    "similar_titles",
    "sync_once",
    "take_held_deletions",
    "trashed_files",
    "unlock_database",
    "update_relations",
    "vault_roots",
    "waiting_conflicts",
    "worse",
]
