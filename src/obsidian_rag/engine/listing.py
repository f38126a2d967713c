"""The indexed notes in the order of their paths, a page at a time.

Threat: a list of notes tells an agent what the user keeps to himself. Notes that say `rag: false`
are in no index; those that say `rag: private` are left out here, and so is every note of which
the index does not know yet whether it does.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.query import take_up_changes
from obsidian_rag.errors import IndexCorrupted, IndexNotFound
from obsidian_rag.notes import EVERYTHING, Scope
from obsidian_rag.store import IndexState, public_titles


@dataclass(frozen=True, slots=True)
class ListedNote:
    """A note that an agent may know of."""

    link_id: str
    path: str
    title: str


def list_notes(
    engine: Engine,
    after: str,
    limit: int,
    scope: Scope = EVERYTHING,
    vault: str | None = None,
) -> tuple[ListedNote, ...]:
    """The next notes of a vault whose paths follow `after`; empty without an index.

    Without a name or link id of a `vault`, those of the first in scope, mostly the primary one.

    Raises:
        IndexCorrupted: the index cannot be read.
    """
    try:
        take_up_changes(engine)
    except IndexNotFound:
        return ()
    wanted = engine.vaults.one(vault, scope)
    found: list[ListedNote] = []
    while len(found) < limit:
        paths = IndexState(engine.database).searchable_after(wanted.link_id, after, limit)
        # Folders may have been denied since; the next sync takes their notes out of the index.
        admitted = [
            path
            for path in paths
            if wanted.rules.admits_file(path) and scope.admits(wanted.link_id, path)
        ]
        found += _open_notes(engine, wanted.link_id, admitted)
        if len(paths) < limit:
            break
        after = paths[-1]
    return tuple(found[:limit])


def _open_notes(engine: Engine, link_id: str, paths: Sequence[str]) -> list[ListedNote]:
    if not paths:
        return []
    try:
        titles = public_titles(engine.chunks, link_id, paths)
    except IndexCorrupted:
        # Another process may have swapped in a new index under our feet: look once more.
        engine.chunks.close()
        titles = public_titles(engine.chunks, link_id, paths)
    return [ListedNote(link_id, path, titles[path]) for path in paths if path in titles]


def indexed_notes(engine: Engine, vault: str | None = None) -> set[str]:
    """Every note of a vault that can be found, by default of the primary one.

    Raises:
        IndexNotFound: there is no index yet.
    """
    if not engine.chunks.exists():
        raise IndexNotFound("There is no index yet.", "Run `obsidian-rag index`.")
    return engine.chunks.paths(engine.vaults.one(vault).link_id)
