"""The indexes of related notes as index runs keep them: with the vault, note by note or anew."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence

from obsidian_rag.engine.engine import Engine, index_version
from obsidian_rag.errors import IndexCorrupted
from obsidian_rag.index import FINGERPRINT, Mode
from obsidian_rag.relations import (
    Ground,
    Loaded,
    Rows,
    Updated,
    begin_anew,
    discard,
    find_rows,
    format_of,
    open_rows,
    promote,
    refresh_meaning_vectors,
    refresh_vectors,
    update,
)
from obsidian_rag.store import IndexState, Links, now

_FEW = 50
_CHECKED = "checked_at"
# What SQLite checks in a fraction of a second.
_QUICKLY_CHECKED = 64_000_000


def relate(
    engine: Engine,
    before: str,
    paths: Sequence[str] | None = None,
    *,
    mode: Mode = Mode.SYNC,
    listener: Callable[[int, int], None] = lambda _done, _total: None,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """After an index run: make the indexes of related notes agree with the vault too.

    `before` is the index's version before the run; a sync looks at nothing when nothing changed.
    A full run trusts no file's time here either, and a reindex makes everything anew.
    """
    run = _Relating(engine, listener, stop)
    if mode is Mode.REINDEX:
        run.make_anew()
        return
    try:
        run.update(before, paths, is_thorough=mode is Mode.FULL)
    except IndexCorrupted:
        # What was damaged is thrown away; what is whole now is made from the vault.
        run.update(before, None)


class _Relating:
    """What brings the indexes of related notes in line with the index."""

    def __init__(
        self, engine: Engine, listener: Callable[[int, int], None], stop: Callable[[], bool]
    ) -> None:
        self._engine = engine
        self._listener = listener
        self._stop = stop
        self._state = IndexState(engine.database)
        self._link = Links(engine.database).primary()
        self._mark = _mark(engine, index_version(engine))

    def update(
        self, before: str, paths: Sequence[str] | None, *, is_thorough: bool = False
    ) -> None:
        """Take up what has changed."""
        engine = self._engine
        with _written(engine, open_rows(engine.config.home, format_now(engine))) as rows:
            if paths is None:
                _must_be_sound(rows)
            is_current = rows.mark == self._mark and not is_thorough
            if self._link is None or (is_current and not rows.owed.turns() and not rows.stale()):
                return
            if is_thorough:
                rows.doubt(self._state.hashes(self._link.link_id))
            if is_current:
                paths = ()  # only what is owed
            done = Updated()
            if (
                paths is not None
                and rows.count
                and rows.mark in (self._mark, _mark(engine, before))
            ):
                done = self._updated(rows, paths)
            if not done.is_complete:
                done = self._updated(rows, None)
            self._finish(rows, done)

    def make_anew(self) -> None:
        """Make new indexes beside the present ones, which are asked until the new ones are done."""
        if self._link is None:
            return
        home = self._engine.config.home
        with contextlib.closing(begin_anew(home, format_now(self._engine))) as rows:
            done = self._finish(rows, self._updated(rows, None))
        if done:
            promote(home)

    def _updated(self, rows: Rows, paths: Sequence[str] | None) -> Updated:
        may_be_empty = self._state.totals()[0] == 0
        return update(
            rows,
            ground_of(self._engine),
            paths,
            may_be_empty=may_be_empty,
            listener=self._listener,
            stop=self._stop,
        )

    def _finish(self, rows: Rows, done: Updated) -> bool:
        """Add the meanings; whether everything is done now."""
        engine, link = self._engine, self._link
        if link is None:
            return False
        rows.expect_vectors_of(engine.database.get(FINGERPRINT) or "")
        refresh_vectors(
            rows,
            engine.chunks,
            link.link_id,
            indexed=lambda paths: self._state.hashes(link.link_id, paths),
            stop=self._stop,
        )
        if not done.is_complete or self._stop():
            return False
        rows.mark = self._mark
        return True


def _must_be_sound(rows: Rows) -> None:
    """A whole run notices damage, which is then built anew; of a large file not every time.

    Raises:
        IndexCorrupted: the file is damaged.
    """
    database = rows.database
    checked = database.get(_CHECKED) or ""
    if database.path.stat().st_size > _QUICKLY_CHECKED and checked[:10] == now()[:10]:
        return
    if database.check() is not None:
        raise IndexCorrupted(f"{database.path} is damaged.", "Run `obsidian-rag sync`.")
    if checked[:10] != now()[:10]:
        database.put(_CHECKED, now())


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


def update_relations(engine: Engine, paths: Sequence[str]) -> Updated | None:
    """Take up a few changed notes at once; None if nothing is related yet."""
    rows = find_rows(engine.config.home, format_now(engine))
    if rows is None:
        return None
    with contextlib.suppress(IndexCorrupted), _written(engine, rows):
        # A folder that vanished may be a disk that is away: that is for an index run to judge.
        is_little = rows.count and len(rows.seen_at(paths)) <= _FEW
        return update(rows, ground_of(engine), paths, is_early=True) if is_little else None
    return None


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


def _mark(engine: Engine, version: str) -> str:
    return f"{version} {engine.config.settings.relations.excluded_folders}"


def ground_of(engine: Engine) -> Ground:
    """The vault whose notes are related, and how."""
    return Ground(engine.config.vault_root, engine.rules, engine.config.settings.relations)
