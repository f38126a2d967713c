"""Checks one installation thoroughly: each check reports its finding and what to do."""

import os
from collections.abc import Iterator

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.health import livesync_of, probe
from obsidian_rag.errors import IndexCorrupted, IndexIncomplete, ObsidianRagError
from obsidian_rag.health import Finding, assess, checks
from obsidian_rag.index import (
    Transformer,
    changed_files,
    check_fingerprint,
    differing_relations,
    embedder_choice,
    meaning_state,
)
from obsidian_rag.relations import check_relations
from obsidian_rag.store import IndexFact, stored_vectors

_MAX_WALK_S = 60.0
_ADD_MODEL = "Run `obsidian-rag model get` or `model add` again; search works without it."


def examine(engine: Engine, *, deep: bool = False) -> Iterator[Finding]:
    """Run every check, cheap ones first; `deep` reads all files, chunks and notes again."""
    home = engine.config.home
    listed: list[tuple[str, checks.Check]] = [
        ("health", lambda: _check_health(engine)),
        ("config", lambda: checks.check_config(engine.config)),
        ("vault", lambda: checks.check_vaults(engine.vaults)),
        ("disk", lambda: checks.check_disk(home)),
        ("permissions", lambda: checks.check_permissions(home)),
        ("database", lambda: checks.check_database(engine.database, deep=deep)),
        ("files", lambda: checks.check_files(engine.chunks, deep=deep)),
        ("index", lambda: checks.check_index(engine.database, engine.chunks, engine.vaults)),
        ("lookup", lambda: checks.check_lookup(engine.chunks, deep=deep)),
        ("related", lambda: _check_related(engine, deep=deep)),
        ("embedder", lambda: _check_embedder(engine)),
        ("fingerprint", lambda: _check_fingerprint(engine)),
        ("meaning", lambda: _check_meaning(engine, deep=deep)),
    ]
    if deep:
        listed += [
            ("chunks", lambda: checks.check_chunks(engine.chunks)),
            ("notes", lambda: checks.check_notes(engine.database, engine.vaults)),
        ]
    listed.append(("livesync", lambda: _check_livesync(engine)))
    if deep:
        listed.append(("relations", lambda: _check_relations(engine)))
    return checks.run_checks(listed)


def _check_health(engine: Engine) -> Finding:
    answer = assess(probe(engine))
    return checks.check_health(answer, engine.vaults, engine.database)


def _check_related(engine: Engine, *, deep: bool) -> Finding:
    config = engine.config
    notes, damage = check_relations(config.home, config.settings.relations, is_deep=deep)
    if damage is not None:
        raise IndexCorrupted(
            f"The index of related notes is damaged: {damage}.", "Run `obsidian-rag sync`."
        )
    return Finding("ok", f"{notes} notes are related")


def _check_embedder(engine: Engine) -> Finding:
    embedder = engine.embedder
    embedder.probe()
    vector = embedder.embed_query("ready?")
    what = f"{embedder.provider}:{embedder.model}, {len(vector)} dimensions"
    if (notice := embedder_choice(engine.config).notice) is not None:
        step = "Set embedding.provider, or model.provider to openai, gemini or ollama."
        return Finding("warning", f"{what}. {notice}", step)
    return Finding("ok", what)


def _check_fingerprint(engine: Engine) -> Finding:
    try:
        made = engine.database.get(IndexFact.FINGERPRINT)
        check_fingerprint(made, engine.parts.fingerprint)
    except IndexIncomplete as error:
        return Finding("warning", error.message, error.suggestion, error)
    return Finding("ok", "the index was built with these settings")


def _check_meaning(engine: Engine, *, deep: bool) -> Finding:
    """Check the transformer and its vectors; only warnings, as search works without them."""
    transformer = engine.parts.transformer
    state, store = meaning_state(engine.parts), transformer.store
    if state is None:
        count = stored_vectors(engine.config.home / "meaning")
        settings = engine.config.settings.meaning
        if count and settings.enabled:
            message = f"{count:,} meaning vectors are not used: no model '{settings.model}'"
            return Finding("warning", message, _ADD_MODEL)
        return Finding("ok", "no transformer, so search uses static vectors alone")
    share = f"{state.done:,} of {state.total:,}"
    trouble = state.trouble or _transformer_trouble(transformer)
    if trouble is not None:
        message = f"meaning vectors stop at {share}: {trouble}"
        return Finding("warning", message, _ADD_MODEL)
    if deep and store is not None and (damaged := store.damaged()):
        message = f"{damaged:,} meaning vectors are damaged"
        return Finding("warning", message, "Run `obsidian-rag sync --deep-vectors`.")
    rest = "" if state.done == state.total else "; `obsidian-rag sync --deep-vectors` adds the rest"
    return Finding("ok", f"{share} chunks have a vector of {state.model}{rest}")


def _transformer_trouble(transformer: Transformer) -> str | None:
    embedder = transformer.embedder
    try:
        if embedder is not None:
            embedder.probe()
            embedder.embed_query("ready?")
            embedder.close()
    except ObsidianRagError as error:
        return error.message
    return None


def _check_livesync(engine: Engine) -> Finding:
    """Whether the last or running sync with other devices had trouble."""
    if (trouble := livesync_of(engine)) is None:
        return Finding("ok", "no trouble")
    return Finding("warning", f"{trouble.code}: {trouble.message}", trouble.suggestion, trouble)


def _check_relations(engine: Engine) -> Finding:
    """Compare the related notes with those of freshly built indexes."""
    if changed_files(engine.vaults, engine.database, _MAX_WALK_S)[0]:
        return Finding("ok", "not compared: files have changed since the last sync")
    if not os.access(engine.config.home, os.W_OK):
        return Finding("ok", "not compared: the data folder is read-only")
    if differing := differing_relations(engine.parts, tuple(engine.vaults)):
        return Finding(
            "warning",
            f"the related notes of {len(differing)} notes are out of date",
            "Run `obsidian-rag reindex`.",
        )
    return Finding("ok", "related notes are up to date")
