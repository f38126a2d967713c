"""The scoring of the seed once more, with dicts and loops only, to hold ours against it."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

K1, B = 1.5, 0.75
WEIGHTS = {"bm25": 0.40, "tags": 0.20, "terms": 0.20, "graph": 0.20}


@dataclass(frozen=True)
class SeedNote:
    """A note as the seed sees it: terms in their order, tags, and the paths it relates to."""

    terms: tuple[str, ...]
    tags: frozenset[str]
    related: tuple[str, ...] = ()


Notes = Mapping[str, SeedNote]


def idf(notes: Notes, term: str) -> float:
    having = sum(term in note.terms for note in notes.values())
    return math.log((len(notes) - having + 0.5) / (having + 0.5) + 1)


def bm25(notes: Notes, query: Sequence[str], path: str) -> float:
    lengths = {name: max(len(note.terms), 1) for name, note in notes.items()}
    average = sum(lengths.values()) / len(lengths)
    counted = Counter(notes[path].terms)
    total = 0.0
    for term in query:
        if counted[term]:
            ground = counted[term] + K1 * (1 - B + B * lengths[path] / average)
            total += idf(notes, term) * counted[term] * (K1 + 1) / ground
    return total


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one & other else 0.0


def proximity(notes: Notes, source: str) -> dict[str, float]:
    near: dict[str, set[str]] = {path: set() for path in notes}
    for path, note in notes.items():
        for target in note.related:
            if target in notes and target != path:
                near[path].add(target)
                near[target].add(path)
    found: dict[str, float] = {}
    seen, edge = {source}, {source}
    for distance in (1, 2, 3):
        edge = {other for path in edge for other in near[path]} - seen
        seen |= edge
        found |= dict.fromkeys(edge, 1 / (distance + 1))
    return found


def normalised(scores: Mapping[str, float]) -> dict[str, float]:
    above = {path: score for path, score in scores.items() if score > 0}
    if not above:
        return {}
    lowest, highest = min(above.values()), max(above.values())
    if lowest == highest:
        return dict.fromkeys(above, 0.5)
    return {path: (score - lowest) / (highest - lowest) for path, score in above.items()}


def seed_related(
    notes: Notes,
    source: str,
    *,
    weights: Mapping[str, float] = WEIGHTS,
    threshold: float = 0.10,
    most: int = 20,
) -> list[tuple[str, float]]:
    asked = notes[source]
    signals = {
        "bm25": {path: bm25(notes, asked.terms, path) for path in notes},
        "tags": {path: jaccard(asked.tags, note.tags) for path, note in notes.items()},
        "terms": {
            path: jaccard(frozenset(asked.terms), frozenset(note.terms))
            for path, note in notes.items()
        },
        "graph": proximity(notes, source),
    }
    scaled = {name: normalised(scores) for name, scores in signals.items()}
    combined = {
        path: sum(weights[name] * scores.get(path, 0.0) for name, scores in scaled.items())
        for path in notes
        if path != source
    }
    kept = [(path, score) for path, score in combined.items() if score >= threshold and score > 0]
    return sorted(kept, key=lambda one: (-one[1], one[0]))[:most]
