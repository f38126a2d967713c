"""Keeps the store in sync with the vault: plan, prepare, embed, store, swap."""

from obsidian_rag.index.checks import Finding, checks_of, found_by, health_finding
from obsidian_rag.index.embedding import Embedding, embedder_choice
from obsidian_rag.index.fingerprint import fingerprint_of, fitting, has_fitting_vectors
from obsidian_rag.index.health import (
    HealthAnswer,
    HealthChange,
    HealthFacts,
    Share,
    assess,
    change_of,
)
from obsidian_rag.index.linking import (
    LinkRun,
    LinkStatus,
    RemovedCounts,
    link_vault,
    set_link_mode,
    set_link_paused,
    status_of_link,
    unlink_vault,
)
from obsidian_rag.index.meaning import (
    MeaningPass,
    add_meaning,
    meaning_after_run,
    meaning_state,
    settle_meaning,
)
from obsidian_rag.index.meaning_state import MEANING_PHASE, MeaningState, meaning_fields
from obsidian_rag.index.note_files import ListedNote
from obsidian_rag.index.order import Precedence, RunOrder, precedence_of, settings_for_runs
from obsidian_rag.index.outcome import (
    read_outcome,
    recent_outcomes,
    record_failure,
    record_unexpected,
)
from obsidian_rag.index.parts import CurrentParts
from obsidian_rag.index.probes import (
    JobFacts,
    changed_files,
    index_version,
    known_facts,
    newest_note,
    probed_facts,
    reopen,
    see_vaults,
    take_up_changes,
    warm_up,
)
from obsidian_rag.index.progress import IndexResult, Listener, Mode, Phase, Progress, Stop, paced
from obsidian_rag.index.relate import MOST_NOW, differing_relations, relate_now
from obsidian_rag.index.report import (
    FileNotice,
    VaultReport,
    file_notices,
    ollama_status,
    unindexed_files,
    vault_reports,
)
from obsidian_rag.index.run import FINGERPRINT, relate_anew
from obsidian_rag.index.sending import Sending
from obsidian_rag.index.transformer import Transformer
from obsidian_rag.index.upkeep import Upkeep, tidy_up
from obsidian_rag.index.vault_place import (
    IndexedVault,
    VaultFacts,
    VaultPlace,
    allow_replacement,
    is_worth_a_try,
    vault_to_replace,
)
from obsidian_rag.index.vaults import Vaults
from obsidian_rag.index.whole_run import carry_out

__all__ = [
    "FINGERPRINT",
    "MEANING_PHASE",
    "MOST_NOW",
    "CurrentParts",
    "Embedding",
    "FileNotice",
    "Finding",
    "HealthAnswer",
    "HealthChange",
    "HealthFacts",
    "IndexResult",
    "IndexedVault",
    "JobFacts",
    "LinkRun",
    "LinkStatus",
    "ListedNote",
    "Listener",
    "MeaningPass",
    "MeaningState",
    "Mode",
    "Phase",
    "Precedence",
    "Progress",
    "RemovedCounts",
    "RunOrder",
    "Sending",
    "Share",
    "Stop",
    "Transformer",
    "Upkeep",
    "VaultFacts",
    "VaultPlace",
    "VaultReport",
    "Vaults",
    "add_meaning",
    "allow_replacement",
    "assess",
    "carry_out",
    "change_of",
    "changed_files",
    "checks_of",
    "differing_relations",
    "embedder_choice",
    "file_notices",
    "fingerprint_of",
    "fitting",
    "found_by",
    "has_fitting_vectors",
    "health_finding",
    "index_version",
    "is_worth_a_try",
    "known_facts",
    "link_vault",
    "meaning_after_run",
    "meaning_fields",
    "meaning_state",
    "newest_note",
    "ollama_status",
    "paced",
    "precedence_of",
    "probed_facts",
    "read_outcome",
    "recent_outcomes",
    "record_failure",
    "record_unexpected",
    "relate_anew",
    "relate_now",
    "reopen",
    "see_vaults",
    "set_link_mode",
    "set_link_paused",
    "settings_for_runs",
    "settle_meaning",
    "status_of_link",
    "take_up_changes",
    "tidy_up",
    "unindexed_files",
    "unlink_vault",
    "vault_reports",
    "vault_to_replace",
    "warm_up",
]
