"""Whether all vaults are completely searchable with the current settings: facts in, verdict out.

The brake, which stops a run from removing the notes of a vault that is away, is here as well.
"""

from obsidian_rag.health import checks
from obsidian_rag.health.assess import (
    HealthAnswer,
    HealthChange,
    Share,
    assess,
    assess_vault,
    change_of,
)
from obsidian_rag.health.brake import Brake, made_of
from obsidian_rag.health.checks import Finding
from obsidian_rag.health.facts import (
    HealthFacts,
    indexer_trouble,
    missing_index,
    store_trouble,
    with_progress,
)
from obsidian_rag.health.report import (
    FileNotice,
    FileTotals,
    VaultReport,
    file_notices,
    file_totals,
    vault_reports,
)
from obsidian_rag.health.vault_presence import (
    IndexedVault,
    VaultFacts,
    VaultPlace,
    allow_replacement,
    is_worth_a_try,
    linked_facts,
    see_vaults,
    vault_to_replace,
)

__all__ = [
    "Brake",
    "FileNotice",
    "FileTotals",
    "Finding",
    "HealthAnswer",
    "HealthChange",
    "HealthFacts",
    "IndexedVault",
    "Share",
    "VaultFacts",
    "VaultPlace",
    "VaultReport",
    "allow_replacement",
    "assess",
    "assess_vault",
    "change_of",
    "checks",
    "file_notices",
    "file_totals",
    "indexer_trouble",
    "is_worth_a_try",
    "linked_facts",
    "made_of",
    "missing_index",
    "see_vaults",
    "store_trouble",
    "vault_reports",
    "vault_to_replace",
    "with_progress",
]
