"""Owns all that lives: wiring, index runs, health and diagnosis."""

from obsidian_rag.embed import ModelInfo, add_model, get_model, list_models, remove_model
from obsidian_rag.engine.doctor import Finding, examine
from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.indexing import index_version, result_fields, run_index
from obsidian_rag.engine.status import FileNotice, StatusReport, report_status
from obsidian_rag.index import IndexResult, Mode, Phase, Progress
from obsidian_rag.vault import obsidian_vaults

__all__ = [
    "Engine",
    "FileNotice",
    "Finding",
    "IndexResult",
    "Mode",
    "ModelInfo",
    "Phase",
    "Progress",
    "StatusReport",
    "add_model",
    "examine",
    "get_model",
    "index_version",
    "list_models",
    "obsidian_vaults",
    "remove_model",
    "report_status",
    "result_fields",
    "run_index",
]
