"""Probes what an installation depends on: the facts that health is computed from.

`known_facts` runs for every answer: a few rows of SQLite and the last probe's results, no walk of
the vault, no model, no network. `probed_facts` runs every half minute: it also probes the embedder
and checks the store's files. Neither raises: if the database is damaged, its error becomes the
`store` fact.
"""

import contextlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from obsidian_rag.embed import SERVED
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
from obsidian_rag.index.fingerprint import check, fingerprint_of
from obsidian_rag.index.health import HealthAnswer, HealthFacts, Unfinished, assess_vault
from obsidian_rag.index.meaning import MEANING_ADDED, lost_vectors, meaning_state
from obsidian_rag.index.outcome import read_outcome
from obsidian_rag.index.place import IndexPlace
from obsidian_rag.index.plan import UNSETTLED, compare
from obsidian_rag.index.run import (
    FINGERPRINT,
    INDEX_VERSION,
    MAINTAINED,
    NEWEST_NOTE,
    PROMOTING,
    REBUILDING,
)
from obsidian_rag.index.sending import Sending
from obsidian_rag.index.vault_check import FIRST_UNFINISHED
from obsidian_rag.index.vault_place import VaultFacts, vault_facts
from obsidian_rag.store import (
    REBUILD,
    Database,
    EmbeddingStatus,
    IndexState,
    LinkFacts,
    Manifest,
    Queue,
)
from obsidian_rag.vault import Vault


def changed_files(vaults: Iterable[Vault], database: Database, seconds: float) -> tuple[int, bool]:
    """How many files differ from the index, and whether the walk finished in time.

    Paused vaults are skipped.

    An unfinished walk does not count missing files. A file whose timestamp is merely too recent to
    be trusted does not count as changed.

    Raises:
        NotFound: the vault's folder is missing.
    """
    deadline = time.monotonic() + seconds
    changed, is_complete = 0, True
    for vault in vaults:
        if not vault.is_paused:
            differing, is_whole = _count_changed(vault, database, deadline)
            changed, is_complete = changed + differing, is_complete and is_whole
    return changed, is_complete


def _count_changed(vault: Vault, database: Database, deadline: float) -> tuple[int, bool]:
    known = Manifest(database).known(vault.link_id)
    found = vault.scan(stop=lambda: time.monotonic() > deadline)
    difference = compare(found.files, known, found.unreadable_folders)
    updated = sum(
        1
        for entry in difference.updated
        if known[entry.rel_path].mtime_ns != UNSETTLED
        or known[entry.rel_path].size_bytes != entry.size_bytes
    )
    vanished = len(difference.vanished) if found.is_complete else 0
    return len(difference.created) + updated + vanished, found.is_complete


def index_version(place: IndexPlace) -> str:
    """The version of the index; it changes whenever the index does."""
    return place.database.get(INDEX_VERSION) or "0"


def take_up_changes(place: IndexPlace) -> None:
    """Pick up what other processes have written since the last search.

    Raises:
        IndexNotFound: there is no index, or it was removed.
    """
    place.follow_database()
    if not place.chunks.exists() or place.database.get(FINGERPRINT) is None:
        raise no_index()
    # Compaction changes no rows, but it changes word scores.
    version = f"{index_version(place)} {place.database.get(MAINTAINED)}"
    if place.seen_version != version:
        place.chunks.close()
        place.seen_version = version


def reopen(place: IndexPlace) -> None:
    """Reopen the index before a run: another process may have written it since."""
    # Writing through an old handle extends the table it opened: if another process has
    # recreated the table meanwhile, that would refer to deleted files.
    place.chunks.close()
    place.follow_database()


def warm_up(place: IndexPlace) -> None:
    """Load what the first run would load; that run reports any error."""
    reopen(place)
    with contextlib.suppress(ObsidianRagError):
        if place.chunks.folder is not None:
            place.chunks.count()
    with contextlib.suppress(ObsidianRagError):
        if place.embedder.provider not in SERVED:
            place.embedder.embed_query("ready")


def no_index() -> IndexNotFound:
    """The error for a missing index."""
    return IndexNotFound("There is no index yet.", "Run `obsidian-rag index`.")


_STALE_AFTER_S = 3600.0
_RECHECK_INTERVAL_S = 300.0
_MAX_WALK_S = 0.3
# Failures that other facts report, or that another process's run will resolve.
_REPORTED_ELSEWHERE = {
    "BUSY",
    "NOT_FOUND",
    "VAULT_AWAY",
    "INDEX_INCOMPLETE",
    "OLLAMA_UNREACHABLE",
    "PROVIDER_FAILED",
    "EMBEDDING_MISMATCH",
    "INDEX_CORRUPTED",
    "STORE_FOREIGN",
}


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What a running engine knows of its index runs.

    `last_ended` is when the last one ended, and why if it failed.
    """

    is_running: bool = False
    last_ended: tuple[str, ObsidianRagError | None] | None = None


def known_facts(
    place: IndexPlace, seen: HealthFacts | None, jobs: JobFacts, *, is_followed: bool
) -> HealthFacts:
    """The facts that are cheap to get; `seen` are those a running engine has collected.

    `is_followed` means that a daemon checks the vaults periodically.
    """
    facts = seen or HealthFacts()
    if not place.config.database.exists():  # reading must not create a file
        return replace(facts, store=no_index())
    try:
        books = place.database.facts()
        facts = replace(
            _with_progress(facts, place, books, is_running=jobs.is_running),
            store=_missing_index(place, books, facts.store),
            meaning=_meaning_trouble(place, books),
            **see_vaults(place, facts if is_followed else None),
        )
        return facts if seen is not None else _with_files(facts, place, books)
    except ObsidianRagError as error:
        return replace(facts, store=error)


def probed_facts(place: IndexPlace, facts: HealthFacts, jobs: JobFacts) -> HealthFacts:
    """Probe everything about the index; `facts` come from elsewhere."""
    facts = replace(facts, embedder=_embedder_trouble(place), indexer=_indexer_trouble(place, jobs))
    try:
        books = place.database.facts()
        return replace(
            _with_progress(facts, place, books, is_running=jobs.is_running),
            store=_store_trouble(place, books, is_running=jobs.is_running),
            settings=_settings_trouble(place, books),
            meaning=_meaning_trouble(place, books),
            staleness=_staleness(place),
            **see_vaults(place),
        )
    except ObsidianRagError as error:
        return replace(facts, store=error)


def see_vaults(place: IndexPlace, known: HealthFacts | None = None) -> dict[str, Any]:
    """Where each vault is (last known, or checked now), and its current progress."""
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
    """The health of one linked vault."""
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
    """Modification time of the newest note of all vaults, as of the last runs."""
    facts = LinkFacts.of_all(place.database).values()
    known = [int(one[NEWEST_NOTE]) for one in facts if NEWEST_NOTE in one]
    newest = max(known, default=0)
    at = time.gmtime(newest // 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", at) if newest else None


def _missing_index(
    place: IndexPlace, books: Mapping[str, str], before: ObsidianRagError | None
) -> ObsidianRagError | None:
    """A missing index, or the damage found by the last probe."""
    is_local = place.chunks.folder is not None
    if FINGERPRINT not in books or (is_local and not place.chunks.exists()):
        return no_index()
    return None if isinstance(before, IndexNotFound) else before


def _with_progress(
    facts: HealthFacts, place: IndexPlace, books: Mapping[str, str], *, is_running: bool
) -> HealthFacts:
    """Add what index runs have left to do; counts only if something is left."""
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
    """Add facts from files, for short-lived processes; a running engine has probed them."""
    return replace(
        facts,
        indexer=_indexer_trouble(place, JobFacts()),
        settings=_settings_trouble(place, books),
        staleness=_staleness(place),
    )


def _store_trouble(
    place: IndexPlace, books: Mapping[str, str], *, is_running: bool
) -> ObsidianRagError | None:
    try:
        place.chunks.check_owner()
    except ObsidianRagError as error:
        return error
    if (missing := _missing_index(place, books, None)) is not None:
        return missing
    if (damage := place.chunks.damage()) is not None:
        return IndexCorrupted(f"The index is damaged: {damage}.", "Run `obsidian-rag reindex`.")
    if not is_running and (difference := compare_rows(place)) is not None:
        return IndexCorrupted(difference, "Run `obsidian-rag reindex`.")
    return None


def _meaning_trouble(place: IndexPlace, books: Mapping[str, str]) -> IndexIncomplete | None:
    """An error if meaning vectors were lost; those never added are only counted in `status`."""
    said = books.get(MEANING_ADDED)
    if said is None or place.config.settings.meaning.is_paused:
        return None
    if not (lost := lost_vectors(place, said)) or (state := meaning_state(place)) is None:
        return None
    why = f" {state.trouble}" if state.trouble else ""
    return IndexIncomplete(
        f"{max(0, state.total - lost):,} of {state.total:,} passages can be found by meaning: the"
        f" meaning vectors of {lost:,} are damaged or missing.{why}",
        "Run `obsidian-rag model get` or `model add` again, then `obsidian-rag sync`."
        if state.trouble
        else "Run `obsidian-rag sync`: it adds them again.",
    )


def compare_rows(place: IndexPlace) -> str | None:
    """A message if the table's rows differ from what state.db says was written.

    Raises:
        IndexCorrupted: the table cannot be read.
    """
    difference = None
    for _ in range(2):  # a run may have written between the two counts
        version = index_version(place)
        if Queue(place.database).is_waiting() or place.database.get(PROMOTING) is not None:
            return None
        difference = _row_difference(place)
        if difference is None:
            return None
    return difference if index_version(place) == version else None


def _row_difference(place: IndexPlace) -> str | None:
    state = IndexState(place.database)
    written = state.chunks_by_link()
    names = {vault.link_id: vault.name for vault in place.vaults if vault.link_id}
    stored = place.chunks.count_by_link({*written, *names})
    if others := stored.pop(None, 0):
        return f"The index holds {others:,} chunks of vaults that state.db does not know."
    for link_id in sorted({*written, *stored}, key=str):
        there, expected = stored.get(link_id, 0), written.get(str(link_id), 0)
        # A note that is unreadable for now keeps its rows.
        is_failed = state.counts(str(link_id))[EmbeddingStatus.FAILED] > 0
        if there < expected or (there > expected and not is_failed):
            name = names.get(str(link_id)) or link_id
            return f"The index holds {there:,} chunks of '{name}', but {expected:,} were written."
    return None


def _embedder_trouble(place: IndexPlace) -> ObsidianRagError | None:
    try:
        place.embedder.probe()
        return Sending(place).trouble
    except ObsidianRagError as error:
        return error


def _settings_trouble(place: IndexPlace, books: Mapping[str, str]) -> ObsidianRagError | None:
    """A mismatch of index and settings; None if the embedder is down, so unknown."""
    try:
        check(books.get(FINGERPRINT), fingerprint_of(place))
    except (EmbeddingMismatch, IndexIncomplete) as error:
        return error
    except ObsidianRagError:
        return None
    return None


def _indexer_trouble(place: IndexPlace, jobs: JobFacts) -> ObsidianRagError | None:
    failure = _last_failure(place, jobs)
    if failure is None or failure[0] in _REPORTED_ELSEWHERE:
        return None
    return IndexerFailed(
        f"The last index run failed: {failure[1]}",
        "Look at logs/worker.log in the data folder, then run `obsidian-rag sync`.",
    )


def _last_failure(place: IndexPlace, jobs: JobFacts) -> tuple[str, str] | None:
    """Code and message of the last run if it failed: from our own job, or from the file."""
    last = read_outcome(place.config) or {}
    # On a full disk a failure cannot be written to the file.
    if jobs.last_ended is not None and jobs.last_ended[0] >= str(last.get("finished_at") or ""):
        failure = jobs.last_ended[1]
        return (failure.code, failure.message) if failure else None
    error = last.get("error")
    if last.get("status") != "failed" or not isinstance(error, dict):
        return None
    return str(error.get("code")), str(error.get("message"))


def _staleness(place: IndexPlace) -> IndexStale | None:
    """An error if the index is old and the vault has changed; rechecked at intervals."""
    last = str((read_outcome(place.config) or {}).get("last_sync") or "")
    try:
        age = time.time() - datetime.fromisoformat(last).astimezone(UTC).timestamp()
    except ValueError:
        return None
    if age <= _STALE_AFTER_S:
        return None
    now = time.monotonic()
    if place.looked_for_changes is None or now - place.looked_for_changes[0] > _RECHECK_INTERVAL_S:
        place.looked_for_changes = now, _has_changed(place)
    if not place.looked_for_changes[1]:
        return None
    return IndexStale(
        f"The vault has changed since the last sync, {age / 3600:.0f} h ago.",
        "Run `obsidian-rag sync`.",
    )


def _has_changed(place: IndexPlace) -> bool:
    try:
        return changed_files(place.vaults, place.database, _MAX_WALK_S)[0] > 0
    except NotFound:
        return False
