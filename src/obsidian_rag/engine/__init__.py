"""Owns all that lives: wiring, index runs, health and diagnosis."""

from obsidian_rag.engine.daemon import Daemon
from obsidian_rag.engine.doctor import examine
from obsidian_rag.engine.early import update_relations
from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.events import Bus, Event
from obsidian_rag.engine.facts import Facts, FoundFact
from obsidian_rag.engine.foreground import index_in_foreground
from obsidian_rag.engine.indexing import result_fields, run_index
from obsidian_rag.engine.job import Job
from obsidian_rag.engine.listing import indexed_notes, list_notes
from obsidian_rag.engine.models import Model, Models
from obsidian_rag.engine.note_files import NoteFiles
from obsidian_rag.engine.presence import announce, claim
from obsidian_rag.engine.probes import health_of, index_stamp
from obsidian_rag.engine.query import ask, known_folder, note_passages, vault_roots
from obsidian_rag.engine.resident import ResidentEngine
from obsidian_rag.engine.status import report_status
from obsidian_rag.engine.vault_choice import accept_replacement, offered_vaults, replaced_vault
from obsidian_rag.engine.watcher import watch_files

__all__ = [
    "Bus",
    "Daemon",
    "Engine",
    "Event",
    "Facts",
    "FoundFact",
    "Job",
    "Model",
    "Models",
    "NoteFiles",
    "ResidentEngine",
    "accept_replacement",
    "announce",
    "ask",
    "claim",
    "examine",
    "health_of",
    "index_in_foreground",
    "index_stamp",
    "indexed_notes",
    "known_folder",
    "list_notes",
    "note_passages",
    "offered_vaults",
    "replaced_vault",
    "report_status",
    "result_fields",
    "run_index",
    "update_relations",
    "vault_roots",
    "watch_files",
]
