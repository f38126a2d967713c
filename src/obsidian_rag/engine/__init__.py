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
    PARTS,
    EvalOptions,
    Evaluated,
    Outcome,
    Report,
    Weakness,
    evaluate,
    report_of,
    worst,
)
from obsidian_rag.engine.events import Bus, Event, EventKind
from obsidian_rag.engine.golden import Half, Question, half_of, load_golden
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
from obsidian_rag.engine.listing import ListedNote, list_notes
from obsidian_rag.engine.meaning import add_meaning, meaning_state, settle_meaning
from obsidian_rag.engine.meaning_state import MEANING_PHASE, MeaningState
from obsidian_rag.engine.own_questions import own_questions
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
from obsidian_rag.engine.watcher import watch_files
from obsidian_rag.index import IndexResult, Mode, Phase, Progress, paced
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
    "PARTS",
    "AddOutcome",
    "AddedId",
    "Asked",
    "Bus",
    "Daemon",
    "DanglingRelation",
    "Engine",
    "Entry",
    "EntryState",
    "EvalOptions",
    "Evaluated",
    "Event",
    "EventKind",
    "Fact",
    "FileNotice",
    "Finding",
    "FoundRow",
    "Half",
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
    "Links",
    "LinksFound",
    "ListedNote",
    "Live",
    "Machine",
    "Manifest",
    "MeaningState",
    "Memory",
    "Mode",
    "ModelInfo",
    "NoteFile",
    "Outcome",
    "Phase",
    "Platform",
    "Presence",
    "Progress",
    "Question",
    "RelatedAnswer",
    "RelatedNote",
    "Report",
    "StatusReport",
    "Subject",
    "Weakness",
    "accept_replacement",
    "add_meaning",
    "add_model",
    "add_note_ids",
    "announce",
    "ask",
    "assess",
    "check_note_ids",
    "check_relative",
    "claim",
    "daemon_config",
    "entry_for",
    "evaluate",
    "examine",
    "folder_exists",
    "get_model",
    "half_of",
    "has_id",
    "health_of",
    "index_version",
    "install_entry",
    "installed_model",
    "known_models",
    "links_found",
    "list_models",
    "list_notes",
    "load_golden",
    "look",
    "meaning_state",
    "model_use",
    "newest_note",
    "note_for_id",
    "note_passages",
    "notes_without_id",
    "now",
    "observe_entry",
    "obsidian_vaults",
    "own_questions",
    "paced",
    "platform_of",
    "read_note",
    "refresh_meanings",
    "related_notes",
    "relation_troubles",
    "relations_state",
    "relative_to_root",
    "remove_entry",
    "remove_model",
    "replaced_vault",
    "report_of",
    "report_status",
    "resolve",
    "result_fields",
    "run_index",
    "settle_meaning",
    "similar_titles",
    "unseen_settings",
    "update_relations",
    "vault_roots",
    "watch_files",
    "worse",
    "worst",
]
