"""The indexes of related notes between index runs: whether they are sound, meaning vectors."""

import contextlib
from collections.abc import Callable, Collection, Iterator
from functools import partial

from obsidian_rag.errors import IndexCorrupted
from obsidian_rag.relations.memory_index import MemoryIndex
from obsidian_rag.relations.place import RelationsPlace, format_now
from obsidian_rag.relations.rows import Rows
from obsidian_rag.relations.rows_file import discard, find_rows, forget_notes
from obsidian_rag.relations.vectors import refresh_meaning_vectors
from obsidian_rag.store import IndexState


def check_relations(place: RelationsPlace, *, is_deep: bool = False) -> tuple[int, str | None]:
    """How many notes are related, and what is wrong with the indexes, if anything."""
    try:
        rows = find_rows(place.config.home, format_now(place), is_strict=True)
        if rows is None:
            return 0, None
        with contextlib.closing(rows):
            if (damage := rows.database.check(is_deep=is_deep)) is not None:
                return 0, damage
            loaded = MemoryIndex(rows, use_links=True)
            if is_deep:
                rows.places([card.number for card in loaded.cards])
            return loaded.count, None
    except IndexCorrupted as error:
        return 0, error.message


def refresh_meanings(
    place: RelationsPlace,
    paths: Collection[tuple[str, str]] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> int:
    """After meaning vectors were added: take up those of notes that have all of theirs now.

    Tells how many notes got one. Of `paths`, each with a link id, or of all notes, only those that
    have not got the one of their present text are looked at. Damage is left to the next index run.
    """
    store, found = place.meaning_store, 0
    rows = find_rows(place.config.home, format_now(place))
    if rows is None:
        return 0
    state = IndexState(place.database)
    with contextlib.suppress(IndexCorrupted), _written(place, rows):
        if store is None:
            return 0
        for link_id in rows.link_ids().values():
            of_vault = None if paths is None else [path for of, path in paths if of == link_id]
            found += refresh_meaning_vectors(
                rows,
                place.chunks,
                link_id,
                store,
                paths=of_vault,
                indexed=partial(state.hashes, link_id),
                stop=stop,
            )
    return found


def forget_vault(place: RelationsPlace, link_id: str) -> int:
    """Take all notes of a vault out of the indexes of related notes; how many there were.

    Damage is left to the next index run.
    """
    rows = find_rows(place.config.home, format_now(place))
    if rows is None:
        return 0
    with contextlib.suppress(IndexCorrupted), _written(place, rows):
        return forget_notes(rows, link_id, place.config.settings.relations.ngram_size)
    return 0


@contextlib.contextmanager
def _written(place: RelationsPlace, rows: Rows) -> Iterator[Rows]:
    """The indexes while they are written; damaged ones are thrown away, to be made again."""
    try:
        yield rows
    except IndexCorrupted:
        rows.close()
        discard(place.config.home)
        raise
    finally:
        rows.close()
