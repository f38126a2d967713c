"""A thorough look at one installation: each check says what it found and what to do."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from obsidian_rag.engine.early import note_source_of
from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.probes import look
from obsidian_rag.errors import IndexCorrupted, ObsidianRagError
from obsidian_rag.index import Finding, Verdict, assess, changed_files, checks_of, hand_over
from obsidian_rag.relations import (
    RelationsConsumer,
    check_relations,
    differing_answers,
    find_rows,
    format_of,
    refresh_vectors,
)

_WALK_S = 60.0


def examine(engine: Engine, *, deep: bool = False) -> Iterator[Finding]:
    """Run every check, cheap ones first; `deep` reads all files, chunks and notes again."""
    checks: list[tuple[str, Callable[[], Finding]]] = [
        ("health", partial(_health, engine)),
        *checks_of(engine, partial(_related, engine, deep=deep), deep=deep),
        *([("relations", partial(_relations, engine))] if deep else []),
    ]
    for name, check in checks:
        try:
            yield check()
        except ObsidianRagError as error:
            message = f"{error.code}: {error.message}"
            yield Finding(name, "problem", message, error.suggestion, error)


def _health(engine: Engine) -> Finding:
    """What every door says; the other checks look closer."""
    answer = assess(look(engine))
    if answer.error is None:
        return Finding("health", "ok", "healthy")
    verdict: Verdict = "problem" if answer.state == "unavailable" else "warning"
    message = f"{answer.error.code}: {answer.error.message}"
    return Finding("health", verdict, message, answer.error.suggestion, answer.error)


def _related(engine: Engine, *, deep: bool) -> Finding:
    notes, damage = check_relations(engine, is_deep=deep)
    if damage is not None:
        raise IndexCorrupted(
            f"The index of related notes is damaged: {damage}.", "Run `obsidian-rag sync`."
        )
    return Finding("related", "ok", f"{notes} notes are related")


def _relations(engine: Engine) -> Finding:
    """What belongs together, asked of the indexes and of indexes that are made for it."""
    if changed_files(engine.vaults, engine.database, _WALK_S)[0]:
        return Finding("relations", "ok", "not compared: files have changed since the last sync")
    if not os.access(engine.config.home, os.W_OK):
        return Finding("relations", "ok", "not compared: the data folder is read-only")
    if differing := _differing_relations(engine):
        return Finding(
            "relations",
            "warning",
            f"{len(differing)} notes have other related notes than in a new index",
            "Run `obsidian-rag reindex`.",
        )
    return Finding("relations", "ok", "related notes are those of a new index")


def _differing_relations(engine: Engine) -> list[str]:
    """Notes whose related notes are not those that an index made just now would tell.

    Raises:
        IndexCorrupted: the indexes are damaged.
    """
    settings = engine.config.settings.relations
    rows = find_rows(engine.config.home, format_of(settings), is_strict=True)
    if rows is None:
        return []
    # To compare is not to write: no note gets an id for it.
    unwritten = settings.model_copy(update={"auto_add_ids": False})
    with (
        contextlib.closing(rows),
        tempfile.TemporaryDirectory(dir=engine.config.home, prefix=".compared-") as folder,
        RelationsConsumer(Path(folder), unwritten) as clean,
    ):
        clean.begin("")
        vaults = {vault.link_id: vault for vault in engine.vaults}
        for vault in vaults.values():
            hand_over(note_source_of(engine, vault, clean), vault, clean, {})
        # Places that were not kept are read again.
        while stale := clean.settle():
            for link_id in {of for of, _ in stale}:
                vault, paths = vaults[link_id], [path for of, path in stale if of == link_id]
                hand_over(note_source_of(engine, vault, clean), vault, clean, {}, paths)
        for link_id in vaults:
            refresh_vectors(clean.rows, engine.chunks, link_id)
        return differing_answers(rows, clean.rows, settings)
