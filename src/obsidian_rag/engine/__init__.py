"""Owns all that lives: wiring, index runs, health and diagnosis."""

from obsidian_rag.embed import ModelInfo, add_model, get_model, list_models, remove_model
from obsidian_rag.engine.asking import Asked, ask, folder_exists, vault_roots
from obsidian_rag.engine.doctor import Finding, examine
from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.evaluation import (
    Evaluated,
    Question,
    Report,
    evaluate,
    load_golden,
    own_questions,
)
from obsidian_rag.engine.indexing import index_version, result_fields, run_index
from obsidian_rag.engine.status import FileNotice, StatusReport, report_status
from obsidian_rag.index import IndexResult, Mode, Phase, Progress
from obsidian_rag.store import Fact, Links, Manifest, Memory
from obsidian_rag.vault import (
    NoteFile,
    check_relative,
    obsidian_vaults,
    read_note,
    relative_to_root,
    resolve,
)

__all__ = [
    "Asked",
    "Engine",
    "Evaluated",
    "Fact",
    "FileNotice",
    "Finding",
    "IndexResult",
    "Links",
    "Manifest",
    "Memory",
    "Mode",
    "ModelInfo",
    "NoteFile",
    "Phase",
    "Progress",
    "Question",
    "Report",
    "StatusReport",
    "add_model",
    "ask",
    "check_relative",
    "evaluate",
    "examine",
    "folder_exists",
    "get_model",
    "index_version",
    "list_models",
    "load_golden",
    "obsidian_vaults",
    "own_questions",
    "read_note",
    "relative_to_root",
    "remove_model",
    "report_status",
    "resolve",
    "result_fields",
    "run_index",
    "vault_roots",
]
