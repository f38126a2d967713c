"""What is asked about: a note of the vault or a text, as the signals need it."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.relations.loaded import Loaded
from obsidian_rag.relations.signals import Source
from obsidian_rag.relations.words import Speller, prose


def note_source(loaded: Loaded, slot: int, tags: Iterable[str] = ()) -> Source:
    """A note of the vault; `tags` count as its own."""
    card = loaded.cards[slot]
    places = loaded.rows.places([card.number]).get(card.number)
    sequence = places.terms if places else _without_order(loaded, card.number)
    return Source(sequence, frozenset((*card.tags, *_plain(tags))), slot)


def text_source(
    loaded: Loaded,
    text: str,
    tags: Iterable[str] = (),
    vector: NDArray[np.float32] | None = None,
    *,
    slot: int | None = None,
    without: int | None = None,
) -> Source:
    """A text; with `slot`, what that note says instead of its own words."""
    speller = Speller()
    sequence = loaded.rows.numbers_of(speller, speller.name(prose(text)))
    own = loaded.cards[slot].tags if slot is not None else ()
    return Source(sequence, frozenset((*own, *_plain(tags))), slot, vector, without)


def _without_order(loaded: Loaded, number: int) -> NDArray[np.int32]:
    """The terms of a note whose places were not kept."""
    row = loaded.rows.database.row("SELECT terms, counts FROM note WHERE number = ?", (number,))
    if row is None:
        return np.zeros(0, dtype=np.int32)
    terms, counts = (bytes(part) for part in row if isinstance(part, bytes))
    return np.repeat(np.frombuffer(terms, np.int32), np.frombuffer(counts, np.uint16))


def _plain(tags: Iterable[str]) -> Iterable[str]:
    return (tag.strip().lstrip("#").lower() for tag in tags if tag.strip().lstrip("#"))
