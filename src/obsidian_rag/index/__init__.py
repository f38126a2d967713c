"""Makes the store agree with the vaults: plan, read, prepare, embed, store."""

from obsidian_rag.index.embedding import Transformer, embedder_choice
from obsidian_rag.index.fingerprint import check_fingerprint, check_width, has_fitting_vectors
from obsidian_rag.index.meaning import (
    MEANING_PHASE,
    MeaningPass,
    MeaningState,
    lost_vectors,
    meaning_after_run,
    meaning_fields,
    meaning_state,
)
from obsidian_rag.index.parts import CurrentParts, Parts
from obsidian_rag.index.plan import changed_files
from obsidian_rag.index.progress import (
    Failure,
    IndexResult,
    Listener,
    Mode,
    Phase,
    Progress,
    Stop,
    paced,
)
from obsidian_rag.index.rebuild import Rebuild, is_rebuild_due
from obsidian_rag.index.relate import (
    MAX_NOTES_AT_ONCE,
    differing_relations,
    relate_anew,
    relate_now,
)
from obsidian_rag.index.run import IndexRun, RunParts, finish_promotion
from obsidian_rag.index.sending import Sending
from obsidian_rag.index.upkeep import Upkeep

__all__ = [
    "MAX_NOTES_AT_ONCE",
    "MEANING_PHASE",
    "CurrentParts",
    "Failure",
    "IndexResult",
    "IndexRun",
    "Listener",
    "MeaningPass",
    "MeaningState",
    "Mode",
    "Parts",
    "Phase",
    "Progress",
    "Rebuild",
    "RunParts",
    "Sending",
    "Stop",
    "Transformer",
    "Upkeep",
    "changed_files",
    "check_fingerprint",
    "check_width",
    "differing_relations",
    "embedder_choice",
    "finish_promotion",
    "has_fitting_vectors",
    "is_rebuild_due",
    "lost_vectors",
    "meaning_after_run",
    "meaning_fields",
    "meaning_state",
    "paced",
    "relate_anew",
    "relate_now",
]
