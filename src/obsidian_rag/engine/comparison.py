"""Compare what is remembered with the vault itself: the part of `doctor --deep` that takes long.

SQLite notices damage to its own structure, not to a value in it. So values that answers are made
from are made once more and compared.
"""

import contextlib
import tempfile
from dataclasses import replace
from pathlib import Path

from obsidian_rag.engine.early import note_source_of
from obsidian_rag.engine.engine import Engine
from obsidian_rag.index import hand_over
from obsidian_rag.notes import RagPolicy, parse_note, property_values
from obsidian_rag.relations import (
    Ground,
    MemoryIndex,
    RelationsConsumer,
    Rows,
    find_rows,
    format_of,
    ground_of,
    note_source,
    refresh_vectors,
    related,
)
from obsidian_rag.store import IndexState, Links, Properties
from obsidian_rag.vault import NoteFile, content_hash, read_note

_MOST_COMPARED = 300
_SAME = 1e-3


def differing_notes(engine: Engine) -> tuple[int, list[str], list[str]]:
    """How many files were read; those that changed since, and those whose properties differ."""
    link = Links(engine.database).primary()
    indexed = IndexState(engine.database).hashes(link.link_id) if link else {}
    known = Properties(engine.database).all(link.link_id) if link else {}
    changed, differing = [], []
    for path, expected in indexed.items():
        if expected is None:
            continue
        file = read_note(engine.config.vault_root, path, engine.rules.max_file_bytes)
        if not isinstance(file, NoteFile) or content_hash(file.data) != expected:
            changed.append(path)
        elif _properties(path, file) != known.get(path, set()):
            differing.append(path)
    return len(indexed), changed, [*differing, *sorted(known.keys() - indexed.keys())]


def _properties(path: str, file: NoteFile) -> set[tuple[str, str]]:
    note = parse_note(path, file.text)
    return set() if note.policy is RagPolicy.NEVER else set(property_values(note.frontmatter))


def differing_relations(engine: Engine) -> list[str]:
    """Notes whose related notes are not those that an index made just now would tell.

    Raises:
        IndexCorrupted: the indexes are damaged.
    """
    link = Links(engine.database).primary()
    wanted = format_of(engine.config.settings.relations)
    rows = find_rows(engine.config.home, wanted, is_strict=True)
    if link is None or rows is None:
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
        source = note_source_of(engine, link.link_id, clean)
        hand_over(source, engine.rules, clean, {})
        # Places that were not kept are read again.
        while stale := clean.settle():
            hand_over(source, engine.rules, clean, {}, stale)
        refresh_vectors(clean.rows, engine.chunks, link.link_id)
        return _differing(rows, clean.rows, ground)


def _differing(rows: Rows, clean: Rows, ground: Ground) -> list[str]:
    settings = ground.settings
    use_links = settings.use_links and settings.profile != "seed"
    ours, theirs = (MemoryIndex(one, use_links=use_links) for one in (rows, clean))
    paths = sorted({*ours.by_path, *theirs.by_path})
    compared = paths[:: len(paths) // _MOST_COMPARED + 1]
    return [
        path
        for path in compared
        if not _is_same(_told(ours, path, ground), _told(theirs, path, ground))
    ]


def _told(loaded: MemoryIndex, path: str, ground: Ground) -> dict[str, float] | None:
    slot = loaded.by_path.get(path)
    if slot is None:
        return None
    found = related(loaded, note_source(loaded, slot, ()), ground.settings)
    return {loaded.cards[one.slot].path: one.score for one in found}


def _is_same(one: dict[str, float] | None, other: dict[str, float] | None) -> bool:
    if one is None or other is None or one.keys() != other.keys():
        return one is other is None
    return all(abs(score - other[path]) < _SAME for path, score in one.items())
