"""How good a ranking is, given the notes that should have been found. Pure arithmetic.

A ranking is note paths, best first; `relevant` gives each note that answers its grade, and 1 is
the usual one. A grade of 0 means judged and found wanting, which is the same as not being there.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

Grades = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of one ranking, or their means over several; all between 0 and 1."""

    ndcg_at_5: float
    ndcg_at_10: float
    mrr: float
    hit_at_1: float
    hit_at_3: float
    hit_at_5: float
    recall_at_10: float


def measure(ranking: Sequence[str], relevant: Grades) -> Measures:
    """All measures of one ranking."""
    return Measures(
        ndcg_at_5=ndcg(ranking, relevant, 5),
        ndcg_at_10=ndcg(ranking, relevant, 10),
        mrr=reciprocal_rank(ranking, relevant),
        hit_at_1=hit(ranking, relevant, 1),
        hit_at_3=hit(ranking, relevant, 3),
        hit_at_5=hit(ranking, relevant, 5),
        recall_at_10=recall(ranking, relevant, 10),
    )


def mean(measured: Sequence[Measures]) -> Measures:
    """The mean of each measure; of nothing it is 0."""
    return Measures(
        **{
            field.name: math.fsum(getattr(one, field.name) for one in measured)
            / max(1, len(measured))
            for field in fields(Measures)
        }
    )


def mildest_threshold(answerable: Sequence[float], most_wrong: float) -> float:
    """The highest confidence below which at most this share of the answerable questions lies."""
    ordered = sorted(answerable)
    return ordered[int(most_wrong * len(ordered))] if ordered else 0.0


def share_below(confidences: Sequence[float], threshold: float) -> float:
    """How many of them a threshold would call weak; of none it is 0."""
    return sum(one < threshold for one in confidences) / max(1, len(confidences))


def ndcg(ranking: Sequence[str], relevant: Grades, depth: int) -> float:
    """Gain of the first `depth` notes over the best gain possible, discounted by log2 of the rank.

    The gain of a note is its grade, as in trec_eval, so that published numbers compare.
    """
    best = _gain(sorted(relevant.values(), reverse=True)[:depth])
    return _gain([relevant.get(path, 0.0) for path in ranking[:depth]]) / best if best else 0.0


def reciprocal_rank(ranking: Sequence[str], relevant: Grades) -> float:
    """One over the rank of the first relevant note."""
    ranks = (rank for rank, path in enumerate(ranking, 1) if relevant.get(path, 0.0) > 0)
    first = next(ranks, None)
    return 1 / first if first else 0.0


def hit(ranking: Sequence[str], relevant: Grades, depth: int) -> float:
    """1 if a relevant note is among the first `depth`."""
    return float(any(relevant.get(path, 0.0) > 0 for path in ranking[:depth]))


def recall(ranking: Sequence[str], relevant: Grades, depth: int) -> float:
    """The share of the relevant notes that are among the first `depth`."""
    wanted = {path for path, grade in relevant.items() if grade > 0}
    return len(wanted.intersection(ranking[:depth])) / len(wanted) if wanted else 0.0


def _gain(grades: Sequence[float]) -> float:
    return math.fsum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))
