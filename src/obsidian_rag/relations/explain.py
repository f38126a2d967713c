"""Why two notes belong together: shares of the signals, and words for people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.relations.loaded import Card, Loaded
from obsidian_rag.relations.rows import Places
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
    loaded: Loaded, source: Source, found: Sequence[Scored], weights: Mapping[Signal, float]
) -> list[Explained]:
    """Say why each of these notes was found."""
    numbers = [loaded.cards[one.slot].number for one in found]
    places = loaded.rows.places(numbers)
    asked, _ = source.terms
    own = None
    if source.slot is not None:
        number = loaded.cards[source.slot].number
        own = loaded.rows.places([number]).get(number)
    explained = []
    for one, number in zip(found, numbers, strict=True):
        shared = _rare(loaded, np.intersect1d(asked, _terms(loaded, number, places.get(number))))
        words = loaded.rows.words_of(shared[:_MOST_TERMS].tolist())
        explained.append(
            _explained(
                loaded,
                source,
                one,
                weights,
                tuple(words[term] for term in shared[:_MOST_TERMS].tolist() if term in words),
                (_best_line(loaded, own, shared), _best_line(loaded, places.get(number), shared)),
            )
        )
    return explained


def _explained(
    loaded: Loaded,
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


def _terms(loaded: Loaded, number: int, places: Places | None) -> NDArray[np.int32]:
    if places is not None:
        return places.terms
    row = loaded.rows.database.row("SELECT terms FROM note WHERE number = ?", (number,))
    return np.frombuffer(cast("bytes", row[0]) if row else b"", np.int32)


def _rare(loaded: Loaded, terms: NDArray[np.int32]) -> NDArray[np.int32]:
    """The telling ones, the rarest first."""
    known = terms[terms < len(loaded.frequency)]
    kept = known[loaded.frequency[known] <= max(2, _RARE_SHARE * loaded.count)]
    return kept[np.argsort(-loaded.idf[kept], kind="stable")]


def _best_line(loaded: Loaded, places: Places | None, shared: NDArray[np.int32]) -> int | None:
    """The line around which the shared terms stand closest together."""
    if places is None or not len(places.terms) or not len(shared):
        return None
    telling = np.isin(places.terms, shared)
    if not telling.any():
        return None
    lines = places.lines[telling]
    first = int(lines.min())
    weights = np.bincount(lines - first, loaded.idf[places.terms[telling]])
    near = np.convolve(weights, np.ones(_WINDOW), mode="same")
    return first + int(np.argmax(near[: len(weights)]))
