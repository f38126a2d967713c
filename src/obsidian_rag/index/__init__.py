"""Make the store agree with the vault: plan, prepare, embed, store, swap."""

from obsidian_rag.index.fingerprint import check, fingerprint
from obsidian_rag.index.pipeline import Guarded
from obsidian_rag.index.plan import UNSETTLED, compare
from obsidian_rag.index.prepare import chunk_hash
from obsidian_rag.index.progress import (
    Failure,
    IndexResult,
    Listener,
    Mode,
    Phase,
    Progress,
    Stop,
    Tally,
    paced,
)
from obsidian_rag.index.run import FINGERPRINT, INDEX_VERSION, IndexRun, Workplace, finish_promotion

__all__ = [
    "FINGERPRINT",
    "INDEX_VERSION",
    "UNSETTLED",
    "Failure",
    "Guarded",
    "IndexResult",
    "IndexRun",
    "Listener",
    "Mode",
    "Phase",
    "Progress",
    "Stop",
    "Tally",
    "Workplace",
    "check",
    "chunk_hash",
    "compare",
    "fingerprint",
    "finish_promotion",
    "paced",
]
