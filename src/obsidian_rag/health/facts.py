"""The facts that health is computed from, and how to read those that the store has.

None of these functions walks a vault, loads a model or uses the network; `store_trouble` checks
the files of the chunk table. What only the room `index` knows (settings, embedder, meaning
vectors, age) is added by the engine.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from obsidian_rag.errors import IndexCorrupted, IndexerFailed, IndexNotFound, ObsidianRagError
from obsidian_rag.health.vault_presence import VaultFacts
from obsidian_rag.store import (
    REBUILD,
    ChunkStore,
    Database,
    EmbeddingStatus,
    IndexFact,
    IndexState,
    LinkFact,
    LinkFacts,
    Queue,
    no_index,
)
from obsidian_rag.vault import Vault

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


class Unfinished(StrEnum):
    """What an interrupted index run left unfinished."""

    NOTHING = "nothing"
    FIRST = "first"
    REBUILD = "rebuild"


@dataclass(frozen=True, slots=True)
class HealthFacts:
    """Facts about an installation; the defaults mean that all is well.

    `config` is an unusable config file, `settings` a mismatch of index and settings, `restart`
    settings that need a daemon restart. `owed` counts queued notes that were never searchable,
    `is_waiting` is whether any note is queued; a current run (`is_running`) processes them.
    `rebuilt` counts the notes of an unfinished rebuild. `vault` is the primary one; the counts
    cover all vaults.
    """

    store: ObsidianRagError | None = None
    indexer: ObsidianRagError | None = None
    config: ObsidianRagError | None = None
    settings: ObsidianRagError | None = None
    embedder: ObsidianRagError | None = None
    meaning: ObsidianRagError | None = None
    staleness: ObsidianRagError | None = None
    restart: ObsidianRagError | None = None
    vault: VaultFacts = field(default_factory=VaultFacts)
    linked: tuple[VaultFacts, ...] = ()
    unfinished: Unfinished = Unfinished.NOTHING
    indexed: int = 0
    owed: int = 0
    is_waiting: bool = False
    is_running: bool = False
    rebuilt: int = 0


def with_progress(
    facts: HealthFacts,
    database: Database,
    meta: Mapping[str, str],
    primary: Vault,
    *,
    is_running: bool,
) -> HealthFacts:
    """Add what index runs have left to do; counts only if something is left.

    `meta` are the facts in the database.
    """
    queue = Queue(database)
    unfinished = Unfinished.NOTHING
    if LinkFacts(database, primary.link_id).get(LinkFact.FIRST_UNFINISHED) is not None:
        unfinished = Unfinished.FIRST
    elif IndexFact.REBUILDING in meta:
        unfinished = Unfinished.REBUILD
    is_waiting = queue.is_waiting()
    is_counted = is_waiting or unfinished is not Unfinished.NOTHING
    is_rebuild = unfinished is Unfinished.REBUILD
    return replace(
        facts,
        unfinished=unfinished,
        is_waiting=is_waiting,
        is_running=is_running,
        indexed=IndexState(database).totals()[0] if is_counted else 0,
        owed=queue.unsearchable() if is_waiting else 0,
        rebuilt=IndexState(database, REBUILD).totals()[0] if is_rebuild else 0,
    )


def missing_index(
    chunks: ChunkStore, meta: Mapping[str, str], before: ObsidianRagError | None
) -> ObsidianRagError | None:
    """A missing index, or the damage that the last probe found (`before`)."""
    is_local = chunks.folder is not None
    if IndexFact.FINGERPRINT not in meta or (is_local and not chunks.exists()):
        return no_index()
    return None if isinstance(before, IndexNotFound) else before


def store_trouble(
    database: Database,
    chunks: ChunkStore,
    vaults: Iterable[Vault],
    meta: Mapping[str, str],
    *,
    is_running: bool,
) -> ObsidianRagError | None:
    """What is wrong with the store, as far as its files and row counts show it."""
    try:
        chunks.check_owner()
    except ObsidianRagError as error:
        return error
    if (missing := missing_index(chunks, meta, None)) is not None:
        return missing
    if (damage := chunks.damage()) is not None:
        return IndexCorrupted(f"The index is damaged: {damage}.", "Run `obsidian-rag reindex`.")
    if not is_running and (difference := compare_rows(database, chunks, vaults)) is not None:
        return IndexCorrupted(difference, "Run `obsidian-rag reindex`.")
    return None


def compare_rows(database: Database, chunks: ChunkStore, vaults: Iterable[Vault]) -> str | None:
    """A message if the table's rows differ from what state.db says was written.

    Raises:
        IndexCorrupted: the table cannot be read.
    """
    names = {vault.link_id: vault.name for vault in vaults if vault.link_id}
    difference = None
    for _ in range(2):  # a run may have written between the two counts
        version = database.get(IndexFact.VERSION)
        if Queue(database).is_waiting() or database.get(IndexFact.PROMOTING) is not None:
            return None
        difference = _row_difference(IndexState(database), chunks, names)
        if difference is None:
            return None
    return difference if database.get(IndexFact.VERSION) == version else None


def _row_difference(state: IndexState, chunks: ChunkStore, names: Mapping[str, str]) -> str | None:
    written = state.chunks_by_link()
    stored = chunks.count_by_link({*written, *names})
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


def indexer_trouble(
    outcome: Mapping[str, object] | None, last_ended: tuple[str, ObsidianRagError | None] | None
) -> IndexerFailed | None:
    """An error if the last index run failed, and no other fact says why.

    `outcome` is on file, `last_ended` is from this engine: on a full disk it has no file.
    """
    failure = _last_failure(outcome or {}, last_ended)
    if failure is None or failure[0] in _REPORTED_ELSEWHERE:
        return None
    return IndexerFailed(
        f"The last index run failed: {failure[1]}",
        "Look at logs/worker.log in the data folder, then run `obsidian-rag sync`.",
    )


def _last_failure(
    outcome: Mapping[str, object], last_ended: tuple[str, ObsidianRagError | None] | None
) -> tuple[str, str] | None:
    """Code and message of the last run, if it failed."""
    if last_ended is not None and last_ended[0] >= str(outcome.get("finished_at") or ""):
        failure = last_ended[1]
        return (failure.code, failure.message) if failure else None
    error = outcome.get("error")
    if outcome.get("status") != "failed" or not isinstance(error, dict):
        return None
    return str(error.get("code")), str(error.get("message"))
