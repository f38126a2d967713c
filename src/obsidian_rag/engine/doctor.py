"""A thorough look at one installation: each check says what it found and what to do."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from obsidian_rag.engine.early import note_source_of
from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.health import assess
from obsidian_rag.engine.probes import look
from obsidian_rag.errors import (
    IndexCorrupted,
    ObsidianRagError,
    ReadOnly,
)
from obsidian_rag.index import (
    Finding,
    Verdict,
    changed_files,
    check_chunks,
    check_database,
    check_embedder,
    check_files,
    check_fingerprint,
    check_index,
    check_lookup,
    check_meaning,
    check_notes,
    counted,
    hand_over,
)
from obsidian_rag.relations import (
    RelationsConsumer,
    check_relations,
    differing_answers,
    find_rows,
    format_of,
    ground_of,
    refresh_vectors,
)
from obsidian_rag.store import open_to_others

_WALK_S = 60.0
_LITTLE_SPACE = 500_000_000


def examine(engine: Engine, *, deep: bool = False) -> Iterator[Finding]:
    """Run every check, cheap ones first; `deep` reads all files, chunks and notes again."""
    checks: list[tuple[str, Callable[[Engine], Finding]]] = [
        ("health", _health),
        ("config", _config),
        ("vault", _vault),
        ("disk", _disk),
        ("permissions", _permissions),
        ("database", partial(check_database, deep=deep)),
        ("files", partial(check_files, deep=deep)),
        ("index", check_index),
        ("lookup", partial(check_lookup, deep=deep)),
        ("related", partial(_related, deep=deep)),
        ("embedder", check_embedder),
        ("fingerprint", check_fingerprint),
        ("meaning", partial(check_meaning, deep=deep)),
    ]
    if deep:
        checks += [("chunks", check_chunks), ("notes", check_notes), ("relations", _relations)]
    for name, action in checks:
        try:
            yield action(engine)
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


def _config(engine: Engine) -> Finding:
    file = engine.config.file
    if not file.exists():
        return Finding("config", "warning", f"{file} does not exist.", "Run `obsidian-rag init`.")
    return Finding("config", "ok", str(file))


def _vault(engine: Engine) -> Finding:
    vaults = list(engine.vaults)
    scans = [vault.scan() for vault in vaults]
    notes = sum(len(found.files) for found in scans)
    where = ", ".join(str(vault.root) for vault in vaults)
    what = f"{counted(notes, 'note', 'notes')} in {where}"
    if unreadable := [folder for found in scans for folder in found.unreadable_folders]:
        folders = ", ".join(unreadable[:5])
        return Finding("vault", "warning", f"{what}; cannot read {folders}", "Check permissions.")
    return Finding("vault", "ok", what)


def _disk(engine: Engine) -> Finding:
    home = engine.config.home
    existing = next(path for path in (home, *home.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        raise ReadOnly(
            f"{existing} may not be written.", "Searching works. To index, change its permissions."
        )
    free = shutil.disk_usage(existing).free
    verdict: Verdict = "ok" if free >= _LITTLE_SPACE else "warning"
    size = _bytes_below(home) / 1e6
    return Finding("disk", verdict, f"{size:.1f} MB used by {home}, {free / 1e9:.1f} GB free")


def _bytes_below(folder: Path) -> int:
    return sum(
        (Path(where) / name).lstat().st_size
        for where, _, names in os.walk(folder)
        for name in names
    )


def _permissions(engine: Engine) -> Finding:
    """Whether the data folder is its owner's alone."""
    shared = open_to_others(engine.config.home)
    if shared:
        some = ", ".join(shared[:5])
        return Finding(
            "permissions",
            "warning",
            f"{len(shared)} files or folders of {engine.config.home} are not yours alone: {some}",
            "Run `obsidian-rag sync`, which takes the rights of others away.",
        )
    return Finding("permissions", "ok", f"{engine.config.home} is yours alone")


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
    wanted = format_of(engine.config.settings.relations)
    rows = find_rows(engine.config.home, wanted, is_strict=True)
    if rows is None:
        return []
    ground = ground_of(engine)
    # To compare is not to write: no note gets an id for it.
    unwritten = replace(ground, settings=ground.settings.model_copy(update={"auto_add_ids": False}))
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
        return differing_answers(rows, clean.rows, ground)
