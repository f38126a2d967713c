"""Related notes as an engine offers them: indexes kept with the vault, loaded once, followed."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.engine.engine import Engine, index_version
from obsidian_rag.errors import (
    EmbeddingMismatch,
    IndexCorrupted,
    IndexerFailed,
    IndexNotFound,
    InvalidArgument,
    NotFound,
    OllamaUnreachable,
    ProviderFailed,
)
from obsidian_rag.index import Mode
from obsidian_rag.relations import (
    Explained,
    Ground,
    LinksFound,
    Loaded,
    Rows,
    Source,
    Updated,
    discard,
    evaluate_links,
    explain,
    find_rows,
    format_of,
    is_hiding,
    note_source,
    open_rows,
    refresh_vectors,
    related,
    text_source,
    update,
    weights_of,
)
from obsidian_rag.store import FoundRow, IndexState, Links, passages_of, writer_lock

_loading = threading.Lock()
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class RelatedNote:
    """A related note, why it is one, and the passages in which the two notes meet.

    `text` is all that is known of the note's text, for whoever judges what may be told of it.
    """

    found: Explained
    source_passage: FoundRow | None
    passage: FoundRow | None
    text: tuple[FoundRow, ...] = ()


@dataclass(frozen=True, slots=True)
class RelatedAnswer:
    """What belongs to a note or a text."""

    source: str | None
    notes: list[RelatedNote]
    hidden: int
    compared: int
    is_private: bool = False
    text: tuple[FoundRow, ...] = ()


def relate(
    engine: Engine,
    before: str,
    paths: Sequence[str] | None = None,
    *,
    listener: Callable[[int, int], None] = lambda _done, _total: None,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """After an index run: make the indexes of related notes agree with the vault too.

    `before` is the index's version before the run; nothing is looked at when nothing changed.
    """
    try:
        _relate(engine, before, paths, listener, stop)
    except IndexCorrupted:
        # What was damaged is thrown away; what is whole now is made from the vault.
        _relate(engine, before, None, listener, stop)


def _relate(
    engine: Engine,
    before: str,
    paths: Sequence[str] | None,
    listener: Callable[[int, int], None],
    stop: Callable[[], bool],
) -> None:
    link = Links(engine.database).primary()
    with _written(engine, open_rows(engine.config.home, _format(engine))) as rows:
        mark = _mark(engine, index_version(engine))
        if rows.mark == mark or link is None:
            return
        ground = ground_of(engine)
        done = Updated()
        if paths is not None and rows.count and rows.mark == _mark(engine, before):
            done = update(rows, ground, paths, listener=listener, stop=stop)
        if not done.is_complete:
            may_be_empty = IndexState(engine.database).totals()[0] == 0
            done = update(rows, ground, may_be_empty=may_be_empty, listener=listener, stop=stop)
        refresh_vectors(rows, engine.chunks, link.link_id, stop)
        if done.is_complete and not stop():
            rows.mark = mark


def update_relations(engine: Engine, paths: Sequence[str]) -> Updated | None:
    """Take up a few changed notes at once; None if nothing is related yet."""
    rows = find_rows(engine.config.home, _format(engine))
    if rows is None:
        return None
    with contextlib.suppress(IndexCorrupted), _written(engine, rows):
        return update(rows, ground_of(engine), paths) if rows.count else None
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


def _format(engine: Engine) -> str:
    return format_of(engine.config.settings.relations)


def _mark(engine: Engine, version: str) -> str:
    return f"{version} {engine.config.settings.relations.excluded_folders}"


def ground_of(engine: Engine) -> Ground:
    """The vault whose notes are related, and how."""
    return Ground(engine.config.vault_root, engine.rules, engine.config.settings.relations)


def loaded_relations(engine: Engine) -> Loaded:
    """The indexes, loaded and up to date with what has been written.

    Raises:
        IndexNotFound: there are none yet; a living process is asked to make them.
    """
    with _loading:
        if engine.relations is not None and engine.relations.is_current():
            try:
                engine.relations.follow()
                return engine.relations
            except IndexCorrupted:
                discard(engine.config.home)
        engine.let_go_of_relations()
        engine.relations = _opened(engine)
        if engine.relations is None:
            _make(engine)
            engine.relations = _opened(engine)
        if engine.relations is None:
            raise _not_yet()
        return engine.relations


def _opened(engine: Engine) -> Loaded | None:
    """All notes at hand; None if the indexes are missing, damaged or not begun."""
    settings = engine.config.settings.relations
    rows = find_rows(engine.config.home, _format(engine))
    if rows is None:
        return None
    try:
        if rows.mark is not None or rows.count:
            return Loaded(rows, use_links=settings.use_links and settings.profile != "seed")
    except IndexCorrupted:
        discard(engine.config.home)
    rows.close()
    return None


def _make(engine: Engine) -> None:
    """Make the indexes, or have them made by the process whose task it is."""
    if engine.live is not None:
        engine.live.jobs.request(Mode.SYNC)
        raise _not_yet()
    with writer_lock(engine.config.home, "relations"):
        relate(engine, "")


def _not_yet() -> IndexNotFound:
    return IndexNotFound(
        "Related notes are not indexed yet.", "Run `obsidian-rag sync`, or try again in a moment."
    )


def _told(engine: Engine, question: Callable[[Loaded], _Answer]) -> _Answer:
    """Ask the indexes; ones that turn out to be damaged are made again, once."""
    loaded = loaded_relations(engine)
    try:
        with loaded.lock:
            return question(loaded)
    except IndexCorrupted:
        discard(engine.config.home)
    loaded = loaded_relations(engine)
    with loaded.lock:
        return question(loaded)


def related_notes(
    engine: Engine,
    *,
    note: str | None = None,
    text: str = "",
    tags: Sequence[str] = (),
    limit: int | None = None,
    hide_linked: bool | None = None,
    with_passages: bool = True,
) -> RelatedAnswer:
    """What belongs to the note at this path, or to a text.

    Raises:
        NotFound: the note is not one of those that are related.
        IndexNotFound: nothing is indexed yet.
    """
    settings = engine.config.settings.relations
    vector = _meaning(engine, text) if note is None else None

    def ask(loaded: Loaded) -> tuple[list[Explained], int, int, bool]:
        source = _source(loaded, note, text, tags, vector)
        found = related(loaded, source, settings, limit=limit, hide_linked=hide_linked)
        explained = explain(loaded, source, found, weights_of(settings))
        if source.slot is None:
            return explained, 0, loaded.count, False
        linked = loaded.graph.outgoing.get(source.slot, ())
        hidden = len(linked) if is_hiding(settings, hide_linked) else 0
        return explained, hidden, loaded.count, loaded.cards[source.slot].is_private

    explained, hidden, compared, is_private = _told(engine, ask)
    passages = _passages(engine, note, explained) if with_passages else {}
    own = tuple(passages.get(note or "", ()))
    notes = []
    for one in explained:
        rows = tuple(passages.get(one.card.path, ()))
        notes.append(RelatedNote(one, _around(own, one.source_line), _around(rows, one.line), rows))
    return RelatedAnswer(note, notes, hidden, compared, is_private, own)


def _source(
    loaded: Loaded,
    note: str | None,
    text: str,
    tags: Sequence[str],
    vector: NDArray[np.float32] | None,
) -> Source:
    if note is not None:
        slot = loaded.by_path.get(note)
        if slot is None:
            raise NotFound(
                f"'{note}' is not among the notes that are related.",
                "Run `obsidian-rag sync`; notes in relations.excluded_folders stay out.",
            )
        return note_source(loaded, slot, tags)
    source = text_source(loaded, text, tags, vector)
    if not len(source.sequence) and not source.tags:
        raise InvalidArgument(
            "None of these words stands in a note.", "Use other words, or name a note."
        )
    return source


def similar_titles(engine: Engine, text: str, limit: int) -> list[tuple[str, str, float]]:
    """Notes whose title or summary is written like a text: path, title and likeness."""
    size = engine.config.settings.relations.ngram_size

    def ask(loaded: Loaded) -> list[tuple[str, str, float]]:
        found = loaded.rows.alike(text, size, limit)
        slots = [(loaded.slot_of.get(number), share) for number, share in found]
        cards = [(loaded.cards[slot], share) for slot, share in slots if slot is not None]
        return [(card.path, card.title, share) for card, share in cards]

    return _told(engine, ask)


def relation_troubles(engine: Engine) -> dict[str, list[dict[str, object]]]:
    """What is odd in the `related:` fields: entries that lead nowhere, and circles."""

    def ask(loaded: Loaded) -> dict[str, list[dict[str, object]]]:
        graph, cards = loaded.graph, loaded.cards
        return {
            "dangling": [
                {"note": cards[slot].path, "target": target} for slot, target in graph.dangling()
            ],
            "cycles": [{"notes": [cards[slot].path for slot in way]} for way in graph.cycles()],
        }

    return _told(engine, ask)


def links_found(engine: Engine, limit: int, listener: Callable[[int, int], None]) -> LinksFound:
    """How often the target of an author's own link is suggested once the link is gone."""
    ground = ground_of(engine)
    return _told(
        engine, lambda loaded: evaluate_links(loaded, ground, limit=limit, listener=listener)
    )


def relations_state(engine: Engine) -> dict[str, object] | None:
    """How many notes are related, and since when; None if none are, or a full disk hides it."""
    with contextlib.suppress(IndexCorrupted, IndexerFailed):
        rows = find_rows(engine.config.home, _format(engine))
        if rows is not None:
            with contextlib.closing(rows):
                return {"notes": rows.count, "updated_at": rows.updated_at}
    return None


def _meaning(engine: Engine, text: str) -> NDArray[np.float32] | None:
    """The vector of a text; without the embedder, words have to do."""
    if engine.config.settings.relations.profile == "seed":
        return None
    with contextlib.suppress(OllamaUnreachable, ProviderFailed, EmbeddingMismatch):
        return engine.query_vector(text)
    return None


def _passages(
    engine: Engine, note: str | None, explained: Sequence[Explained]
) -> dict[str, list[FoundRow]]:
    paths = [one.card.path for one in explained if one.line is not None]
    if note is not None and paths:
        paths.append(note)
    link = Links(engine.database).primary()
    if link is None or not paths or not engine.chunks.exists():
        return {}
    return passages_of(engine.chunks, link.link_id, paths)


def _around(passages: Sequence[FoundRow], line: int | None) -> FoundRow | None:
    if line is None:
        return None
    return next((one for one in passages if one.start_line <= line <= one.end_line), None)
