"""The indexes of related notes as index runs keep them: with the vault, note by note or anew."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from obsidian_rag.engine.engine import Engine
from obsidian_rag.errors import IndexCorrupted
from obsidian_rag.index import IndexRun, Source, hand_over
from obsidian_rag.relations import (
    Ground,
    Loaded,
    RelatedNotes,
    Rows,
    discard,
    find_rows,
    format_of,
    refresh_meaning_vectors,
)
from obsidian_rag.store import Change, ChangeType, Consumer, IndexState, Links, Queue

_FEW = 50


def related_notes_of(engine: Engine) -> RelatedNotes:
    """The indexes of related notes, to be kept in line with the index by a run."""
    return RelatedNotes(engine.config.home, ground_of(engine))


def make_relations(engine: Engine) -> None:
    """Relate the notes that are indexed, where that was lost; a lock is the caller's business."""
    if Links(engine.database).primary() is not None:
        with contextlib.closing(related_notes_of(engine)) as consumer:
            place = replace(engine.workplace, consumer=consumer)
            IndexRun(place, lambda _: None, lambda: False).catch_up()


def check_relations(engine: Engine, *, is_deep: bool = False) -> tuple[int, str | None]:
    """How many notes are related, and what is wrong with the indexes, if anything."""
    try:
        rows = find_rows(engine.config.home, format_now(engine), is_strict=True)
        if rows is None:
            return 0, None
        with contextlib.closing(rows):
            if (damage := rows.database.check(is_deep=is_deep)) is not None:
                return 0, damage
            loaded = Loaded(rows, use_links=True)
            if is_deep:
                rows.places([card.number for card in loaded.cards])
            return loaded.count, None
    except IndexCorrupted as error:
        return 0, error.message


def refresh_meanings(
    engine: Engine,
    paths: Collection[str] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> int:
    """After meaning vectors were added: take up those of notes that have all of theirs now.

    Tells how many notes got one. Of `paths`, or of all notes, only those that have not got the one
    of their present text are looked at. Damage is left to the next index run.
    """
    store, link = engine.meaning_store, Links(engine.database).primary()
    rows = find_rows(engine.config.home, format_now(engine))
    if rows is None:
        return 0
    state = IndexState(engine.database)
    with contextlib.suppress(IndexCorrupted), _written(engine, rows):
        if store is None or link is None:
            return 0
        return refresh_meaning_vectors(
            rows,
            engine.chunks,
            link.link_id,
            store,
            paths=paths,
            indexed=lambda some: state.hashes(link.link_id, some),
            stop=stop,
        )
    return 0


def update_relations(engine: Engine, paths: Sequence[str]) -> tuple[int, int] | None:
    """Take up a few changed notes at once: how many were written and removed.

    None if nothing is related yet, or if it is the work of an index run.
    """
    link = Links(engine.database).primary()
    with contextlib.closing(related_notes_of(engine)) as notes:
        if link is None or not notes.begin_early():
            return None
        held = notes.contents_below(paths)
        # A folder that vanished may be a disk that is away: that is for an index run to judge.
        if len(held) > _FEW:
            return None
        source = note_source_of(engine, link.link_id, notes)
        looked_at = hand_over(source, engine.rules, notes, held, paths)
        if looked_at is None or notes.is_lost:
            return None
        # What changes meanwhile is read once more by the next run.
        owed = (Change(path, ChangeType.UPDATE) for path in looked_at)
        Queue(engine.database, Consumer.RELATIONS).add(link.link_id, owed)
        return notes.written, notes.removed


def note_source_of(engine: Engine, link_id: str, notes: RelatedNotes) -> Source:
    """The vault, to be read for its related notes alone."""
    limit = engine.rules.max_file_bytes
    return Source(link_id, engine.config.vault_root, limit, engine.limits, notes.make_content)


@contextlib.contextmanager
def _written(engine: Engine, rows: Rows) -> Iterator[Rows]:
    """The indexes while they are written; damaged ones are thrown away, to be made again."""
    try:
        yield rows
    except IndexCorrupted:
        rows.close()
        discard(engine.config.home)
        raise
    finally:
        rows.close()


def format_now(engine: Engine) -> str:
    return format_of(engine.config.settings.relations)


def ground_of(engine: Engine) -> Ground:
    """The vault whose notes are related, and how."""
    return Ground(engine.config.vault_root, engine.rules, engine.config.settings.relations)
