"""Owns all that lives: wiring, index runs, health and diagnosis."""

from obsidian_rag.embed import ModelInfo, add_model, get_model, list_models, remove_model
from obsidian_rag.engine.asking import Asked, ask, folder_exists, vault_roots
from obsidian_rag.engine.autostart import (
    EntryState,
    install_entry,
    observe_entry,
    remove_entry,
)
from obsidian_rag.engine.daemon import Daemon
from obsidian_rag.engine.doctor import Finding, examine
from obsidian_rag.engine.engine import Engine, Live, index_version
from obsidian_rag.engine.entry import (
    Entry,
    Machine,
    Platform,
    daemon_config,
    entry_for,
    platform_of,
    unseen_settings,
)
from obsidian_rag.engine.evaluation import (
    Evaluated,
    Question,
    Report,
    evaluate,
    load_golden,
    own_questions,
)
from obsidian_rag.engine.events import Bus, Event, EventKind
from obsidian_rag.engine.health import Health, HealthChange, Subject
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
from obsidian_rag.engine.listing import ListedNote, list_notes
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
from obsidian_rag.engine.presence import Presence, announce, claim
from obsidian_rag.engine.probes import look
from obsidian_rag.engine.relating import (
    RelatedAnswer,
    RelatedNote,
    links_found,
    related_notes,
    relation_troubles,
    relations_state,
    similar_titles,
    update_relations,
)
from obsidian_rag.engine.status import FileNotice, StatusReport, report_status
from obsidian_rag.index import IndexResult, Mode, Phase, Progress, paced
from obsidian_rag.livesync import Direction, Resolved, Tweaks
from obsidian_rag.relations import AddedId, AddOutcome, IdReport, LinksFound
from obsidian_rag.store import Fact, FoundRow, Links, Manifest, Memory
from obsidian_rag.vault import (
    NoteFile,
    check_relative,
    obsidian_vaults,
    read_note,
    relative_to_root,
    resolve,
)

__all__ = [
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
    "Entry",
    "EntryState",
    "Evaluated",
    "Event",
    "EventKind",
    "Fact",
    "FileNotice",
    "Finding",
    "FoundRow",
    "Health",
    "HealthChange",
    "IdCheck",
    "IdReport",
    "IndexResult",
    "Job",
    "JobStatus",
    "Jobs",
    "Links",
    "LinksFound",
    "ListedNote",
    "Live",
    "LivesyncCheck",
    "LivesyncState",
    "LivesyncStatus",
    "Machine",
    "Manifest",
    "Memory",
    "Mode",
    "ModelInfo",
    "NoteFile",
    "Phase",
    "Platform",
    "Presence",
    "Progress",
    "Question",
    "RelatedAnswer",
    "RelatedNote",
    "Report",
    "Resolved",
    "Restored",
    "SetUp",
    "SetupWish",
    "StatusReport",
    "Subject",
    "SyncResult",
    "Tweaks",
    "WaitingConflict",
    "Wish",
    "add_model",
    "add_note_ids",
    "announce",
    "ask",
    "check_livesync",
    "check_note_ids",
    "check_relative",
    "claim",
    "daemon_config",
    "entry_for",
    "evaluate",
    "examine",
    "finish_resolving",
    "folder_exists",
    "get_model",
    "has_id",
    "index_version",
    "install_entry",
    "links_found",
    "list_models",
    "list_notes",
    "livesync_setup",
    "livesync_status",
    "load_golden",
    "look",
    "needs_consent",
    "needs_password",
    "note_for_id",
    "notes_without_id",
    "observe_entry",
    "obsidian_vaults",
    "own_questions",
    "paced",
    "platform_of",
    "read_note",
    "related_notes",
    "relation_troubles",
    "relations_state",
    "relative_to_root",
    "remove_entry",
    "remove_model",
    "report_status",
    "resolve",
    "resolve_conflict",
    "restore_trashed",
    "result_fields",
    "run_index",
    "run_livesync",
    "similar_titles",
    "sync_once",
    "trashed_files",
    "unlock_database",
    "unseen_settings",
    "update_relations",
    "vault_roots",
    "waiting_conflicts",
]
