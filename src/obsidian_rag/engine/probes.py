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
from pathlib import Path

from obsidian_rag.engine.changes import staleness
from obsidian_rag.engine.engine import Engine, index_version
from obsidian_rag.engine.health import (
    HealthAnswer,
    HealthFacts,
    Unfinished,
    VaultFacts,
    VaultPlace,
    assess,
)
from obsidian_rag.engine.indexing import read_result
from obsidian_rag.errors import (
    EmbeddingMismatch,
    IndexCorrupted,
    IndexerFailed,
    IndexNotFound,
    ObsidianRagError,
)
from obsidian_rag.index import (
    FINGERPRINT,
    FIRST_UNFINISHED,
    NEWEST_NOTE,
    REBUILDING,
    REPLACE_WITH,
    Away,
    MadeOf,
    Root,
    away_before,
    check,
    compare_roots,
    fingerprint,
    is_away,
    made_of,
)
from obsidian_rag.store import REBUILD, IndexState, Links, Manifest, Queue
from obsidian_rag.vault import find_files, root_identity

_NOTES_LOOKED_AT = 100
_NOTES_AT_EACH_END = 4
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
            vault=facts.vault if _is_followed(engine) else see_vault(engine, books),
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
            staleness=staleness(engine),
            vault=see_vault(engine, books),
        )
    except ObsidianRagError as error:
        facts = replace(facts, store=error)
    if engine.live is not None:
        engine.live.health.take(facts)
    return facts


def see_vault(engine: Engine, books: Mapping[str, str] | None = None) -> VaultFacts:
    """Where the vault is: its folder, and a few of its notes where the folder leaves a doubt."""
    books = engine.database.facts() if books is None else books
    root = engine.vaults.configured[0].root
    link = Links(engine.database).primary()
    made = made_of(books, str(link.root_path) if link else None)
    if made is None or link is None or FINGERPRINT not in books:
        return VaultFacts(path=str(root))
    facts = VaultFacts(
        path=str(root), made_of=made.path, is_replacing=books.get(REPLACE_WITH) == str(root)
    )
    identity = root_identity(root)
    if identity is None:
        return replace(facts, place=VaultPlace.AWAY)
    away = away_before(books, str(root))
    if away is not None and len(find_files(root, away.missing)) < len(away.missing):
        return replace(facts, place=VaultPlace.AWAY, counted=away)
    if identity == made.identity and _has_notes(engine, root, link.link_id):
        return facts
    return _compared(engine, facts, made, link.link_id)


def is_worth_a_try(engine: Engine) -> bool:
    """Whether a sync could find more of the vault than the look that found too little."""
    root = engine.vaults.configured[0].root
    away = away_before(engine.database.facts(), str(root))
    return away is None or bool(find_files(root, away.missing))


def index_stamp(engine: Engine) -> tuple[str, str | None]:
    """What an answer was made from: the version of the index, and the time of its newest note."""
    return index_version(engine), newest_note(engine)


def newest_note(engine: Engine) -> str | None:
    """When the newest note was modified, as the last run saw it."""
    newest = engine.database.get(NEWEST_NOTE)
    if newest is None:  # an index of an earlier version
        return Manifest(engine.database).newest()
    at = time.gmtime(int(newest) // 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", at) if int(newest) else None


def _compared(engine: Engine, facts: VaultFacts, made: MadeOf, link_id: str) -> VaultFacts:
    """Another folder than the one that was indexed: is it the vault all the same?"""
    root = Path(facts.path)
    known = Manifest(engine.database).some(link_id, _NOTES_LOOKED_AT)
    found = find_files(root, known)
    match compare_roots(made, facts.path, root_identity(root), known, found):
        case Root.OTHER:
            return replace(facts, place=VaultPlace.OTHER)
        case kind:
            missing = [path for path in known if path not in found]
            if not known and facts.path != made.path:
                return replace(facts, place=VaultPlace.OTHER)
            if is_away(len(known), len(missing), kind):
                counted = Away.seen(facts.path, len(known), missing)
                return replace(facts, place=VaultPlace.AWAY, counted=counted)
            return facts


def _has_notes(engine: Engine, root: Path, link_id: str) -> bool:
    """Whether the folder is not all empty; its number alone may be that of one made anew."""
    ends = Manifest(engine.database).ends(link_id, _NOTES_AT_EACH_END)
    return not ends or bool(find_files(root, ends))


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
    if FIRST_UNFINISHED in books:
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
        staleness=staleness(engine),
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
    except ObsidianRagError as error:
        return error
    return None


def _settings_trouble(engine: Engine, books: Mapping[str, str]) -> ObsidianRagError | None:
    """Whether the index was made with the settings of now; an embedder that is down cannot say."""
    try:
        check(books.get(FINGERPRINT), fingerprint(engine.embedder, engine.limits))
    except EmbeddingMismatch as error:
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
