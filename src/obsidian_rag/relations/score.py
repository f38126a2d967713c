"""Combines all signals into one score: normalise, weigh, exclude, rank."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.config import RelationsSettings
from obsidian_rag.relations import signals
from obsidian_rag.relations.memory_index import MemoryIndex
from obsidian_rag.relations.packed import VectorKind
from obsidian_rag.relations.signals import Scores, Signal, Source, SourcePostings

SEED_WEIGHTS = {Signal.BM25: 0.40, Signal.TAGS: 0.20, Signal.TERMS: 0.20, Signal.GRAPH: 0.20}
# Chosen with `obsidian-rag eval --links`; docs/concepts/related.md has the numbers.
DEFAULT_WEIGHTS = {
    Signal.BM25: 0.05,
    Signal.TAGS: 0.10,
    Signal.TERMS: 0.05,
    Signal.GRAPH: 0.15,
    Signal.COSINE: 0.15,
    Signal.NEIGHBOURS: 0.10,
    Signal.TITLE: 0.20,
    Signal.VECTOR: 0.20,
}
# For meaning vectors. A higher weight for them gained nothing on held-out links.
MEANING_WEIGHTS = DEFAULT_WEIGHTS
# A daily note covers a bit of everything, so it counts less than one on a single topic.
DAILY_COUNTS = 0.5


@dataclass(frozen=True, slots=True)
class Scored:
    """A note related to the source; `parts` are the unweighted signals from 0 to 1."""

    slot: int
    score: float
    parts: Mapping[Signal, float]


def weights_of(
    settings: RelationsSettings, kind: VectorKind = VectorKind.STATIC
) -> dict[Signal, float]:
    """The weight of each signal: the user's, else the profile's for this kind of vectors."""
    chosen = {
        Signal.BM25: settings.bm25_weight,
        Signal.TAGS: settings.tag_weight,
        Signal.TERMS: settings.term_weight,
        Signal.GRAPH: settings.graph_weight,
    }
    usual = SEED_WEIGHTS
    if settings.profile == "default":
        usual = MEANING_WEIGHTS if kind is VectorKind.MEANING else DEFAULT_WEIGHTS
        chosen |= {
            Signal.COSINE: settings.cosine_weight,
            Signal.NEIGHBOURS: settings.neighbour_weight,
            Signal.TITLE: settings.title_weight,
            Signal.VECTOR: settings.vector_weight,
        }
    weights = {signal: usual[signal] if own is None else own for signal, own in chosen.items()}
    return {signal: weight for signal, weight in weights.items() if weight > 0}


def is_hiding(settings: RelationsSettings, asked: bool | None) -> bool:
    """Whether already linked notes are hidden; the `seed` profile shows them."""
    return settings.hide_linked and settings.profile != "seed" if asked is None else asked


def related(
    loaded: MemoryIndex,
    source: Source,
    settings: RelationsSettings,
    *,
    limit: int | None = None,
    hide_linked: bool | None = None,
    vaults: Collection[str] | None = None,
) -> list[Scored]:
    """The notes related to the source, best first; `vaults` limits them to these link ids."""
    if not loaded.count:
        return []
    is_seed = settings.profile == "seed"
    weights = weights_of(settings, signals.kind_of(loaded, source))
    parts = _signals(loaded, source, weights, is_seed=is_seed)
    parts = {
        signal: seed_scale(scores) if is_seed else signals.to_one(scores, source.slot)
        for signal, scores in parts.items()
    }
    total = np.zeros(loaded.size)
    for signal, scores in parts.items():
        total += weights[signal] * scores
    if not is_seed and settings.discount_daily:
        total[loaded.is_daily] *= DAILY_COUNTS
    total[~loaded.is_alive] = 0
    if source.slot is not None:
        total[source.slot] = 0
        if is_hiding(settings, hide_linked):
            linked = loaded.graph.outgoing.get(source.slot, frozenset()) - {source.without}
            total[list(linked)] = 0
    if vaults is not None:
        total[[slot for slot, card in enumerate(loaded.cards) if card.link_id not in vaults]] = 0
    found = np.nonzero((total >= settings.min_score) & (total > 0))[0]
    return [
        Scored(
            int(slot),
            float(min(total[slot], 1.0)),
            {signal: float(scores[slot]) for signal, scores in parts.items()},
        )
        for slot in _best(loaded, found, total, limit or settings.max_results)
    ]


def _best(loaded: MemoryIndex, found: NDArray[np.int64], total: Scores, limit: int) -> list[int]:
    """The slots with the highest scores; ties are broken by path."""
    order = found[np.argsort(-total[found], kind="stable")]
    if len(order) > limit:
        order = order[total[order] >= total[order[limit - 1]]]
    return sorted(order.tolist(), key=lambda slot: (-total[slot], loaded.cards[slot].order))[:limit]


def _signals(
    loaded: MemoryIndex, source: Source, weights: Mapping[Signal, float], *, is_seed: bool
) -> dict[Signal, Scores]:
    postings = SourcePostings(loaded, source)
    makers: dict[Signal, Callable[[], Scores]] = {
        Signal.BM25: lambda: postings.bm25(is_damped=not is_seed),
        Signal.TAGS: lambda: signals.tags(loaded, source.tags),
        Signal.TERMS: postings.shared_terms,
        Signal.GRAPH: lambda: signals.proximity(loaded, source),
        Signal.COSINE: postings.cosine,
        Signal.NEIGHBOURS: lambda: signals.neighbours(loaded, source),
        Signal.TITLE: lambda: signals.names(loaded, source),
        Signal.VECTOR: lambda: signals.meaning(loaded, source),
    }
    return {
        signal: np.where(loaded.is_alive, makers[signal](), 0)
        for signal in Signal
        if signal in weights
    }


def seed_scale(scores: Scores) -> Scores:
    """Min-max scaling of the positive scores; 0.5 if all are equal."""
    is_scored = scores > 0
    if not is_scored.any():
        return scores
    lowest, highest = scores[is_scored].min(), scores[is_scored].max()
    if highest == lowest:
        return np.where(is_scored, 0.5, 0.0)
    return np.where(is_scored, (scores - lowest) / (highest - lowest), 0.0)
