"""Make the store agree with the vault: plan, prepare, embed, store, swap."""

from obsidian_rag.index.brake import (
    REPLACE_WITH,
    Away,
    Root,
    is_away,
    made_of,
)
from obsidian_rag.index.changed import changed_files
from obsidian_rag.index.checks import (
    Finding,
    Verdict,
    check_chunks,
    check_database,
    check_embedder,
    check_files,
    check_fingerprint,
    check_index,
    check_lookup,
    check_meaning,
    check_notes,
    counted,
)
from obsidian_rag.index.consumer import Delivery, NoteConsumer, ParsedNote
from obsidian_rag.index.early import hand_over
from obsidian_rag.index.embedding import Embedding, embedder_choice
from obsidian_rag.index.fingerprint import (
    check,
    fingerprint,
    has_same_vectors,
    is_outdated,
    other_width,
)
from obsidian_rag.index.limits import limits_for
from obsidian_rag.index.meaning import (
    MeaningPass,
    add_meaning,
    meaning_state,
    settle_meaning,
)
from obsidian_rag.index.meaning_state import MEANING_PHASE, MeaningState, meaning_fields
from obsidian_rag.index.outcome import (
    read_outcome,
    recent_outcomes,
    record_failure,
    record_outcome,
)
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
    paced,
)
from obsidian_rag.index.reader import Source
from obsidian_rag.index.rebuild import Rebuild, is_rebuild_due
from obsidian_rag.index.run import (
    FINGERPRINT,
    INDEX_VERSION,
    MAINTAINED,
    NEWEST_NOTE,
    REBUILDING,
    IndexRun,
    Workplace,
    catch_up,
    finish_promotion,
)
from obsidian_rag.index.transformer import Transformer
from obsidian_rag.index.upkeep import (
    MOST_ROUNDS,
    QUIET_S,
    QUIET_SHARE,
    ROUNDS_APART_S,
    tidy_up,
)
from obsidian_rag.index.vault_check import (
    FIRST_UNFINISHED,
    not_there,
    other_vault,
    too_few,
)
from obsidian_rag.index.vault_place import VaultFacts, VaultPlace, is_worth_a_try, vault_facts

__all__ = [
    "FINGERPRINT",
    "FIRST_UNFINISHED",
    "INDEX_VERSION",
    "MAINTAINED",
    "MEANING_PHASE",
    "MOST_ROUNDS",
    "NEWEST_NOTE",
    "QUIET_S",
    "QUIET_SHARE",
    "REBUILDING",
    "REPLACE_WITH",
    "ROUNDS_APART_S",
    "UNSETTLED",
    "Away",
    "Delivery",
    "Embedding",
    "Failure",
    "Finding",
    "Guarded",
    "IndexResult",
    "IndexRun",
    "Listener",
    "MeaningPass",
    "MeaningState",
    "Mode",
    "NoteConsumer",
    "ParsedNote",
    "Phase",
    "Progress",
    "Rebuild",
    "Root",
    "Source",
    "Stop",
    "Transformer",
    "VaultFacts",
    "VaultPlace",
    "Verdict",
    "Workplace",
    "add_meaning",
    "catch_up",
    "changed_files",
    "check",
    "check_chunks",
    "check_database",
    "check_embedder",
    "check_files",
    "check_fingerprint",
    "check_index",
    "check_lookup",
    "check_meaning",
    "check_notes",
    "chunk_hash",
    "compare",
    "counted",
    "embedder_choice",
    "fingerprint",
    "finish_promotion",
    "hand_over",
    "has_same_vectors",
    "is_away",
    "is_outdated",
    "is_rebuild_due",
    "is_worth_a_try",
    "limits_for",
    "made_of",
    "meaning_fields",
    "meaning_state",
    "not_there",
    "other_vault",
    "other_width",
    "paced",
    "read_outcome",
    "recent_outcomes",
    "record_failure",
    "record_outcome",
    "settle_meaning",
    "tidy_up",
    "too_few",
    "vault_facts",
]
