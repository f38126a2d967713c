"""A look at what an installation depends on: the facts that its health follows from.

`known_facts` is for every answer: a few rows of SQLite and what the last look found, no walk of
the vault, no model, no network. `probed_facts` is for every half minute: it also asks the embedder
and looks at the store's files. Neither raises: facts that cannot be had because the books are
broken are left to the store's own trouble.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from obsidian_rag.errors import (
    EmbeddingMismatch,
    IndexCorrupted,
    IndexerFailed,
    IndexIncomplete,
    IndexNotFound,
    IndexStale,
    NotFound,
    ObsidianRagError,
)
from obsidian_rag.index.changed import changed_files
from obsidian_rag.index.fingerprint import check, fingerprint
from obsidian_rag.index.freshness import no_index
from obsidian_rag.index.health import HealthAnswer, HealthFacts, Unfinished, assess_vault
from obsidian_rag.index.outcome import read_outcome
from obsidian_rag.index.place import IndexPlace
from obsidian_rag.index.run import FINGERPRINT, NEWEST_NOTE, REBUILDING
from obsidian_rag.index.sending import Sending
from obsidian_rag.index.vault_check import FIRST_UNFINISHED
from obsidian_rag.index.vault_place import VaultFacts, vault_facts
from obsidian_rag.store import REBUILD, IndexState, LinkFacts, Manifest, Queue
from obsidian_rag.vault import Vault

_STALE_AFTER_S = 3600.0
_LOOK_AGAIN_S = 300.0
_WALK_S = 0.3
# Failures of a run that other facts tell about, or that somebody else's run will end.
_TOLD_ELSEWHERE = {
    "BUSY",
    "NOT_FOUND",
    "VAULT_AWAY",
    "INDEX_INCOMPLETE",
    "OLLAMA_UNREACHABLE",
    "PROVIDER_FAILED",
    "EMBEDDING_MISMATCH",
    "INDEX_CORRUPTED",
}


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What a living engine knows of its index runs.

    `last_ended` is when the last one ended, and why if it failed.
    """

    is_running: bool = False
    last_ended: tuple[str, ObsidianRagError | None] | None = None


def known_facts(
    place: IndexPlace, seen: HealthFacts | None, jobs: JobFacts, *, is_followed: bool
) -> HealthFacts:
    """What can be known at once; `seen` is what a living engine has seen so far.

    `is_followed` says that somebody looks at the vaults again and again.
    """
    facts = seen or HealthFacts()
    if not place.config.database.exists():  # a question makes no file
        return replace(facts, store=no_index())
    try:
        books = place.database.facts()
        facts = replace(
            _with_progress(facts, place, books, is_running=jobs.is_running),
            store=_missing_index(place, books, facts.store),
            **see_vaults(place, facts if is_followed else None),
        )
        return facts if seen is not None else _with_files(facts, place, books)
    except ObsidianRagError as error:
        return replace(facts, store=error)


def probed_facts(place: IndexPlace, facts: HealthFacts, jobs: JobFacts) -> HealthFacts:
    """Probe everything about the index; `facts` are known from elsewhere."""
    facts = replace(facts, embedder=_embedder_trouble(place), indexer=_indexer_trouble(place, jobs))
    try:
        books = place.database.facts()
        return replace(
            _with_progress(facts, place, books, is_running=jobs.is_running),
            store=_store_trouble(place, books),
            settings=_settings_trouble(place, books),
            staleness=_staleness(place),
            **see_vaults(place),
        )
    except ObsidianRagError as error:
        return replace(facts, store=error)


def see_vaults(place: IndexPlace, known: HealthFacts | None = None) -> dict[str, Any]:
    """Where each vault is, as was seen last or by a look, and how far each is in any case."""
    primary, *linked = place.vaults
    seen = {one.link_id: one for one in known.linked} if known is not None else {}
    return {
        "vault": known.vault if known is not None else vault_facts(primary, place.database),
        "linked": tuple(
            _with_counts(
                place, seen.get(vault.link_id) or vault_facts(vault, place.database), vault
            )
            for vault in linked
        ),
    }


def vault_health(place: IndexPlace, vault: Vault, *, is_running: bool) -> HealthAnswer:
    """How one linked vault is by itself."""
    facts = _with_counts(place, vault_facts(vault, place.database), vault)
    return assess_vault(facts, is_running=is_running)


def _with_counts(place: IndexPlace, facts: VaultFacts, vault: Vault) -> VaultFacts:
    is_unfinished = LinkFacts(place.database, vault.link_id).get(FIRST_UNFINISHED) is not None
    return replace(
        facts,
        is_paused=vault.is_paused,
        is_unfinished=is_unfinished,
        indexed=IndexState(place.database).total_of(vault.link_id)[0] if is_unfinished else 0,
    )


def newest_note(place: IndexPlace) -> str | None:
    """When the newest note of all vaults was modified, as the last runs saw it."""
    facts = LinkFacts.of_all(place.database).values()
    known = [int(one[NEWEST_NOTE]) for one in facts if NEWEST_NOTE in one]
    if not known:  # an index of an earlier version
        return Manifest(place.database).newest()
    at = time.gmtime(max(known) // 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", at) if max(known) else None


def _missing_index(
    place: IndexPlace, books: Mapping[str, str], before: ObsidianRagError | None
) -> ObsidianRagError | None:
    """No index, or the damage that the last look found."""
    is_local = place.chunks.folder is not None
    if FINGERPRINT not in books or (is_local and not place.chunks.exists()):
        return no_index()
    return None if isinstance(before, IndexNotFound) else before


def _with_progress(
    facts: HealthFacts, place: IndexPlace, books: Mapping[str, str], *, is_running: bool
) -> HealthFacts:
    """What index runs have left to do; the counts only where something is left."""
    queue = Queue(place.database)
    unfinished = Unfinished.NOTHING
    primary = place.vaults.primary.link_id
    if LinkFacts(place.database, primary).get(FIRST_UNFINISHED) is not None:
        unfinished = Unfinished.FIRST
    elif REBUILDING in books:
        unfinished = Unfinished.REBUILD
    is_waiting = queue.is_waiting()
    is_counted = is_waiting or unfinished is not Unfinished.NOTHING
    is_rebuild = unfinished is Unfinished.REBUILD
    return replace(
        facts,
        unfinished=unfinished,
        is_waiting=is_waiting,
        is_running=is_running,
        indexed=IndexState(place.database).totals()[0] if is_counted else 0,
        owed=queue.unsearchable() if is_waiting else 0,
        rebuilt=IndexState(place.database, REBUILD).totals()[0] if is_rebuild else 0,
    )


def _with_files(facts: HealthFacts, place: IndexPlace, books: Mapping[str, str]) -> HealthFacts:
    """What a process that does not stay finds on file; a living engine has looked."""
    return replace(
        facts,
        indexer=_indexer_trouble(place, JobFacts()),
        settings=_settings_trouble(place, books),
        staleness=_staleness(place),
    )


def _store_trouble(place: IndexPlace, books: Mapping[str, str]) -> ObsidianRagError | None:
    if (missing := _missing_index(place, books, None)) is not None:
        return missing
    if (damage := place.chunks.damage()) is not None:
        return IndexCorrupted(f"The index is damaged: {damage}.", "Run `obsidian-rag reindex`.")
    return None


def _embedder_trouble(place: IndexPlace) -> ObsidianRagError | None:
    try:
        place.embedder.probe()
        return Sending(place).trouble
    except ObsidianRagError as error:
        return error


def _settings_trouble(place: IndexPlace, books: Mapping[str, str]) -> ObsidianRagError | None:
    """Whether the index was made with the settings of now; an embedder that is down cannot say."""
    try:
        check(books.get(FINGERPRINT), fingerprint(place.embedder, place.limits))
    except (EmbeddingMismatch, IndexIncomplete) as error:
        return error
    except ObsidianRagError:
        return None
    return None


def _indexer_trouble(place: IndexPlace, jobs: JobFacts) -> ObsidianRagError | None:
    told = _last_failure(place, jobs)
    if told is None or told[0] in _TOLD_ELSEWHERE:
        return None
    return IndexerFailed(
        f"The last index run failed: {told[1]}",
        "Look at logs/worker.log in the data folder, then run `obsidian-rag sync`.",
    )


def _last_failure(place: IndexPlace, jobs: JobFacts) -> tuple[str, str] | None:
    """Code and message of the last run, if it failed: our own job's, or what is on file."""
    last = read_outcome(place.config) or {}
    # On a full disk a failure does not get into the file.
    if jobs.last_ended is not None and jobs.last_ended[0] >= str(last.get("finished_at") or ""):
        failure = jobs.last_ended[1]
        return (failure.code, failure.message) if failure else None
    error = last.get("error")
    if last.get("status") != "failed" or not isinstance(error, dict):
        return None
    return str(error.get("code")), str(error.get("message"))


def _staleness(place: IndexPlace) -> IndexStale | None:
    """The index is old and the vault has moved on; looked up now and then, not each time."""
    last = str((read_outcome(place.config) or {}).get("last_sync") or "")
    try:
        age = time.time() - datetime.fromisoformat(last).astimezone(UTC).timestamp()
    except ValueError:
        return None
    if age <= _STALE_AFTER_S:
        return None
    now = time.monotonic()
    if place.looked_for_changes is None or now - place.looked_for_changes[0] > _LOOK_AGAIN_S:
        place.looked_for_changes = now, _has_changed(place)
    if not place.looked_for_changes[1]:
        return None
    return IndexStale(
        f"The vault has changed since the last sync, {age / 3600:.0f} h ago.",
        "Run `obsidian-rag sync`.",
    )


def _has_changed(place: IndexPlace) -> bool:
    try:
        return changed_files(place.vaults, place.database, _WALK_S)[0] > 0
    except NotFound:
        return False
