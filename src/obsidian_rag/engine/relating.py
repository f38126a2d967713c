"""Related notes as an engine offers them: indexes kept with the vault, loaded once, followed."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.engine.engine import Engine, index_version
from obsidian_rag.errors import (
    EmbeddingMismatch,
    IndexCorrupted,
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
    Updated,
    discard,
    evaluate_links,
    explain,
    find_rows,
    format_of,
    note_source,
    open_rows,
    refresh_vectors,
    related,
    text_source,
    update,
    weights_of,
)
from obsidian_rag.store import FoundRow, Links, passages_of, writer_lock

_loading = threading.Lock()


@dataclass(frozen=True, slots=True)
class RelatedNote:
    """A related note, why it is one, and the passages in which the two notes meet."""

    found: Explained
    source_passage: FoundRow | None
    passage: FoundRow | None


@dataclass(frozen=True, slots=True)
class RelatedAnswer:
    """What belongs to a note or a text."""

    source: str | None
    notes: list[RelatedNote]
    hidden: int
    compared: int
    is_private: bool = False


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

    link = Links(engine.database).primary()
    with _written(engine) as rows:
        mark = _mark(engine, index_version(engine))
        if rows.mark == mark or link is None:
            return
        is_known = rows.count > 0 and rows.mark == _mark(engine, before)
        _update(engine, rows, paths if is_known else None, listener, stop)
        refresh_vectors(rows, engine.chunks, link.link_id, stop)
        if not stop():
            rows.mark = mark


def update_relations(engine: Engine, paths: Sequence[str]) -> Updated | None:
    """Take up a few changed notes at once; None if nothing is related yet."""
    with _written(engine) as rows:
        return _update(engine, rows, paths) if rows.count else None


@contextlib.contextmanager
def _written(engine: Engine) -> Iterator[Rows]:
    """The indexes, to be written; damaged ones are thrown away, for the next run to make."""

    rows = open_rows(engine.config.home, format_of(engine.config.settings.relations))
    try:
        yield rows
    except IndexCorrupted:
        rows.close()
        discard(engine.config.home)
        raise
    finally:
        rows.close()


def _update(
    engine: Engine,
    rows: Rows,
    paths: Sequence[str] | None,
    listener: Callable[[int, int], None] = lambda _done, _total: None,
    stop: Callable[[], bool] = lambda: False,
) -> Updated:

    return update(rows, ground_of(engine), paths, listener=listener, stop=stop)


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

    settings = engine.config.settings.relations
    with _loading:
        if engine.relations is not None and engine.relations.is_current():
            try:
                engine.relations.follow()
                return engine.relations
            except IndexCorrupted:
                discard(engine.config.home)
        engine.let_go_of_relations()
        for _ in range(2):
            rows = find_rows(engine.config.home, format_of(settings))
            if rows is None:
                _make(engine)
                continue
            use_links = settings.use_links and settings.profile == "default"
            try:
                engine.relations = Loaded(rows, use_links=use_links)
                return engine.relations
            except IndexCorrupted:
                rows.close()
                discard(engine.config.home)
    raise _not_yet()


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

    loaded = loaded_relations(engine)
    settings = engine.config.settings.relations
    with loaded.lock:
        if note is not None:
            slot = loaded.by_path.get(note)
            if slot is None:
                raise NotFound(
                    f"'{note}' is not among the notes that are related.",
                    "Run `obsidian-rag sync`; notes in relations.excluded_folders stay out.",
                )
            source = note_source(loaded, slot, tags)
        else:
            vector = _meaning(engine, text)
            source = text_source(loaded, text, tags, vector)
            if not len(source.sequence) and not source.tags:
                raise InvalidArgument(
                    "None of these words stands in a note.", "Use other words, or name a note."
                )
        found = related(loaded, source, settings, limit=limit, hide_linked=hide_linked)
        explained = explain(loaded, source, found, weights_of(settings))
        outgoing = loaded.graph.outgoing.get(source.slot, ()) if source.slot is not None else ()
        is_hiding = settings.hide_linked if hide_linked is None else hide_linked
        hidden = len(outgoing) if is_hiding and settings.profile == "default" else 0
    passages = _passages(engine, note, explained) if with_passages else {}
    return RelatedAnswer(
        note,
        [
            RelatedNote(
                one,
                _around(passages.get(note or "", ()), one.source_line),
                _around(passages.get(one.card.path, ()), one.line),
            )
            for one in explained
        ],
        hidden,
        loaded.count,
        is_private=source.slot is not None and loaded.cards[source.slot].is_private,
    )


def similar_titles(engine: Engine, text: str, limit: int) -> list[tuple[str, str, float]]:
    """Notes whose title or summary is written like a text: path, title and likeness."""
    loaded = loaded_relations(engine)
    size = engine.config.settings.relations.ngram_size
    with loaded.lock:
        found = loaded.rows.alike(text, size, limit)
        slots = [(loaded.slot_of.get(number), share) for number, share in found]
        cards = [(loaded.cards[slot], share) for slot, share in slots if slot is not None]
    return [(card.path, card.title, share) for card, share in cards]


def relation_troubles(engine: Engine) -> dict[str, list[dict[str, object]]]:
    """What is odd in the `related:` fields: entries that lead nowhere, and circles."""
    loaded = loaded_relations(engine)
    with loaded.lock:
        graph, cards = loaded.graph, loaded.cards
        return {
            "dangling": [
                {"note": cards[slot].path, "target": target} for slot, target in graph.dangling()
            ],
            "cycles": [{"notes": [cards[slot].path for slot in way]} for way in graph.cycles()],
        }


def links_found(engine: Engine, limit: int, listener: Callable[[int, int], None]) -> LinksFound:
    """How often the target of an author's own link is suggested once the link is gone."""

    loaded = loaded_relations(engine)
    with loaded.lock:
        return evaluate_links(loaded, ground_of(engine), limit=limit, listener=listener)


def relations_state(engine: Engine) -> dict[str, object] | None:
    """How many notes are related, and since when; None if none are."""

    rows = find_rows(engine.config.home, format_of(engine.config.settings.relations))
    if rows is None:
        return None
    try:
        return {"notes": rows.count, "updated_at": rows.updated_at}
    except IndexCorrupted:
        return None
    finally:
        rows.close()


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
