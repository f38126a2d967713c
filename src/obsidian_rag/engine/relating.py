"""Related notes as an engine offers them: indexes kept with the vault, loaded once, followed."""

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.relation_index import format_now, ground_of, make_relations
from obsidian_rag.errors import (
    EmbeddingMismatch,
    IndexCorrupted,
    IndexerFailed,
    IndexNotFound,
    InvalidArgument,
    NoteChanged,
    NotFound,
    OllamaUnreachable,
    ProviderFailed,
    SecurityViolation,
)
from obsidian_rag.index import Mode
from obsidian_rag.notes import parse_note
from obsidian_rag.relations import (
    Explained,
    Kind,
    LinksFound,
    Loaded,
    Source,
    VectorsInUse,
    discard,
    evaluate_links,
    explain,
    find_rows,
    is_hiding,
    kind_of,
    note_source,
    related,
    text_source,
    weights_of,
    words_in,
)
from obsidian_rag.store import (
    FoundRow,
    Links,
    Properties,
    passages_of,
    writer_lock,
)
from obsidian_rag.vault import NoteFile, read_note

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
    properties: str = ""


@dataclass(frozen=True, slots=True)
class RelatedAnswer:
    """What belongs to a note or a text."""

    source: str | None
    notes: list[RelatedNote]
    hidden: int
    compared: int
    # By which vectors this one was compared, and which ones there are.
    kind: Kind = Kind.STATIC
    in_use: VectorsInUse = VectorsInUse()
    is_private: bool = False
    text: tuple[FoundRow, ...] = ()
    properties: str = ""


def loaded_relations(engine: Engine, damage: IndexCorrupted | None = None) -> Loaded:
    """The indexes, loaded and up to date with what has been written.

    Raises:
        IndexNotFound: there are none yet; a living process is asked to make them.
        IndexCorrupted: they are damaged, as `damage` said; they are being made again.
    """
    with _loading:
        settings = engine.config.settings.relations, _model(engine)
        is_ours = engine.relations_settings == settings
        if engine.relations is not None and is_ours and engine.relations.is_current():
            try:
                engine.relations.follow()
                return engine.relations
            except IndexCorrupted as error:
                damage = error
                discard(engine.config.home)
        engine.let_go_of_relations()
        engine.relations_settings = settings
        try:
            engine.relations = _opened(engine)
        except IndexCorrupted as error:
            damage = error
            discard(engine.config.home)
        if engine.relations is None:
            _make(engine, damage)
            engine.relations = _opened(engine)
        if engine.relations is None:
            raise _not_yet()
        return engine.relations


def _model(engine: Engine) -> str | None:
    """The transformer whose vectors are compared, once there are enough."""
    store = engine.meaning_store
    return store.fingerprint if store is not None else None


def _opened(engine: Engine) -> Loaded | None:
    """All notes at hand; None if the indexes are missing or not begun.

    Raises:
        IndexCorrupted: they are damaged.
    """
    settings = engine.config.settings.relations
    rows = find_rows(engine.config.home, format_now(engine), is_strict=True)
    if rows is None:
        return None
    try:
        if rows.mark is not None or rows.count:
            use_links = settings.use_links and settings.profile != "seed"
            return Loaded(rows, use_links=use_links, meanings_of=_model(engine))
    except IndexCorrupted:
        rows.close()
        raise
    rows.close()
    return None


def _make(engine: Engine, damage: IndexCorrupted | None) -> None:
    """Make the indexes, or have them made by the process whose task it is."""
    if engine.live is not None:
        engine.live.jobs.request(Mode.SYNC)
        if damage is not None:
            raise IndexCorrupted(
                "The index of related notes was damaged and is being built anew.",
                "Try again in a moment.",
            ) from damage
        raise _not_yet()
    with writer_lock(engine.config.home, "relations"):
        make_relations(engine)


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
    except IndexCorrupted as error:
        discard(engine.config.home)
        damage = error
    loaded = loaded_relations(engine, damage)
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
    with_private: bool = True,
) -> RelatedAnswer:
    """What belongs to the note at this path, or to a text; private notes count if asked for.

    Raises:
        NotFound: the note is not one of those that are related.
        IndexNotFound: nothing is indexed yet.
    """
    settings = engine.config.settings.relations
    vector = _meaning(engine, text) if note is None else None

    def ask(loaded: Loaded) -> tuple[list[Explained], RelatedAnswer]:
        loaded = loaded if with_private else loaded.without_private()
        source = _source(engine, loaded, note, text, tags, vector)
        found = related(loaded, source, settings, limit=limit, hide_linked=hide_linked)
        kind = kind_of(loaded, source)
        explained = explain(loaded, source, found, weights_of(settings, kind))
        answer = RelatedAnswer(note, [], 0, loaded.count, kind, loaded.vectors_in_use)
        if source.slot is None:
            return explained, answer
        linked = loaded.graph.outgoing.get(source.slot, ())
        hidden = len(linked) if is_hiding(settings, hide_linked) else 0
        is_private = loaded.cards[source.slot].is_private
        return explained, replace(answer, hidden=hidden, is_private=is_private)

    explained, answer = _told(engine, ask)
    # Folders may have been denied since; the next sync takes their notes out of the index.
    explained = [one for one in explained if engine.rules.admits_file(one.card.path)]
    passages = _passages(engine, note, explained) if with_passages else {}
    own, own_properties = passages.get(note or "", ((), ""))
    notes = []
    for one in explained:
        rows, properties = passages.get(one.card.path, ((), ""))
        meeting = _around(own, one.source_line), _around(rows, one.line)
        notes.append(RelatedNote(one, *meeting, rows, properties))
    return replace(answer, notes=notes, text=own, properties=own_properties)


def _source(
    engine: Engine,
    loaded: Loaded,
    note: str | None,
    text: str,
    tags: Sequence[str],
    vector: tuple[NDArray[np.float32], Kind] | None,
) -> Source:
    if note is not None:
        slot = loaded.by_path.get(note)
        if slot is None:
            raise NotFound(
                f"'{note}' is not in the index of related notes.",
                "Run `obsidian-rag sync`; notes in relations.excluded_folders stay out.",
            )
        return note_source(loaded, slot, tags, _words(engine, note))
    made, kind = vector or (None, Kind.STATIC)
    source = text_source(loaded, text, tags, made, vector_kind=kind)
    if not len(source.sequence) and not source.tags:
        raise InvalidArgument("No note has any of these words.", "Use other words, or name a note.")
    return source


def _words(engine: Engine, path: str) -> dict[str, str]:
    """How a note says what it says, from its file; a file that is away tells nothing."""
    ground = ground_of(engine)
    with contextlib.suppress(NoteChanged, SecurityViolation):
        file = read_note(ground.root, path, ground.rules.max_file_bytes)
        return words_in(parse_note(path, file.text)) if isinstance(file, NoteFile) else {}
    return {}


def similar_titles(engine: Engine, text: str, limit: int) -> list[tuple[str, str, float]]:
    """Notes whose title or summary is written like a text: path, title and likeness."""
    size = engine.config.settings.relations.ngram_size

    def ask(loaded: Loaded) -> list[tuple[str, str, float]]:
        found = loaded.rows.alike(text, size, limit)
        slots = [(loaded.slot_of.get(number), share) for number, share in found]
        cards = [(loaded.cards[slot], share) for slot, share in slots if slot is not None]
        admits = engine.rules.admits_file
        return [(card.path, card.title, share) for card, share in cards if admits(card.path)]

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


def links_found(
    engine: Engine,
    limit: int,
    listener: Callable[[int, int], None],
    *,
    is_static: bool = False,
) -> LinksFound:
    """How often the target of an author's own link is suggested once the link is gone.

    `is_static` leaves meaning vectors out, so that both kinds are measured on one index.
    """
    ground = ground_of(engine)

    def ask(loaded: Loaded) -> LinksFound:
        chosen = loaded.by_static_vectors() if is_static else loaded
        return evaluate_links(chosen, ground, limit=limit, listener=listener)

    return _told(engine, ask)


def relations_state(engine: Engine) -> dict[str, object] | None:
    """How many notes are related, and since when; None if none are, or a full disk hides it."""
    with contextlib.suppress(IndexCorrupted, IndexerFailed):
        rows = find_rows(engine.config.home, format_now(engine))
        if rows is not None:
            with contextlib.closing(rows):
                state: dict[str, object] = {"notes": rows.count, "updated_at": rows.updated_at}
                if (model := _model(engine)) is not None:
                    used = VectorsInUse.of(rows, model)
                    state |= {"vectors": used.kind.word, "with_meaning": used.meant}
                return state
    return None


def _meaning(engine: Engine, text: str) -> tuple[NDArray[np.float32], Kind] | None:
    """The vector of a text, of the kind that notes are compared by; without one, words have to do.

    A transformer that cannot be used leaves it to static vectors.
    """
    if engine.config.settings.relations.profile == "seed":
        return None
    if loaded_relations(engine).vectors_in_use.kind is Kind.MEANING:
        meant = engine.meaning_vector(text)
        if meant is not None:
            return meant, Kind.MEANING
    with contextlib.suppress(OllamaUnreachable, ProviderFailed, EmbeddingMismatch):
        return engine.query_vector(text), Kind.STATIC
    return None


def _passages(
    engine: Engine, note: str | None, explained: Sequence[Explained]
) -> dict[str, tuple[tuple[FoundRow, ...], str]]:
    """The passages and the properties of the notes, as far as they are indexed."""
    paths = [one.card.path for one in explained if one.line is not None]
    if note is not None and paths:
        paths.append(note)
    link = Links(engine.database).primary()
    if link is None or not paths or not engine.chunks.exists():
        return {}
    found = passages_of(engine.chunks, link.link_id, paths, with_words_only=True)
    properties = Properties(engine.database).texts(link.link_id, paths)
    return {path: (tuple(rows), properties[path]) for path, rows in found.items()}


def _around(passages: Sequence[FoundRow], line: int | None) -> FoundRow | None:
    if line is None:
        return None
    return next((one for one in passages if one.start_line <= line <= one.end_line), None)
