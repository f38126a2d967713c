"""What a question is about: its telling words, how rare each is, and how much of it a text has."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from obsidian_rag.search.words import question_words, root

# A dozen words, roughly: what stands further apart is seldom of one thought.
_TOGETHER_CHARS = 80


@dataclass(frozen=True)
class Telling:
    """The telling words of a question: the rarity of each in the vault, by its root."""

    rarity: Mapping[str, float]

    @classmethod
    def of(cls, words: Iterable[str], total: int, having: Mapping[str, int]) -> "Telling":
        """Of these words, of which so many of all passages have each."""
        counts: dict[str, int] = {}
        for word in words:
            counts[root(word)] = max(counts.get(root(word), 0), having[word])
        return cls({one: rarity_of(total, count) for one, count in counts.items()})

    @cached_property
    def _whole(self) -> float:
        return sum(self.rarity.values()) or 1.0

    def share(self, roots: Collection[str]) -> float:
        """How much of the question a text with these roots has; a rare word is more of it."""
        return sum(rarity for one, rarity in self.rarity.items() if one in roots) / self._whole

    def share_together(self, named: Collection[str], places: Iterable[tuple[int, str]]) -> float:
        """How much of the question a text has in one place.

        `places` says in order where its roots stand; its names go for every place in it.
        """
        last: dict[str, int] = {}
        best = 0.0
        for at, one in places:
            if one not in named:
                last[one] = at
                there = 0.0
                for other, before in last.items():
                    if at - before <= _TOGETHER_CHARS:
                        there += self.rarity[other]
                best = max(best, there)
        return self.share(named) + best / self._whole

    def likeness(self, name: str) -> float:
        """How nearly the question is this name: 1 if each has all that the other has."""
        named = _name_roots(name)
        both = sum(1 for one in self.rarity if one in named)
        return self.share(named) * both / len(named) if both else 0.0


@lru_cache(maxsize=8192)
def _name_roots(name: str) -> frozenset[str]:
    return frozenset(map(root, question_words(name)))


def rarity_of(total: int, having: int) -> float:
    """How telling it is to have what so many of all have."""
    return math.log(1 + (max(0, total - having) + 0.5) / (having + 0.5))
