"""Queries on the indexes of related notes, which are loaded once and then kept up to date."""

import contextlib
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.config import RelationsSettings
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
from obsidian_rag.notes import EVERYTHING, Scope, parse_note
from obsidian_rag.relations.explain import Explained, explain
from obsidian_rag.relations.heldout import LinksFound, evaluate_links
from obsidian_rag.relations.memory_index import Card, MemoryIndex
from obsidian_rag.relations.packed import VectorKind
from obsidian_rag.relations.rows import discard, find_rows, format_of
from obsidian_rag.relations.score import is_hiding, related, weights_of
from obsidian_rag.relations.signals import Source, kind_of, note_source, text_source, words_in
from obsidian_rag.relations.vectors import VectorsInUse
from obsidian_rag.store import (
    ChunkStore,
    FollowedDatabase,
    FoundRow,
    Links,
    MeaningStore,
    Properties,
    passages_of,
)
from obsidian_rag.vault import NoteFile, Vault

_loading = threading.Lock()
_AnswerT = TypeVar("_AnswerT")
# Link id and path of a note.
NoteKey = tuple[str, str]


class KeptIndex:
    """The indexes in memory, with the settings and the transformer they were loaded for."""

    def __init__(self) -> None:
        self.index: MemoryIndex | None = None
        self.loaded_for: tuple[RelationsSettings, str | None] | None = None

    def close(self) -> None:
        """Close the indexes; they are loaded again when needed."""
        if (index := self.index) is not None:
            with index.lock:  # running queries finish first
                index.rows.close()
            self.index = None


@dataclass(frozen=True, slots=True)
class RelationParts:
    """The parts of an installation that related notes depend on.

    The first of `vaults` is the primary one. `rebuild` builds lost indexes; false if another
    process was asked to.
    """

    home: Path
    settings: RelationsSettings
    vaults: tuple[Vault, ...]
    file: FollowedDatabase
    chunks: ChunkStore
    meaning_store: MeaningStore | None
    query_vector: Callable[[str], NDArray[np.float32]]
    meaning_vector: Callable[[str], NDArray[np.float32] | None]
    kept: KeptIndex
    rebuild: Callable[[], bool]

    @property
    def model(self) -> str | None:
        """The transformer whose vectors are compared once there are enough."""
        return self.meaning_store.fingerprint if self.meaning_store is not None else None

    def admits(self, card: Card) -> bool:
        """Whether the current rules of its vault admit this note."""
        vault = self.vault(card.link_id)
        return vault is not None and vault.rules.admits_file(card.path)

    def vault(self, link_id: str) -> Vault | None:
        """The vault with this link id."""
        return next((vault for vault in self.vaults if vault.link_id == link_id), None)


@dataclass(frozen=True, slots=True)
class RelatedNote:
    """A related note, the reasons, and the passages where the two notes meet.

    `text` is all indexed text of the note, for the privacy check.
    """

    found: Explained
    source_passage: FoundRow | None
    passage: FoundRow | None
    text: tuple[FoundRow, ...] = ()
    properties: str = ""


@dataclass(frozen=True, slots=True)
class LinkedNotes:
    """The paths that link targets resolve to, and the notes that link here."""

    targets: dict[str, str]
    backlinks: tuple[Card, ...]


@dataclass(frozen=True, slots=True)
class RelatedAnswer:
    """The notes related to a note or a text."""

    source: str | None
    link_id: str | None
    notes: list[RelatedNote]
    hidden: int
    compared: int
    # The kind of vectors used for this comparison, and how many of each kind exist.
    kind: VectorKind = VectorKind.STATIC
    in_use: VectorsInUse = VectorsInUse()
    is_private: bool = False
    text: tuple[FoundRow, ...] = ()
    properties: str = ""


def memory_index(parts: RelationParts, damage: IndexCorrupted | None = None) -> MemoryIndex:
    """The indexes, loaded and up to date with the file.

    Raises:
        IndexNotFound: there are none yet; the daemon, if any, was asked to build them.
        IndexCorrupted: they are damaged, as in `damage`, and are being rebuilt; or state.db is
            damaged.
    """
    if not parts.vaults[0].link_id:  # without its link, the vault of these notes is unknown
        if parts.file.path.exists():
            Links(parts.file.now).all()  # a damaged database hides the link too; this raises
        raise _not_yet()
    with _loading:
        kept, wanted = parts.kept, (parts.settings, parts.model)
        if kept.index is not None and kept.loaded_for == wanted and kept.index.is_current():
            try:
                kept.index.follow()
                return kept.index
            except IndexCorrupted as error:
                damage = error
                discard(parts.home)
        kept.close()
        kept.loaded_for = wanted
        try:
            kept.index = _load_index(parts)
        except IndexCorrupted as error:
            damage = error
            discard(parts.home)
        if kept.index is None:
            _build_index(parts, damage)
            kept.index = _load_index(parts)
        if kept.index is None:
            raise _not_yet()
        return kept.index


def _load_index(parts: RelationParts) -> MemoryIndex | None:
    """Load all notes; None if the indexes are missing or empty."""
    settings = parts.settings
    rows = find_rows(parts.home, format_of(settings), is_strict=True)
    if rows is None:
        return None
    try:
        if rows.mark is not None or rows.count:
            use_links = settings.use_links and settings.profile != "seed"
            return MemoryIndex(rows, use_links=use_links, meanings_of=parts.model)
    except IndexCorrupted:
        rows.close()
        raise
    rows.close()
    return None


def _build_index(parts: RelationParts, damage: IndexCorrupted | None) -> None:
    """Build the indexes, or leave it to the daemon and raise."""
    if parts.rebuild():
        return
    if damage is not None:
        raise IndexCorrupted(
            "The index of related notes was damaged and is being rebuilt.",
            "Try again in a moment.",
        ) from damage
    raise _not_yet()


def _not_yet() -> IndexNotFound:
    return IndexNotFound(
        "Related notes are not indexed yet.", "Run `obsidian-rag sync`, or try again in a moment."
    )


def _ask_indexes(parts: RelationParts, question: Callable[[MemoryIndex], _AnswerT]) -> _AnswerT:
    """Query the indexes; if they turn out to be damaged, rebuild them once."""
    loaded = memory_index(parts)
    try:
        with loaded.lock:
            return question(loaded)
    except IndexCorrupted as error:
        discard(parts.home)
        damage = error
    loaded = memory_index(parts, damage)
    with loaded.lock:
        return question(loaded)


def related_notes(
    parts: RelationParts,
    *,
    note: str | None = None,
    vault: str | None = None,
    vaults: Collection[str] | None = None,
    text: str = "",
    tags: Sequence[str] = (),
    limit: int | None = None,
    hide_linked: bool | None = None,
    with_passages: bool = True,
    with_private: bool = True,
    scope: Scope = EVERYTHING,
    without: frozenset[NoteKey] = frozenset(),
) -> RelatedAnswer:
    """The notes in scope related to the note at this path, or to a text.

    Private notes are included on request; those in `without` are treated as absent.

    `vault` is the link id of the note's vault, by default the primary one; with `vaults`, only
    notes of vaults with these link ids are returned.

    Raises:
        NotFound: the note is not in the index of related notes.
        IndexNotFound: nothing is indexed yet.
    """
    settings = parts.settings
    vector = _text_vector(parts, text) if note is None else None
    key = (vault or parts.vaults[0].link_id, note) if note is not None else None

    def ask(loaded: MemoryIndex) -> tuple[list[Explained], RelatedAnswer]:
        loaded = loaded.part(scope, with_private=with_private, without=without)
        source = _source(parts, loaded, key, text, tags, vector)
        found = related(
            loaded, source, settings, limit=limit, hide_linked=hide_linked, vaults=vaults
        )
        kind = kind_of(loaded, source)
        explained = explain(loaded, source, found, weights_of(settings, kind))
        answer = RelatedAnswer(
            note, key[0] if key else None, [], 0, loaded.count, kind, loaded.vectors_in_use
        )
        if source.slot is None:
            return explained, answer
        linked = loaded.graph.outgoing.get(source.slot, ())
        hidden = len(linked) if is_hiding(settings, hide_linked) else 0
        is_private = loaded.cards[source.slot].is_private
        return explained, replace(answer, hidden=hidden, is_private=is_private)

    explained, answer = _ask_indexes(parts, ask)
    # Folders may have been denied since; the next sync removes their notes from the index.
    explained = [one for one in explained if parts.admits(one.card)]
    passages = _passages(parts, key, explained) if with_passages else {}
    own, own_properties = passages.get(key or ("", ""), ((), ""))
    notes = []
    for one in explained:
        rows, properties = passages.get(one.card.key, ((), ""))
        meeting = _passage_at(own, one.source_line), _passage_at(rows, one.line)
        notes.append(RelatedNote(one, *meeting, rows, properties))
    return replace(answer, notes=notes, text=own, properties=own_properties)


def linked_notes(
    parts: RelationParts, note: tuple[str, str], targets: Iterable[str]
) -> LinkedNotes:
    """Resolve the links of a note (link id and path) as Obsidian does, and find its backlinks.

    Raises:
        IndexNotFound: nothing is indexed yet.
    """
    loaded = memory_index(parts)
    with loaded.lock:
        own = loaded.by_path.get(note)
        asked = targets if own is not None else ()
        meant = {target: loaded.graph.find(target, own or 0) for target in asked}
        found = {
            target: loaded.cards[slot].path for target, slot in meant.items() if slot is not None
        }
        back = [
            loaded.cards[slot]
            for slot, ahead in loaded.graph.outgoing.items()
            if own is not None and own in ahead and slot != own
        ]
    admitted = filter(parts.admits, back)
    return LinkedNotes(found, tuple(sorted(admitted, key=lambda card: card.title.casefold())))


def known_notes(parts: RelationParts) -> list[Card]:
    """The cards of all notes.

    Raises:
        IndexNotFound: nothing is indexed yet.
    """
    loaded = memory_index(parts)
    with loaded.lock:
        present = [loaded.cards[slot] for slot in loaded.slot_of.values()]
    return [card for card in present if parts.admits(card)]


def _source(
    parts: RelationParts,
    loaded: MemoryIndex,
    note: NoteKey | None,
    text: str,
    tags: Sequence[str],
    vector: tuple[NDArray[np.float32], VectorKind] | None,
) -> Source:
    if note is not None:
        slot = loaded.by_path.get(note)
        if slot is None:
            raise NotFound(
                f"'{note[1]}' is not in the index of related notes.",
                "Run `obsidian-rag sync`; notes in relations.excluded_folders stay out.",
            )
        return note_source(loaded, slot, tags, _words(parts.vault(note[0]), note[1]))
    made, kind = vector or (None, VectorKind.STATIC)
    source = text_source(loaded, text, tags, made, vector_kind=kind)
    if not len(source.sequence) and not source.tags:
        raise InvalidArgument("No note has any of these words.", "Use other words, or name a note.")
    return source


def _words(vault: Vault | None, path: str) -> dict[str, str]:
    """For each term the note's own word, read from its file; empty if the file is missing."""
    with contextlib.suppress(NoteChanged, SecurityViolation):
        file = vault.read(path) if vault is not None else None
        return words_in(parse_note(path, file.text)) if isinstance(file, NoteFile) else {}
    return {}


def similar_titles(parts: RelationParts, text: str, limit: int) -> list[tuple[str, str, float]]:
    """Notes of the primary vault whose title or summary is spelled like a text.

    Each as path, title and similarity.
    """
    link_id, size = parts.vaults[0].link_id, parts.settings.ngram_size

    def ask(loaded: MemoryIndex) -> list[tuple[str, str, float]]:
        found = loaded.rows.alike(link_id, text, size, limit)
        slots = [(loaded.slot_of.get(number), share) for number, share in found]
        cards = [(loaded.cards[slot], share) for slot, share in slots if slot is not None]
        return [(card.path, card.title, share) for card, share in cards if parts.admits(card)]

    return _ask_indexes(parts, ask)


def relation_troubles(
    parts: RelationParts, link_id: str
) -> tuple[set[tuple[str, str]], list[list[str]]]:
    """Problems in the `related:` fields of a vault.

    Dangling entries as (note, target), and the notes of each cycle.
    """

    def ask(loaded: MemoryIndex) -> tuple[set[tuple[str, str]], list[list[str]]]:
        graph, cards = loaded.graph, loaded.cards
        lost = {
            (cards[slot].path, target)
            for slot, target in graph.dangling()
            if cards[slot].link_id == link_id
        }
        circles = (way for way in graph.cycles() if cards[way[0]].link_id == link_id)
        return lost, [[cards[slot].path for slot in way] for way in circles]

    return _ask_indexes(parts, ask)


def links_found(
    parts: RelationParts,
    limit: int,
    listener: Callable[[int, int], None],
    *,
    is_static: bool = False,
) -> LinksFound:
    """How often the target of an author's own link is suggested once the link is gone.

    `is_static` leaves meaning vectors out, so that both kinds are measured on one index.
    """
    settings, vaults = parts.settings, {one.link_id: one for one in parts.vaults}

    def ask(loaded: MemoryIndex) -> LinksFound:
        chosen = loaded.by_static_vectors() if is_static else loaded
        return evaluate_links(chosen, settings, vaults, limit=limit, listener=listener)

    return _ask_indexes(parts, ask)


def relations_state(parts: RelationParts) -> dict[str, object] | None:
    """The number of related notes and the last update; None if unknown or the disk is full.

    With a transformer, also how many notes have its vectors.
    """
    with contextlib.suppress(IndexCorrupted, IndexerFailed):
        rows = find_rows(parts.home, format_of(parts.settings))
        if rows is not None:
            with contextlib.closing(rows):
                state: dict[str, object] = {"notes": rows.count, "updated_at": rows.updated_at}
                if parts.model is not None:
                    used = VectorsInUse.of(rows, parts.model)
                    state |= {"vectors": used.kind.word, "with_meaning": used.meant}
                return state
    return None


def _text_vector(parts: RelationParts, text: str) -> tuple[NDArray[np.float32], VectorKind] | None:
    """The vector of a text, of the kind notes are compared by; None if only words can be used.

    Falls back to static vectors if the transformer fails.
    """
    if parts.settings.profile == "seed":
        return None
    if memory_index(parts).vectors_in_use.kind is VectorKind.MEANING:
        meant = parts.meaning_vector(text)
        if meant is not None:
            return meant, VectorKind.MEANING
    with contextlib.suppress(OllamaUnreachable, ProviderFailed, EmbeddingMismatch):
        return parts.query_vector(text), VectorKind.STATIC
    return None


def _passages(
    parts: RelationParts, note: NoteKey | None, explained: Sequence[Explained]
) -> dict[NoteKey, tuple[tuple[FoundRow, ...], str]]:
    """The indexed passages and properties of the notes."""
    keys = [one.card.key for one in explained if one.line is not None]
    if note is not None and keys:
        keys.append(note)
    if not keys or not parts.chunks.exists():
        return {}
    by_note: dict[NoteKey, tuple[tuple[FoundRow, ...], str]] = {}
    for link_id in sorted({of for of, _ in keys}):
        paths = [path for of, path in keys if of == link_id]
        found = passages_of(parts.chunks, link_id, paths, with_words_only=True)
        properties = Properties(parts.file.now).texts(link_id, paths)
        by_note |= {
            (link_id, path): (tuple(rows), properties[path]) for path, rows in found.items()
        }
    return by_note


def _passage_at(passages: Sequence[FoundRow], line: int | None) -> FoundRow | None:
    if line is None:
        return None
    return next((one for one in passages if one.start_line <= line <= one.end_line), None)
