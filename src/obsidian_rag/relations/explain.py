"""Why two notes are related: shares of the signals, and readable reasons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.relations.memory_index import Card, MemoryIndex
from obsidian_rag.relations.packed import Places
from obsidian_rag.relations.score import Scored
from obsidian_rag.relations.signals import Signal, Source

_MAX_TERMS_SHOWN = 5
# A term in more notes than this share says little about any two.
_MAX_RARE_SHARE = 0.2
_WINDOW_LINES = 3


@dataclass(frozen=True, slots=True)
class Explained:
    """A related note with its reasons; the lines are where the two notes have most in common."""

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
    """Explain why each of these notes was found."""
    own = None if source.slot is None else loaded.cards[source.slot].number
    numbers = [loaded.cards[one.slot].number for one in found]
    places = loaded.rows.places(numbers if own is None else [own, *numbers])
    positions = _rare_positions(loaded, source)
    shared = [
        _rarest_first(loaded, positions, _terms(loaded, number, places.get(number)))
        for number in numbers
    ]
    known_terms = loaded.rows.terms_of(
        {term for terms in shared for term in terms[:_MAX_TERMS_SHOWN]}
    )
    words = {number: source.words.get(term, word) for number, (term, word) in known_terms.items()}
    lines = _best_lines(loaded, places, [(own or -1, number) for number in numbers], shared)
    return [
        _explain_one(
            loaded,
            source,
            one,
            weights,
            tuple(words[term] for term in terms[:_MAX_TERMS_SHOWN] if term in words),
            both,
        )
        for one, terms, both in zip(found, shared, lines, strict=True)
    ]


def _explain_one(
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
    reasons_found = []
    if tags:
        reasons_found.append("same tags: " + ", ".join(f"#{tag}" for tag in tags))
    if terms:
        reasons_found.append("rare words in common: " + ", ".join(terms))
    if len(path) == 2:
        reasons_found.append("linked directly")
    elif path:
        reasons_found.append("linked via " + " and ".join(card.title for card in path[1:-1]))
    if one.parts.get(Signal.NEIGHBOURS, 0) > 0 and len(path) != 3:
        reasons_found.append("linked to the same notes")
    if one.parts.get(Signal.TITLE, 0) >= _MIN_TITLE_SIGNAL:
        reasons_found.append("one mentions the other")
    if one.parts.get(Signal.VECTOR, 0) >= _MIN_VECTOR_SIGNAL:
        reasons_found.append("similar in meaning")
    return reasons_found or ["words in common"]


_MIN_TITLE_SIGNAL = 0.5
_MIN_VECTOR_SIGNAL = 0.5


def _terms(loaded: MemoryIndex, number: int, places: Places | None) -> NDArray[np.int32]:
    if places is not None:
        return places.terms
    row = loaded.rows.database.row("SELECT terms FROM note WHERE number = ?", (number,))
    return np.frombuffer(cast("bytes", row[0]) if row else b"", np.int32)


def _rare_positions(loaded: MemoryIndex, source: Source) -> NDArray[np.int64]:
    """The first position of each rare term in the source; -1 for absent or common terms."""
    terms, first = np.unique(source.sequence, return_index=True)
    known, first = terms[terms < len(loaded.frequency)], first[terms < len(loaded.frequency)]
    is_rare = loaded.frequency[known] <= max(2, _MAX_RARE_SHARE * loaded.count)
    positions = np.full(len(loaded.frequency), -1, dtype=np.int64)
    positions[known[is_rare]] = first[is_rare]
    return positions


def _rarest_first(
    loaded: MemoryIndex, positions: NDArray[np.int64], terms: NDArray[np.int32]
) -> list[int]:
    """The shared rare terms, rarest first, then in source order."""
    # The rows may be newer than the loaded index.
    known = terms[terms < len(positions)]
    shared = np.unique(known[positions[known] >= 0])
    found: list[int] = shared[np.lexsort((positions[shared], -loaded.idf[shared]))].tolist()
    return found


def _best_lines(
    loaded: MemoryIndex,
    places: Mapping[int, Places],
    pairs: Sequence[tuple[int, int]],
    shared: Sequence[list[int]],
) -> list[tuple[int | None, int | None]]:
    """For pairs of note numbers, the lines around which they have most in common."""
    # The rows may be newer than the loaded index. One array for all pairs: filling it takes longer
    # than everything else.
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
    """The line around which the weighted terms are densest."""
    if places is None:
        return None
    found = weights[places.terms]
    lines, found = places.lines[found > 0], found[found > 0]
    if not len(lines):
        return None
    first = int(lines.min())
    by_line = np.bincount(lines - first, found)
    near = np.convolve(by_line, np.ones(_WINDOW_LINES), mode="same")[: len(by_line)]
    # Only a line with such a term: a blank one between two passages belongs to neither.
    return first + int(np.argmax(np.where(by_line > 0, near, 0)))
