"""Make the store agree with the vault: plan, prepare, embed, store, swap."""

from obsidian_rag.index.brake import REPLACE_WITH
from obsidian_rag.index.changed import changed_files
from obsidian_rag.index.checks import Finding, Verdict, checks_of
from obsidian_rag.index.early import hand_over
from obsidian_rag.index.embedding import Embedding, embedder_choice
from obsidian_rag.index.fingerprint import fingerprint, has_fitting_vectors, other_width
from obsidian_rag.index.health import HealthAnswer, HealthFacts, Share, assess
from obsidian_rag.index.meaning import MeaningPass, add_meaning, meaning_state, settle_meaning
from obsidian_rag.index.meaning_state import MEANING_PHASE, MeaningState, meaning_fields
from obsidian_rag.index.note_files import ListedNote
from obsidian_rag.index.order import RunOrder, settings_for_runs
from obsidian_rag.index.outcome import read_outcome, recent_outcomes, record_failure
from obsidian_rag.index.parts import CurrentParts
from obsidian_rag.index.probes import (
    JobFacts,
    known_facts,
    newest_note,
    probed_facts,
    see_vaults,
    vault_health,
)
from obsidian_rag.index.progress import IndexResult, Listener, Mode, Phase, Progress, Stop, paced
from obsidian_rag.index.report import (
    FileNotice,
    FileTotals,
    LinkProgress,
    VaultReport,
    file_notices,
    file_totals,
    running_progress,
    unindexed_files,
    vault_reports,
    waiting_progress,
)
from obsidian_rag.index.run import FINGERPRINT, INDEX_VERSION, MAINTAINED, catch_up
from obsidian_rag.index.sending import Sending
from obsidian_rag.index.transformer import Transformer
from obsidian_rag.index.upkeep import MOST_ROUNDS, QUIET_S, QUIET_SHARE, ROUNDS_APART_S, tidy_up
from obsidian_rag.index.vault_check import FIRST_UNFINISHED
from obsidian_rag.index.vault_place import VaultFacts, VaultPlace, is_worth_a_try, vault_facts
from obsidian_rag.index.vaults import Vaults
from obsidian_rag.index.whole_run import carry_out

__all__ = [
    "FINGERPRINT",
    "FIRST_UNFINISHED",
    "INDEX_VERSION",
    "MAINTAINED",
    "MEANING_PHASE",
    "MOST_ROUNDS",
    "QUIET_S",
    "QUIET_SHARE",
    "REPLACE_WITH",
    "ROUNDS_APART_S",
    "CurrentParts",
    "Embedding",
    "FileNotice",
    "FileTotals",
    "Finding",
    "HealthAnswer",
    "HealthFacts",
    "IndexResult",
    "JobFacts",
    "LinkProgress",
    "ListedNote",
    "Listener",
    "MeaningPass",
    "MeaningState",
    "Mode",
    "Phase",
    "Progress",
    "RunOrder",
    "Sending",
    "Share",
    "Stop",
    "Transformer",
    "VaultFacts",
    "VaultPlace",
    "VaultReport",
    "Vaults",
    "Verdict",
    "add_meaning",
    "assess",
    "carry_out",
    "catch_up",
    "changed_files",
    "checks_of",
    "embedder_choice",
    "file_notices",
    "file_totals",
    "fingerprint",
    "hand_over",
    "has_fitting_vectors",
    "is_worth_a_try",
    "known_facts",
    "meaning_fields",
    "meaning_state",
    "newest_note",
    "other_width",
    "paced",
    "probed_facts",
    "read_outcome",
    "recent_outcomes",
    "record_failure",
    "running_progress",
    "see_vaults",
    "settings_for_runs",
    "settle_meaning",
    "tidy_up",
    "unindexed_files",
    "vault_facts",
    "vault_health",
    "vault_reports",
    "waiting_progress",
]
