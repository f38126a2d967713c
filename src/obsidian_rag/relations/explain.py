"""Why two notes belong together: shares of the signals, and words for people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.relations.memory_index import Card, MemoryIndex
from obsidian_rag.relations.packed import Places
from obsidian_rag.relations.score import Scored
from obsidian_rag.relations.signals import Signal, Source

_MOST_TERMS = 5
# A term in more notes than this share says little about two of them.
_RARE_SHARE = 0.2
_WINDOW = 3


@dataclass(frozen=True, slots=True)
class Explained:
    """A related note with its reasons; the lines are where the two notes meet."""

    card: Card
    score: float
    parts: Mapping[Signal, float]
    shares: Mapping[Signal, float]
    shared_tags: tuple[str, ...]
    shared_terms: tuple[str, ...]
    path: tuple[Card, ...]
    is_linked: bool
    source_line: int | None
    line: int | None
    reasons: tuple[str, ...]


def explain(
    loaded: MemoryIndex, source: Source, found: Sequence[Scored], weights: Mapping[Signal, float]
) -> list[Explained]:
    """Say why each of these notes was found."""
    own = None if source.slot is None else loaded.cards[source.slot].number
    numbers = [loaded.cards[one.slot].number for one in found]
    places = loaded.rows.places(numbers if own is None else [own, *numbers])
    telling = _telling(loaded, source)
    shared = [
        _rarest_first(loaded, telling, _terms(loaded, number, places.get(number)))
        for number in numbers
    ]
    told = loaded.rows.terms_of({term for terms in shared for term in terms[:_MOST_TERMS]})
    words = {number: source.words.get(term, word) for number, (term, word) in told.items()}
    lines = _best_lines(loaded, places, [(own or -1, number) for number in numbers], shared)
    return [
        _explained(
            loaded,
            source,
            one,
            weights,
            tuple(words[term] for term in terms[:_MOST_TERMS] if term in words),
            both,
        )
        for one, terms, both in zip(found, shared, lines, strict=True)
    ]


def _explained(
    loaded: MemoryIndex,
    source: Source,
    one: Scored,
    weights: Mapping[Signal, float],
    terms: tuple[str, ...],
    lines: tuple[int | None, int | None],
) -> Explained:
    card = loaded.cards[one.slot]
    weighed = {signal: weights[signal] * value for signal, value in one.parts.items()}
    total = sum(weighed.values()) or 1.0
    way = loaded.graph.path(source.slot, one.slot) if source.slot is not None else []
    outgoing = (
        loaded.graph.outgoing.get(source.slot, frozenset()) if source.slot is not None else ()
    )
    tags = tuple(tag for tag in card.tags if tag in source.tags)
    path = tuple(loaded.cards[slot] for slot in way)
    return Explained(
        card=card,
        score=one.score,
        parts=one.parts,
        shares={signal: value / total for signal, value in weighed.items()},
        shared_tags=tags,
        shared_terms=terms,
        path=path,
        is_linked=one.slot in outgoing,
        source_line=lines[0],
        line=lines[1],
        reasons=tuple(_reasons(one, tags, terms, path)),
    )


def _reasons(
    one: Scored, tags: Sequence[str], terms: Sequence[str], path: Sequence[Card]
) -> list[str]:
    said = []
    if tags:
        said.append("same tags: " + ", ".join(f"#{tag}" for tag in tags))
    if terms:
        said.append("rare words in common: " + ", ".join(terms))
    if len(path) == 2:
        said.append("linked directly")
    elif path:
        said.append("linked by way of " + " and ".join(card.title for card in path[1:-1]))
    if one.parts.get(Signal.NEIGHBOURS, 0) > 0 and len(path) != 3:
        said.append("tied to the same notes")
    if one.parts.get(Signal.TITLE, 0) >= _NAMED:
        said.append("one names the other")
    if one.parts.get(Signal.VECTOR, 0) >= _ALIKE:
        said.append("alike in meaning")
    return said or ["words in common"]


_NAMED = 0.5
_ALIKE = 0.5


def _terms(loaded: MemoryIndex, number: int, places: Places | None) -> NDArray[np.int32]:
    if places is not None:
        return places.terms
    row = loaded.rows.database.row("SELECT terms FROM note WHERE number = ?", (number,))
    return np.frombuffer(cast("bytes", row[0]) if row else b"", np.int32)


def _telling(loaded: MemoryIndex, source: Source) -> NDArray[np.int64]:
    """For each term where it first stands in the source; -1 if it does not, or in many notes."""
    terms, first = np.unique(source.sequence, return_index=True)
    known, first = terms[terms < len(loaded.frequency)], first[terms < len(loaded.frequency)]
    is_rare = loaded.frequency[known] <= max(2, _RARE_SHARE * loaded.count)
    telling = np.full(len(loaded.frequency), -1, dtype=np.int64)
    telling[known[is_rare]] = first[is_rare]
    return telling


def _rarest_first(
    loaded: MemoryIndex, telling: NDArray[np.int64], terms: NDArray[np.int32]
) -> list[int]:
    """Of the telling terms the rarest first; of equally rare ones, as they stand in the source."""
    # The rows may be newer than what is loaded.
    known = terms[terms < len(telling)]
    shared = np.unique(known[telling[known] >= 0])
    found: list[int] = shared[np.lexsort((telling[shared], -loaded.idf[shared]))].tolist()
    return found


def _best_lines(
    loaded: MemoryIndex,
    places: Mapping[int, Places],
    pairs: Sequence[tuple[int, int]],
    shared: Sequence[list[int]],
) -> list[tuple[int | None, int | None]]:
    """For pairs of notes, by number, the lines around which they have most in common."""
    # The rows may be newer than what is loaded. One array for all: filling one takes longer than
    # all the rest.
    highest = max((int(one.terms.max(initial=0)) for one in places.values()), default=0)
    weights = np.zeros(max(len(loaded.idf), highest + 1))
    found = []
    for (first, second), terms in zip(pairs, shared, strict=True):
        weights[terms] = loaded.idf[terms]
        found.append(
            (_best_line(weights, places.get(first)), _best_line(weights, places.get(second)))
        )
        weights[terms] = 0
    return found


def _best_line(weights: NDArray[np.float64], places: Places | None) -> int | None:
    """The line around which the terms that weigh something stand closest together."""
    if places is None:
        return None
    found = weights[places.terms]
    lines, found = places.lines[found > 0], found[found > 0]
    if not len(lines):
        return None
    first = int(lines.min())
    by_line = np.bincount(lines - first, found)
    near = np.convolve(by_line, np.ones(_WINDOW), mode="same")[: len(by_line)]
    # A line of its own: a blank one between two passages belongs to neither.
    return first + int(np.argmax(np.where(by_line > 0, near, 0)))
