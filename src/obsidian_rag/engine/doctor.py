"""A thorough look at one installation: each check says what it found and what to do."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from obsidian_rag.engine.changes import changed_files
from obsidian_rag.engine.comparison import differing_notes, differing_relations
from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.health import assess
from obsidian_rag.engine.meaning import meaning_state
from obsidian_rag.engine.probes import look
from obsidian_rag.errors import (
    IndexCorrupted,
    IndexNotFound,
    ObsidianRagError,
    ReadOnly,
)
from obsidian_rag.index import FINGERPRINT, check, chunk_hash, fingerprint
from obsidian_rag.relations import check_relations
from obsidian_rag.store import IndexState, open_to_others, probe_indexes, stored_vectors

Verdict = Literal["ok", "warning", "problem"]
_WALK_S = 60.0
_LITTLE_SPACE = 500_000_000
_ADD_MODEL = "Run `obsidian-rag model get` or `model add` again; search goes on without."


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    check: str
    verdict: Verdict
    message: str
    suggestion: str = ""
    error: ObsidianRagError | None = None


def examine(engine: Engine, *, deep: bool = False) -> Iterator[Finding]:
    """Run every check, cheap ones first; `deep` reads all files, chunks and notes again."""
    checks: list[tuple[str, Callable[[Engine], Finding]]] = [
        ("health", _health),
        ("config", _config),
        ("vault", _vault),
        ("disk", _disk),
        ("permissions", _permissions),
        ("database", partial(_database, deep=deep)),
        ("files", partial(_files, deep=deep)),
        ("index", _index),
        ("lookup", partial(_lookup, deep=deep)),
        ("related", partial(_related, deep=deep)),
        ("embedder", _embedder),
        ("fingerprint", _fingerprint),
        ("meaning", partial(_meaning, deep=deep)),
    ]
    if deep:
        checks += [("chunks", _chunks), ("notes", _notes), ("relations", _relations)]
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
    vaults = engine.vaults.configured
    scans = [vault.scan() for vault in vaults]
    notes = sum(len(found.files) for found in scans)
    where = ", ".join(str(vault.root) for vault in vaults)
    what = f"{_counted(notes, 'note', 'notes')} in {where}"
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


def _database(engine: Engine, *, deep: bool) -> Finding:
    if (damage := engine.database.check(is_deep=deep)) is not None:
        raise IndexCorrupted(f"state.db is damaged: {damage}.", "Run `obsidian-rag reindex`.")
    return Finding("database", "ok", str(engine.config.database))


def _files(engine: Engine, *, deep: bool) -> Finding:
    """The files of the chunk table: present and of their size; deep: of their content."""
    if not engine.chunks.exists():
        raise IndexNotFound("There is no index yet.", "Run `obsidian-rag index`.")
    if (damage := engine.chunks.damage(is_deep=deep)) is not None:
        raise IndexCorrupted(f"The index is damaged: {damage}.", "Run `obsidian-rag reindex`.")
    if not engine.chunks.is_recorded():
        return Finding(
            "files",
            "warning",
            "no checksums were recorded, so damage may go unseen",
            "Run `obsidian-rag reindex`, which records them.",
        )
    what = "their content is what was written" if deep else "all there, each of its size"
    return Finding("files", "ok", what)


def _lookup(engine: Engine, *, deep: bool) -> Finding:
    """Ask each search index for rows that are known to be there."""
    asked, wrong = probe_indexes(engine.chunks, is_deep=deep)
    if wrong is not None:
        raise IndexCorrupted(
            f"The search index of {wrong} misses rows that the table has.",
            "Run `obsidian-rag reindex`.",
        )
    return Finding("lookup", "ok", f"{asked} questions with known answers were answered right")


def _related(engine: Engine, *, deep: bool) -> Finding:
    notes, damage = check_relations(engine, is_deep=deep)
    if damage is not None:
        raise IndexCorrupted(
            f"The index of related notes is damaged: {damage}.", "Run `obsidian-rag sync`."
        )
    return Finding("related", "ok", f"{notes} notes are related")


def _index(engine: Engine) -> Finding:
    files, chunks = IndexState(engine.database).totals()
    stored = engine.chunks.count()
    if stored != chunks:
        raise IndexCorrupted(
            f"The index holds {stored} chunks, but {chunks} were written.",
            "Run `obsidian-rag reindex`.",
        )
    return Finding(
        "index", "ok", f"{_counted(files, 'note', 'notes')}, {_counted(chunks, 'chunk', 'chunks')}"
    )


def _embedder(engine: Engine) -> Finding:
    engine.embedder.probe()
    vector = engine.embedder.embed_query("ready?")
    name = f"{engine.embedder.provider}:{engine.embedder.model}"
    return Finding("embedder", "ok", f"{name}, {len(vector)} dimensions")


def _fingerprint(engine: Engine) -> Finding:
    check(engine.database.get(FINGERPRINT), fingerprint(engine.embedder, engine.limits))
    return Finding("fingerprint", "ok", "the index was built with these settings")


def _meaning(engine: Engine, *, deep: bool) -> Finding:
    """The transformer and its vectors; whatever is wrong with them, search goes on without."""
    state, store = meaning_state(engine), engine.meaning_store
    if state is None:
        count = stored_vectors(engine.config.home / "meaning")
        settings = engine.config.settings.meaning
        if count and settings.enabled:
            message = f"{count:,} meaning vectors are not used: no model '{settings.model}'"
            return Finding("meaning", "warning", message, _ADD_MODEL)
        return Finding("meaning", "ok", "no transformer, so search uses static vectors alone")
    share = f"{state.done:,} of {state.total:,}"
    trouble = state.trouble or _transformer_trouble(engine)
    if trouble is not None:
        message = f"meaning vectors stop at {share}: {trouble}"
        return Finding("meaning", "warning", message, _ADD_MODEL)
    if deep and store is not None and (damaged := store.damaged()):
        message = f"{damaged:,} meaning vectors are damaged"
        return Finding("meaning", "warning", message, "Run `obsidian-rag sync --deep-vectors`.")
    rest = "" if state.done == state.total else "; `obsidian-rag sync --deep-vectors` adds the rest"
    return Finding("meaning", "ok", f"{share} chunks have a vector of {state.model}{rest}")


def _transformer_trouble(engine: Engine) -> str | None:
    embedder = engine.meaning_embedder
    try:
        if embedder is not None:
            embedder.probe()
            embedder.embed_query("ready?")
            embedder.close()
    except ObsidianRagError as error:
        return error.message
    return None


def _relations(engine: Engine) -> Finding:
    """What belongs together, asked of the indexes and of indexes that are made for it."""
    if changed_files(engine, _WALK_S)[0]:
        return Finding("relations", "ok", "not compared: files have changed since the last sync")
    if not os.access(engine.config.home, os.W_OK):
        return Finding("relations", "ok", "not compared: the data folder is read-only")
    if differing := differing_relations(engine):
        return Finding(
            "relations",
            "warning",
            f"{len(differing)} notes have other related notes than in a new index",
            "Run `obsidian-rag reindex`.",
        )
    return Finding("relations", "ok", "related notes are those of a new index")


def _chunks(engine: Engine) -> Finding:
    count = 0
    for path, text, words_only, expected in engine.chunks.texts():
        count += 1
        if chunk_hash(text, words_only) != expected:
            raise IndexCorrupted(
                f"A chunk of {path} is not what was written.", "Run `obsidian-rag reindex`."
            )
    return Finding(
        "chunks",
        "ok",
        f"{_counted(count, 'chunk is as it was', 'chunks are as they were')} written",
    )


def _notes(engine: Engine) -> Finding:
    count, changed, differing = differing_notes(engine)
    if differing:
        raise IndexCorrupted(
            f"The properties that are remembered of {len(differing)} notes are not theirs.",
            "Run `obsidian-rag reindex`.",
        )
    if changed:
        some = ", ".join(changed[:5])
        return Finding(
            "notes",
            "warning",
            f"{_counted(len(changed), 'note differs', 'notes differ')} from the index: {some}",
            "`obsidian-rag index` rereads every file.",
        )
    return Finding(
        "notes", "ok", f"{_counted(count, 'note is as it was', 'notes are as they were')} indexed"
    )


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
