"""Builds the source of a comparison from a note or a text."""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.notes import Note, body_lines
from obsidian_rag.relations.memory_index import MemoryIndex
from obsidian_rag.relations.packed import Kind
from obsidian_rag.relations.signals import Source
from obsidian_rag.relations.words import LINE_END, NEXT_LINE, Speller, prose


def note_source(
    loaded: MemoryIndex, slot: int, tags: Iterable[str] = (), words: Mapping[str, str] | None = None
) -> Source:
    """A note as source; `tags` are added to its own, `words` come from `words_in`."""
    card = loaded.cards[slot]
    places = loaded.rows.places([card.number]).get(card.number)
    sequence = places.terms if places else _unordered_terms(loaded, card.number)
    return Source(sequence, frozenset((*card.tags, *_normalise(tags))), slot, words=words or {})


def text_source(
    loaded: MemoryIndex,
    text: str,
    tags: Iterable[str] = (),
    vector: NDArray[np.float32] | None = None,
    *,
    vector_kind: Kind = Kind.STATIC,
    slot: int | None = None,
    without: int | None = None,
) -> Source:
    """A text as source; with `slot`, it stands in for the text of that note."""
    speller = Speller()
    sequence = loaded.rows.numbers_of(speller, speller.name(prose(text)))
    # Ignore words found only in removed notes, or in notes the caller may not see.
    sequence = sequence[(sequence <= NEXT_LINE) | loaded.in_use(sequence)]
    own = loaded.cards[slot].tags if slot is not None else ()
    words = dict(zip(speller.terms, speller.words, strict=True))
    every = frozenset((*own, *_normalise(tags)))
    return Source(sequence, every, slot, vector, without, words, vector_kind)


def words_in(note: Note) -> dict[str, str]:
    """For each term of a note the first word that yields it."""
    speller = Speller()
    speller.read(prose(LINE_END.join(body_lines(note)[1])))
    return dict(zip(speller.terms, speller.words, strict=True))


def _unordered_terms(loaded: MemoryIndex, number: int) -> NDArray[np.int32]:
    """The terms of a note without stored positions."""
    row = loaded.rows.database.row("SELECT terms, counts FROM note WHERE number = ?", (number,))
    if row is None:
        return np.zeros(0, dtype=np.int32)
    terms, counts = (bytes(part) for part in row if isinstance(part, bytes))
    numbers = np.frombuffer(terms, np.int32)
    spelled = loaded.rows.terms_of(numbers.tolist())
    # Alphabetical: the order of the numbers depends on which note was read first.
    order = sorted(range(len(numbers)), key=lambda at: spelled[int(numbers[at])][0])
    return np.repeat(numbers[order], np.frombuffer(counts, np.uint16)[order])


def _normalise(tags: Iterable[str]) -> Iterable[str]:
    return (tag.strip().lstrip("#").lower() for tag in tags if tag.strip().lstrip("#"))
