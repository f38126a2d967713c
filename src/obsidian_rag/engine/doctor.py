"""A thorough look at one installation: each check says what it found and what to do."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from obsidian_rag.engine.engine import Engine
from obsidian_rag.errors import IndexCorrupted, IndexerFailed, ObsidianRagError
from obsidian_rag.index import FINGERPRINT, check, chunk_hash, fingerprint
from obsidian_rag.store import IndexState, Links
from obsidian_rag.vault import NoteFile, content_hash, read_note, scan

Verdict = Literal["ok", "warning", "problem"]
_LITTLE_SPACE = 500_000_000


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    check: str
    verdict: Verdict
    message: str
    suggestion: str = ""
    error: ObsidianRagError | None = None


def examine(engine: Engine, *, deep: bool = False) -> Iterator[Finding]:
    """Run every check, cheap ones first; `deep` reads all chunks and all notes again."""
    checks: list[tuple[str, Callable[[Engine], Finding]]] = [
        ("config", _config),
        ("vault", _vault),
        ("disk", _disk),
        ("database", _database),
        ("index", _index),
        ("embedder", _embedder),
        ("fingerprint", _fingerprint),
    ]
    if deep:
        checks += [("chunks", _chunks), ("notes", _notes)]
    for name, action in checks:
        try:
            yield action(engine)
        except ObsidianRagError as error:
            message = f"{error.code}: {error.message}"
            yield Finding(name, "problem", message, error.suggestion, error)


def _config(engine: Engine) -> Finding:
    file = engine.config.file
    if not file.exists():
        return Finding("config", "warning", f"{file} does not exist.", "Run `obsidian-rag init`.")
    return Finding("config", "ok", str(file))


def _vault(engine: Engine) -> Finding:
    found = scan(engine.config.vault_root, engine.rules)
    what = f"{len(found.files)} notes in {engine.config.vault_root}"
    if found.unreadable_folders:
        folders = ", ".join(found.unreadable_folders[:5])
        return Finding("vault", "warning", f"{what}; cannot read {folders}", "Check permissions.")
    return Finding("vault", "ok", what)


def _disk(engine: Engine) -> Finding:
    home = engine.config.home
    existing = next(path for path in (home, *home.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        raise IndexerFailed(f"{existing} cannot be written.", "Check its permissions.")
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


def _database(engine: Engine) -> Finding:
    if (damage := engine.database.check()) is not None:
        raise IndexCorrupted(f"state.db is damaged: {damage}.", "Run `obsidian-rag reindex`.")
    return Finding("database", "ok", str(engine.config.database))


def _index(engine: Engine) -> Finding:
    files, chunks = IndexState(engine.database).totals()
    stored = engine.chunks.count()
    if stored != chunks:
        raise IndexCorrupted(
            f"The index holds {stored} chunks, but {chunks} were written.",
            "Run `obsidian-rag reindex`.",
        )
    return Finding("index", "ok", f"{files} notes, {chunks} chunks")


def _embedder(engine: Engine) -> Finding:
    engine.embedder.probe()
    vector = engine.embedder.embed_query("ready?")
    name = f"{engine.embedder.provider}:{engine.embedder.model}"
    return Finding("embedder", "ok", f"{name}, {len(vector)} dimensions")


def _fingerprint(engine: Engine) -> Finding:
    check(engine.database.get(FINGERPRINT), fingerprint(engine.embedder, engine.limits))
    return Finding("fingerprint", "ok", "the index was made with these settings")


def _chunks(engine: Engine) -> Finding:
    count = 0
    for path, text, words_only, expected in engine.chunks.texts():
        count += 1
        if chunk_hash(text, words_only) != expected:
            raise IndexCorrupted(
                f"A chunk of {path} is not what was written.", "Run `obsidian-rag reindex`."
            )
    return Finding("chunks", "ok", f"{count} chunks are as they were written")


def _notes(engine: Engine) -> Finding:
    link = Links(engine.database).primary()
    indexed = IndexState(engine.database).hashes(link.link_id) if link else {}
    differing = [
        path
        for path, expected in indexed.items()
        if expected is not None and _hash(engine, path) != expected
    ]
    if differing:
        some = ", ".join(differing[:5])
        return Finding(
            "notes",
            "warning",
            f"{len(differing)} notes differ from the index: {some}",
            "Run `obsidian-rag index`, which trusts no timestamp.",
        )
    return Finding("notes", "ok", f"{len(indexed)} files are as they were indexed")


def _hash(engine: Engine, path: str) -> str | None:
    file = read_note(engine.config.vault_root, path, engine.rules.max_file_bytes)
    return content_hash(file.data) if isinstance(file, NoteFile) else None
