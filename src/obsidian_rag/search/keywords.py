"""The weight of words: their idf in the vault, BM25, and how many of a question's a text has."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.search.words import question_words, root

# About a dozen words: what is further apart seldom belongs together.
_TOGETHER_CHARS = 80
_K1 = 1.2
B = 0.75
_Numbers = NDArray[np.float64] | NDArray[np.integer]


def idf(total: int, having: int) -> float:
    """Inverse document frequency of a word that `having` of `total` passages have."""
    return math.log(1 + (max(0, total - having) + 0.5) / (having + 0.5))


def bm25(counts: _Numbers, damping: _Numbers | float, k1: float = _K1) -> NDArray[np.float64]:
    """How much each count of a word in a text weighs in Okapi BM25, before its idf.

    The more often a word occurs, the less does another occurrence add. `damping` is that of the
    texts; any two arrays will do that numpy can combine.
    """
    weights: NDArray[np.float64] = counts * (k1 + 1) / (counts + damping)
    return weights


def length_damping(lengths: _Numbers, mean: float, k1: float = _K1) -> NDArray[np.float64]:
    """The damping of texts for `bm25`: a word counts for less in a text longer than the mean."""
    damping: NDArray[np.float64] = k1 * (1 - B + B * (lengths / mean))
    return damping


@dataclass(frozen=True)
class Keywords:
    """The keywords of a question: the idf of each in the vault, by its root."""

    idf: Mapping[str, float]

    @classmethod
    def of(cls, words: Iterable[str], total: int, having: Mapping[str, int]) -> "Keywords":
        """Weigh these words; `having` counts the passages with each, out of `total`."""
        counts: dict[str, int] = {}
        for word in words:
            counts[root(word)] = max(counts.get(root(word), 0), having[word])
        return cls({one: idf(total, count) for one, count in counts.items()})

    @cached_property
    def _sum(self) -> float:
        return sum(self.idf.values()) or 1.0

    def share(self, roots: Collection[str]) -> float:
        """The share of the keywords, weighted by idf, that a text with these roots has."""
        return sum(weight for one, weight in self.idf.items() if one in roots) / self._sum

    def share_together(self, named: Collection[str], places: Iterable[tuple[int, str]]) -> float:
        """The largest share of the keywords that a text has in one place.

        `places` lists the positions of its roots in order; roots in `named` count everywhere.
        """
        last: dict[str, int] = {}
        best = 0.0
        for at, one in places:
            if one not in named:
                last[one] = at
                there = 0.0
                for other, before in last.items():
                    if at - before <= _TOGETHER_CHARS:
                        there += self.idf[other]
                best = max(best, there)
        return self.share(named) + best / self._sum

    def likeness(self, name: str) -> float:
        """How similar the question is to this name: 1 if both have the same words."""
        named = _name_roots(name)
        both = sum(1 for one in self.idf if one in named)
        return self.share(named) * both / len(named) if both else 0.0


@lru_cache(maxsize=8192)
def _name_roots(name: str) -> frozenset[str]:
    return frozenset(map(root, question_words(name)))
