"""One score from several signals: min-max-normalised and weighted, so that each share is visible.

    words     BM25 over text, names (title, aliases, headings) and code, summed; halved for a
              passage with none of the question's telling words, whole for one with all of them
    vector    cosine similarity of the embeddings
    letters   BM25 over groups of three letters, among the candidates: compounds, inflections, typos
    name      how nearly the question is the note's title, an alias or a heading, and nothing else

A note is as good as its best passage. Vectors take their weight from the words, and the more the
nearest passage stands out from the next ones, the more they take: a cloud of equally near passages
says little. Static word vectors get none beyond that; a transformer's always count. The numbers
for the built-in embedder were chosen on the collections that `make bench-search` reports, those for
transformers were not measured.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from obsidian_rag.search.words import question_words

_K1 = 1.2
_B = 0.75


_PEAK_RANK = 4
_LATIN = re.compile("[a-zA-Z]")
NAME_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each signal counts; they add up to one."""

    words: float
    vector: float
    letters: float


@dataclass(frozen=True, slots=True)
class Balance:
    """How much an embedder's vectors deserve: always, and when they stand out."""

    always: float
    standing_out: float


_LETTERS = 0.3
_BALANCES = {"builtin": Balance(0.0, 0.22), "hash": Balance(0.0, 0.05)}
_TRANSFORMER = Balance(0.3, 0.2)
WORDS_ONLY = Weights(words=1 - _LETTERS, vector=0.0, letters=_LETTERS)
VECTORS_ONLY = Weights(words=0.0, vector=1.0, letters=0.0)


def hybrid_weights(provider: str, similarities: Mapping[int, float], question: str) -> Weights:
    """The weights for one question, by how far its nearest passages stand out."""
    balance = _BALANCES.get(provider, _TRANSFORMER)
    if provider == "builtin" and not _LATIN.search(question):
        return WORDS_ONLY  # its vocabulary is English: other scripts come out as single bytes
    vector = balance.always + balance.standing_out * _prominence(similarities)
    return Weights(words=1 - _LETTERS - vector, vector=vector, letters=_LETTERS)


def _prominence(similarities: Mapping[int, float]) -> float:
    """How far the nearest is ahead of the fifth, as a share of the whole range."""
    nearest = sorted(similarities.values(), reverse=True)
    if len(nearest) <= _PEAK_RANK or nearest[0] <= nearest[-1]:
        return 0.0
    return (nearest[0] - nearest[_PEAK_RANK]) / (nearest[0] - nearest[-1])


def normalised(scores: Mapping[int, float], *, floor: float | None = None) -> dict[int, float]:
    """Scores between 0 and 1; the least becomes 0 unless a floor is given."""
    if not scores:
        return {}
    low = min(scores.values()) if floor is None else floor
    high = max(scores.values())
    if high <= low:
        return dict.fromkeys(scores, 1.0)
    return {number: max(0.0, (score - low) / (high - low)) for number, score in scores.items()}


def covered(scores: Mapping[int, float], coverage: Mapping[int, float]) -> dict[int, float]:
    """Word scores, lessened by the share of the question that a passage leaves out."""
    return {number: score * (1 + coverage.get(number, 0.0)) / 2 for number, score in scores.items()}


def name_scores(words: tuple[str, ...], names: Mapping[int, str]) -> dict[int, float]:
    """How nearly the question is one of the folded names, a line each: 1 if it is just that."""
    asked = frozenset(words)
    return {number: _nearest_name(asked, lines) for number, lines in names.items()}


def _nearest_name(asked: frozenset[str], lines: str) -> float:
    # Most names have not half of the words, and then none of their lines counts.
    if 2 * sum(word in lines for word in asked) <= len(asked):
        return 0.0
    best = 0.0
    for line in lines.split("\n"):
        name = frozenset(question_words(line))
        best = max(best, len(asked & name) / (len(asked | name) or 1))
    return max(0.0, 2 * best - 1)


def coverage(roots: Sequence[str], texts: Mapping[int, str]) -> dict[int, float]:
    """How much of the question each text contains; a word rare among the texts counts more."""
    having = {number: [root in text for root in roots] for number, text in texts.items()}
    rarity = [
        _rarity(len(texts), sum(found[position] for found in having.values()))
        for position in range(len(roots))
    ]
    whole = sum(rarity) or 1.0
    return {
        number: sum(weight for weight, is_there in zip(rarity, found, strict=True) if is_there)
        / whole
        for number, found in having.items()
    }


def _rarity(total: int, having: int) -> float:
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


def letter_scores(groups: tuple[str, ...], texts: Mapping[int, str]) -> dict[int, float]:
    """BM25 of letter groups over the candidates' folded texts."""
    if not groups or not texts:
        return {}
    counts = {number: [text.count(group) for group in groups] for number, text in texts.items()}
    total = len(texts)
    rarity = []
    for position in range(len(groups)):
        having = sum(1 for found in counts.values() if found[position])
        rarity.append(_rarity(total, having))
    mean = sum(map(len, texts.values())) / total or 1.0
    scores = {}
    for number, found in counts.items():
        damping = _K1 * (1 - _B + _B * len(texts[number]) / mean)
        scores[number] = sum(
            weight * count * (_K1 + 1) / (count + damping)
            for count, weight in zip(found, rarity, strict=True)
            if count
        )
    return scores
