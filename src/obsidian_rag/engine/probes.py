"""A look at what an engine depends on: the facts that its health follows from.

`known_facts` is for every answer: a few rows of SQLite and what the last look found, no walk of
the vault, no model, no network. `look` is for every half minute: it also asks the embedder and
looks at the store's files. Neither raises: facts that cannot be had because the books are broken
are left to the store's own trouble.
"""

import contextlib
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.health import (
    HealthAnswer,
    HealthFacts,
    Unfinished,
    assess,
    assess_vault,
)
from obsidian_rag.engine.indexing import read_result
from obsidian_rag.engine.sending import sending_trouble
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
from obsidian_rag.index import (
    FINGERPRINT,
    FIRST_UNFINISHED,
    NEWEST_NOTE,
    REBUILDING,
    VaultFacts,
    changed_files,
    check,
    fingerprint,
    vault_facts,
)
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


def health_of(engine: Engine) -> HealthAnswer:
    """How the engine is, for an answer that is given now."""
    return assess(known_facts(engine))


def known_facts(engine: Engine) -> HealthFacts:
    """What can be known at once, and bears on answers: none of them needs LiveSync."""
    facts = replace(engine.live.health.facts, livesync=None) if engine.live else HealthFacts()
    if not engine.config.database.exists():  # a question makes no file
        return replace(facts, store=_no_index())
    try:
        engine.follow_database()
        books = engine.database.facts()
        facts = replace(
            _with_progress(facts, engine, books),
            store=_missing_index(engine, books, facts.store),
            **_vaults(facts if _is_followed(engine) else None, engine),
        )
        return facts if engine.live is not None else _with_files(facts, engine, books)
    except ObsidianRagError as error:
        return replace(facts, store=error)


def look(engine: Engine) -> HealthFacts:
    """Probe everything, and tell a living engine's health."""
    engine.follow_database()
    facts = HealthFacts(
        config=engine.settings_file.trouble,
        restart=engine.settings_file.restart_trouble,
        embedder=_embedder_trouble(engine),
        indexer=_indexer_trouble(engine),
        livesync=_livesync_trouble(engine),
    )
    try:
        books = engine.database.facts()
        facts = replace(
            _with_progress(facts, engine, books),
            store=_store_trouble(engine, books),
            settings=_settings_trouble(engine, books),
            staleness=_staleness(engine),
            **_vaults(None, engine),
        )
    except ObsidianRagError as error:
        facts = replace(facts, store=error)
    if engine.live is not None:
        engine.live.health.take(facts)
    return facts


def _vaults(known: HealthFacts | None, engine: Engine) -> dict[str, Any]:
    """Where each vault is, as was seen last or by a look, and how far each is in any case."""
    primary, *linked = engine.vaults
    seen = {one.link_id: one for one in known.linked} if known is not None else {}
    return {
        "vault": known.vault if known is not None else see_vault(engine, primary),
        "linked": tuple(
            _with_counts(engine, seen.get(vault.link_id) or see_vault(engine, vault), vault)
            for vault in linked
        ),
    }


def see_vaults(engine: Engine) -> dict[str, Any]:
    """Where each vault is, for a health to take in."""
    return _vaults(None, engine)


def vault_health(engine: Engine, vault: Vault) -> HealthAnswer:
    """How one vault is by itself; the primary one stands for all that is not of a link."""
    if vault.is_primary:
        return health_of(engine)
    facts = _with_counts(engine, see_vault(engine, vault), vault)
    is_running = engine.live is not None and engine.live.jobs.for_link(vault.link_id) is not None
    return assess_vault(facts, is_running=is_running)


def _with_counts(engine: Engine, facts: VaultFacts, vault: Vault) -> VaultFacts:
    is_unfinished = LinkFacts(engine.database, vault.link_id).get(FIRST_UNFINISHED) is not None
    return replace(
        facts,
        is_paused=vault.is_paused,
        is_unfinished=is_unfinished,
        indexed=IndexState(engine.database).total_of(vault.link_id)[0] if is_unfinished else 0,
    )


def see_vault(engine: Engine, vault: Vault) -> VaultFacts:
    """Where a vault is: its folder, and a few of its notes where the folder leaves a doubt."""
    return vault_facts(vault, engine.database)


def index_stamp(engine: Engine) -> tuple[str, str | None]:
    """What an answer was made from: the version of the index, and the time of its newest note."""
    return engine.index_version, newest_note(engine)


def newest_note(engine: Engine) -> str | None:
    """When the newest note of all vaults was modified, as the last runs saw it."""
    facts = LinkFacts.of_all(engine.database).values()
    known = [int(one[NEWEST_NOTE]) for one in facts if NEWEST_NOTE in one]
    if not known:  # an index of an earlier version
        return Manifest(engine.database).newest()
    at = time.gmtime(max(known) // 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", at) if max(known) else None


def _is_followed(engine: Engine) -> bool:
    return engine.live is not None and engine.live.health.is_followed


def _missing_index(
    engine: Engine, books: Mapping[str, str], before: ObsidianRagError | None
) -> ObsidianRagError | None:
    """No index, or the damage that the last look found."""
    is_local = engine.chunks.folder is not None
    if FINGERPRINT not in books or (is_local and not engine.chunks.exists()):
        return _no_index()
    return None if isinstance(before, IndexNotFound) else before


def _no_index() -> IndexNotFound:
    return IndexNotFound("There is no index yet.", "Run `obsidian-rag index`.")


def _with_progress(facts: HealthFacts, engine: Engine, books: Mapping[str, str]) -> HealthFacts:
    """What index runs have left to do; the counts only where something is left."""
    queue = Queue(engine.database)
    unfinished = Unfinished.NOTHING
    primary = engine.vaults.primary.link_id
    if LinkFacts(engine.database, primary).get(FIRST_UNFINISHED) is not None:
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
        is_running=engine.live is not None and engine.live.jobs.active is not None,
        indexed=IndexState(engine.database).totals()[0] if is_counted else 0,
        owed=queue.unsearchable() if is_waiting else 0,
        rebuilt=IndexState(engine.database, REBUILD).totals()[0] if is_rebuild else 0,
    )


def _with_files(facts: HealthFacts, engine: Engine, books: Mapping[str, str]) -> HealthFacts:
    """What a process that does not stay finds on file; a living engine has looked."""
    return replace(
        facts,
        indexer=_indexer_trouble(engine),
        settings=_settings_trouble(engine, books),
        staleness=_staleness(engine),
    )


def _store_trouble(engine: Engine, books: Mapping[str, str]) -> ObsidianRagError | None:
    if (missing := _missing_index(engine, books, None)) is not None:
        return missing
    if (damage := engine.chunks.damage()) is not None:
        return IndexCorrupted(f"The index is damaged: {damage}.", "Run `obsidian-rag reindex`.")
    return None


def _embedder_trouble(engine: Engine) -> ObsidianRagError | None:
    try:
        engine.embedder.probe()
        return sending_trouble(engine)
    except ObsidianRagError as error:
        return error


def _settings_trouble(engine: Engine, books: Mapping[str, str]) -> ObsidianRagError | None:
    """Whether the index was made with the settings of now; an embedder that is down cannot say."""
    try:
        check(books.get(FINGERPRINT), fingerprint(engine.embedder, engine.limits))
    except (EmbeddingMismatch, IndexIncomplete) as error:
        return error
    except ObsidianRagError:
        return None
    return None


def _indexer_trouble(engine: Engine) -> ObsidianRagError | None:
    told = _last_failure(engine)
    if told is None or told[0] in _TOLD_ELSEWHERE:
        return None
    return IndexerFailed(
        f"The last index run failed: {told[1]}",
        "Look at logs/worker.log in the data folder, then run `obsidian-rag sync`.",
    )


def _last_failure(engine: Engine) -> tuple[str, str] | None:
    """Code and message of the last run, if it failed: our own job's, or what is on file."""
    last = read_result(engine) or {}
    job = engine.live.jobs.latest if engine.live else None
    # On a full disk a failure does not get into the file.
    if job is not None and (job.finished_at or "") >= str(last.get("finished_at") or ""):
        return (job.error.code, job.error.message) if job.error else None
    error = last.get("error")
    if last.get("status") != "failed" or not isinstance(error, dict):
        return None
    return str(error.get("code")), str(error.get("message"))


def _livesync_trouble(engine: Engine) -> ObsidianRagError | None:
    """What the daemon's own node says; who has none has no trouble with it."""
    with contextlib.suppress(ObsidianRagError):
        state = engine.live.livesync() if engine.live else None
        return state.trouble if state else None
    return None


def _staleness(engine: Engine) -> IndexStale | None:
    """The index is old and the vault has moved on; looked up now and then, not each time."""
    last = str((read_result(engine) or {}).get("last_sync") or "")
    try:
        age = time.time() - datetime.fromisoformat(last).astimezone(UTC).timestamp()
    except ValueError:
        return None
    if age <= _STALE_AFTER_S:
        return None
    now = time.monotonic()
    if engine.looked_for_changes is None or now - engine.looked_for_changes[0] > _LOOK_AGAIN_S:
        engine.looked_for_changes = now, _has_changed(engine)
    if not engine.looked_for_changes[1]:
        return None
    return IndexStale(
        f"The vault has changed since the last sync, {age / 3600:.0f} h ago.",
        "Run `obsidian-rag sync`.",
    )


def _has_changed(engine: Engine) -> bool:
    try:
        return changed_files(engine.vaults, engine.database, _WALK_S)[0] > 0
    except NotFound:
        return False
