"""The health of an installation: facts in, one answer out. Pure.

    HEALTHY ⇄ DEGRADED ⇄ UNAVAILABLE, and HEALTHY ⇄ UNAVAILABLE

One question: are all configured vaults completely searchable with the current settings? Only
`assess` answers it, from facts alone, for every interface.
"""

from dataclasses import dataclass

from obsidian_rag.errors import IndexIncomplete, IndexNotFound, ObsidianRagError, Status, error_from
from obsidian_rag.health.brake import not_there, other_vault, too_few
from obsidian_rag.health.facts import HealthFacts, Unfinished
from obsidian_rag.health.vault_presence import VaultFacts, VaultPlace


@dataclass(frozen=True, slots=True)
class Share:
    """How many notes are searchable, of how many."""

    searchable: int
    notes: int

    def __str__(self) -> str:
        return f"{self.searchable:,} of {self.notes:,} notes are searchable"


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    """The state, what is wrong, and the searchable share unless it is everything."""

    state: Status
    error: ObsidianRagError | None = None
    share: Share | None = None


@dataclass(frozen=True, slots=True)
class HealthChange:
    """A change of state: why and when."""

    state: Status
    before: Status | None
    code: str | None
    reason: str
    at: str


def change_of(before: HealthChange | None, answer: HealthAnswer, at: str) -> HealthChange | None:
    """The change that this answer brings; None if nothing changed."""
    code = answer.error.code if answer.error else None
    if before is not None and (before.state, before.code) == (answer.state, code):
        return None
    reason = answer.error.message if answer.error else "Everything works."
    return HealthChange(answer.state, before.state if before else None, code, reason, at)


def assess(facts: HealthFacts) -> HealthAnswer:
    """Whether everything is searchable, and if not, the most serious reason."""
    share = _share(facts)
    if facts.store is not None:
        if isinstance(facts.store, IndexNotFound) and facts.is_running:
            return HealthAnswer("degraded", _being_made())
        return HealthAnswer("unavailable", facts.store, share)
    if facts.indexer is not None:
        return HealthAnswer("unavailable", facts.indexer, share)
    troubles = (
        _vault_trouble(facts.vault),
        *(_vault_trouble(vault) for vault in facts.linked if not vault.is_paused),
        facts.config,
        facts.settings,
        facts.embedder,
        _incompleteness(facts, share),
        facts.meaning,
        facts.staleness,
        facts.restart,
    )
    error = next((trouble for trouble in troubles if trouble is not None), None)
    return HealthAnswer("degraded" if error else "healthy", _with_share(error, share), share)


def _with_share(error: ObsidianRagError | None, share: Share | None) -> ObsidianRagError | None:
    """Append the searchable share to any other error."""
    if error is None or share is None or str(share) in error.message:
        return error
    return error_from(error.code, f"{error.message} {share}.", error.suggestion)


def _share(facts: HealthFacts) -> Share | None:
    """None if all of the vault is searchable, as far as known."""
    if facts.vault.place is VaultPlace.OTHER:
        return None
    is_owing = facts.is_waiting and not facts.is_running
    if facts.unfinished is Unfinished.FIRST or (is_owing and facts.owed):
        return Share(facts.indexed, facts.indexed + facts.owed)
    return None


def _vault_trouble(vault: VaultFacts) -> ObsidianRagError | None:
    if vault.place is VaultPlace.THERE:
        return None
    if vault.place is VaultPlace.OTHER:
        return other_vault(vault.made_of, vault.path, is_accepted=vault.is_replacing)
    if vault.counted:
        return too_few(vault.counted, vault.name)
    return not_there(vault.path, vault.name)


def assess_vault(vault: VaultFacts, *, is_running: bool) -> HealthAnswer:
    """The health of one linked vault."""
    trouble = _vault_trouble(vault)
    if trouble is None and vault.is_unfinished:
        trouble = _unfinished_link(vault, is_running=is_running)
    return HealthAnswer("degraded" if trouble else "healthy", trouble)


def _unfinished_link(vault: VaultFacts, *, is_running: bool) -> IndexIncomplete:
    so_far = f"{vault.indexed:,} notes of '{vault.name}' are searchable"
    if vault.is_paused:
        return IndexIncomplete(
            f"{so_far}: its import is paused.", f"Run `obsidian-rag link resume {vault.name}`."
        )
    if is_running:
        return IndexIncomplete(
            f"{so_far}: its first index is being made.",
            f"`obsidian-rag link status {vault.name}` shows how far it is.",
        )
    return IndexIncomplete(
        f"{so_far}: its first index is not finished.",
        f"Run `obsidian-rag link sync {vault.name}`: it goes on where it stopped.",
    )


def _incompleteness(facts: HealthFacts, share: Share | None) -> IndexIncomplete | None:
    if facts.unfinished is Unfinished.FIRST:
        how = "being made" if facts.is_running else "not finished"
        next_step = (
            "`obsidian-rag status` shows how far it is."
            if facts.is_running
            else "Run `obsidian-rag index`: it goes on where it stopped."
        )
        return IndexIncomplete(f"{share}: the first index is {how}.", next_step)
    unfinished = next((vault for vault in facts.linked if vault.is_unfinished), None)
    if unfinished is not None:
        return _unfinished_link(unfinished, is_running=facts.is_running)
    if facts.is_running:
        return None
    if facts.unfinished is Unfinished.REBUILD:
        return IndexIncomplete(
            f"A rebuild of the index is not finished ({facts.rebuilt:,} notes are done); answers"
            " come from the old index.",
            "Run `obsidian-rag reindex`: it goes on where it stopped.",
        )
    if facts.is_waiting:
        what = f"{share}: " if share else ""
        return IndexIncomplete(
            f"{what}an index run stopped before all changes were taken up.",
            "Run `obsidian-rag sync`: it goes on where it stopped.",
        )
    return None


def _being_made() -> IndexIncomplete:
    return IndexIncomplete(
        "0 notes are searchable yet: the first index is being made.",
        "`obsidian-rag status` shows how far it is.",
    )
