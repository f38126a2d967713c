"""Checks one installation thoroughly: each check reports its finding and what to do."""

import os
from collections.abc import Callable, Iterator
from functools import partial

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.health import livesync_of, look
from obsidian_rag.errors import IndexCorrupted
from obsidian_rag.index import (
    Finding,
    assess,
    changed_files,
    checks_of,
    differing_relations,
    found_by,
    health_finding,
)
from obsidian_rag.relations import check_relations

_WALK_S = 60.0


def examine(engine: Engine, *, deep: bool = False) -> Iterator[Finding]:
    """Run every check, cheap ones first; `deep` reads all files, chunks and notes again."""
    checks: list[tuple[str, Callable[[], Finding]]] = [
        ("health", lambda: health_finding(engine, assess(look(engine)))),
        *checks_of(engine, partial(_related, engine, deep=deep), deep=deep),
        ("livesync", partial(_livesync, engine)),
        *([("relations", partial(_relations, engine))] if deep else []),
    ]
    return found_by(checks)


def _related(engine: Engine, *, deep: bool) -> Finding:
    notes, damage = check_relations(engine, is_deep=deep)
    if damage is not None:
        raise IndexCorrupted(
            f"The index of related notes is damaged: {damage}.", "Run `obsidian-rag sync`."
        )
    return Finding("ok", f"{notes} notes are related")


def _livesync(engine: Engine) -> Finding:
    """Whether the last or running sync with other devices had trouble."""
    if (trouble := livesync_of(engine)) is None:
        return Finding("ok", "no trouble")
    return Finding("warning", f"{trouble.code}: {trouble.message}", trouble.suggestion, trouble)


def _relations(engine: Engine) -> Finding:
    """Compare the related notes with those of freshly built indexes."""
    if changed_files(engine.vaults, engine.database, _WALK_S)[0]:
        return Finding("ok", "not compared: files have changed since the last sync")
    if not os.access(engine.config.home, os.W_OK):
        return Finding("ok", "not compared: the data folder is read-only")
    if differing := differing_relations(engine):
        return Finding(
            "warning",
            f"{len(differing)} notes have other related notes than in a new index",
            "Run `obsidian-rag reindex`.",
        )
    return Finding("ok", "related notes are those of a new index")
