"""Rank passages by a weighted sum of signals, so that each signal's share can be shown.

    text      BM25 of the question's words in the passage, reduced if they are far apart
    heading   the same for its names: the note's title and aliases, the headings above and in it
    code      the same for its code and its note's properties
    letters   BM25 over words in any form and groups of letters: compounds, inflections, typos
    title     how similar the question is to the note's title or an alias
    static    cosine similarity of the vectors that every passage has
    meaning   the same for the transformer's vectors, of the passage or its nearest part, mixed
              with that of the whole note; the static one for passages without such a vector
    date      how close the passage's date is to the date asked for

A note is as good as its best passage. The weight of vectors depends on the embedder and on the
question: the fewer of its keywords the best passages contain, the more the vectors count.
The best score is the confidence of the answer; the other scores are in proportion to it.

The constants were tuned on half of the golden questions; docs/performance.md has the results on
the other half, and what each signal contributes.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from obsidian_rag.notes import file_title
from obsidian_rag.search.keywords import Keywords, bm25, idf, length_damping
from obsidian_rag.search.letters import (
    Places,
    blank_signs,
    letter_scores,
    root_places,
    word_counts,
)
from obsidian_rag.search.words import folded, root, stem
from obsidian_rag.store import FoundRow

_LETTERS_WEIGHT = 0.5
# Letters count more in languages whose word forms we do not know.
_LETTERS_WEIGHT_UNKNOWN_FORMS = 0.7
_TITLE_WEIGHT = 0.6
_DATE_WEIGHT = 0.6
# The column of each word signal, and its weight among them.
COLUMNS = {"text": ("chunk_text", 1.0), "heading": ("names", 1.0), "code": ("words_only", 0.7)}
_DASHES = str.maketrans("_-", "  ")
# Coverage of the question: the best among this many top passages by words.
_COVERAGE_PASSAGES = 5
# Confidence is the best among this many top passages.
_CONFIDENCE_PASSAGES = 3
WEAK = 0.5
_CONFIDENCE_STEEPNESS = 10
_UNKNOWN_NAME_PENALTY = 0.25
_STATIC_WEIGHT_BESIDE_MEANING = 0.1
# How much of a passage's meaning score is that of its whole note.
_NOTE_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Balance:
    """The weight of an embedder's vectors: a fixed part, and one that grows as words fail.

    `sure` is the similarity at which an answer with none of the words is trusted.
    """

    always: float
    when_words_fail: float
    sure: float = 0.5

    def weight(self, coverage: float) -> float:
        """The weight for a question with this coverage in the best passages."""
        return self.always + self.when_words_fail * (1 - coverage)

    def lessened(self) -> "Balance":
        """The balance for a question that the vectors represent badly."""
        return Balance(self.always / 4, self.when_words_fail / 4, self.sure)

    def between(self, other: "Balance", share: float) -> "Balance":
        """Interpolate: `share` of this one, the rest of the other."""
        return Balance(
            other.always + share * (self.always - other.always),
            other.when_words_fail + share * (self.when_words_fail - other.when_words_fail),
            other.sure + share * (self.sure - other.sure),
        )


NO_VECTORS = Balance(0.0, 0.0, 0.15)
MEANING = Balance(0.4, 0.5, 0.42)
_BALANCES = {"builtin": Balance(0.2, 0.4, 0.36), "hash": Balance(0.0, 0.05, 0.25)}


def balance_of(provider: str) -> Balance:
    """The balance for an embedder; unknown providers count as transformers."""
    return _BALANCES.get(provider, MEANING)


@dataclass(slots=True)
class Found:
    """Scores from the lookups, by row number; `words` by signal."""

    words: dict[str, dict[int, float]] = field(default_factory=dict)
    static: dict[int, float] = field(default_factory=dict)
    meaning: dict[int, float] = field(default_factory=dict)
    date: dict[int, float] = field(default_factory=dict)
    # The meaning score of the row's whole note, for the most promising notes.
    note: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Rows with their score and each signal's share of it, best first.

    `confidence`, from 0 to 1: how likely the first rows answer the question.
    """

    rows: list[tuple[int, float, dict[str, float]]]
    confidence: float


@dataclass(frozen=True, slots=True)
class Case:
    """A question ready for ranking: its words, and the weight of vectors.

    `has_unknown_name`: it names something that no passage mentions. `is_wordless`: it is symbols
    only, such as `***` or an emoji. `meaning_share`: the share of passages with a meaning vector;
    while it is small, the nearest of them is seldom the right one, and static vectors decide.
    """

    keywords: Keywords
    words: tuple[str, ...]
    balance: Balance
    leave_out: frozenset[str] = frozenset()
    is_vectors_only: bool = False
    has_unknown_name: bool = False
    is_wordless: bool = False
    meaning_share: float = 1.0
    is_english: bool = True

    @property
    def knows_forms(self) -> bool:
        """Whether stemming covers all forms of its words."""
        return self.is_english and all(map(str.isascii, self.words))


def score_words(
    words: tuple[str, ...],
    found: Found,
    rows: Mapping[int, FoundRow],
    counts: tuple[int, Mapping[str, int]],
) -> dict[str, dict[int, float]]:
    """BM25 with the idf among visible passages; the store's own scores count deleted ones too."""
    total, having = counts
    idf_by_stem = {stem(word): idf(total, having[word]) for word in words}
    weights = np.array(list(idf_by_stem.values()))
    scores: dict[str, dict[int, float]] = {}
    for name in found.words if rows else ():
        texts = [folded(getattr(row, COLUMNS[name][0])) for row in rows.values()]
        lengths = np.array([[len(text)] for text in texts])
        occurrences = np.array([[text.count(one) for one in idf_by_stem] for text in texts])
        damping = length_damping(lengths, float(np.mean(lengths)) or 1.0)
        sums = bm25(occurrences, damping) @ weights
        scores[name] = dict(zip(rows, sums.tolist(), strict=True))
    return scores


def rank(case: Case, rows: Mapping[int, FoundRow], found: Found) -> Ranking:
    """Order the candidates by the sum of their signals."""
    texts = {
        number: blank_signs(folded("\n".join((row.names, row.chunk_text, row.words_only))))
        for number, row in rows.items()
    }
    places = root_places(case.words, texts)
    counts = word_counts(case.words, texts, places)
    roots = [root(word) for word in case.words]
    coverage = {
        number: case.keywords.share({one for one, count in zip(roots, own, strict=True) if count})
        for number, own in counts.items()
    }
    letters = {} if case.is_vectors_only else letter_scores(case.words, texts, counts)
    # In other languages a word that seems missing may be there in a form we do not know.
    kept = {number: (1 + share) / 2 for number, share in coverage.items()}
    if case.knows_forms:
        kept |= _measure_proximity(case, rows, places, found)
    signals = _weigh_signals(case, rows, found, coverage, kept, letters)
    shares: dict[int, dict[str, float]] = {number: {} for number in rows}
    for name, (weight, values) in signals.items():
        if weight and name not in case.leave_out:
            for number, value in values.items():
                if value and number in shares:
                    shares[number][name] = weight * value
    sums = {number: sum(parts.values()) for number, parts in shares.items()}
    order = sorted(
        rows, key=lambda n: (-round(sums[n], 9), rows[n].source_file, rows[n].chunk_index)
    )
    confidence = _confidence(case, order, coverage, found)
    scale = confidence / sums[order[0]] if order and sums[order[0]] > 0 else 0.0
    return Ranking(
        [
            (n, sums[n] * scale, {name: part * scale for name, part in shares[n].items()})
            for n in order
        ],
        confidence,
    )


def _weigh_signals(
    case: Case,
    rows: Mapping[int, FoundRow],
    found: Found,
    coverage: Mapping[int, float],
    kept: Mapping[int, float],
    letters: Mapping[int, float],
) -> dict[str, tuple[float, Mapping[int, float]]]:
    """Each signal's weight and its values between 0 and 1."""
    static, meaning = normalise(found.static), _mix_in_notes(found)
    if case.is_vectors_only:
        if found.meaning:
            return {"meaning": (1.0, _mix_vectors(meaning, static, case.meaning_share))}
        return {"static": (1.0, static)}
    words = _scale_words(found.words, kept)
    spoken = {
        number: sum(values.get(number, 0.0) for values in words.values()) for number in coverage
    }
    places = {number: (row.source_file, row.chunk_index) for number, row in rows.items()}
    leading = sorted(spoken, key=lambda n: (-round(spoken[n], 9), places[n]))[:_COVERAGE_PASSAGES]
    vector = case.balance.weight(max((coverage[number] for number in leading), default=0.0))
    beside = _STATIC_WEIGHT_BESIDE_MEANING * case.meaning_share if found.meaning else 0.0
    rest = 1 - (vector + beside if static or meaning else 0.0)
    by_letters = _LETTERS_WEIGHT if case.knows_forms else _LETTERS_WEIGHT_UNKNOWN_FORMS
    # Passages of one note share its title: compare each set of names once.
    called = {
        number: (row.title, file_title(row.source_file).translate(_DASHES), *row.aliases)
        for number, row in rows.items()
    }
    nearness = {names: max(map(case.keywords.likeness, names)) for names in set(called.values())}
    titles = {number: nearness[names] for number, names in called.items()}
    signals: dict[str, tuple[float, Mapping[int, float]]] = {
        name: (rest * (1 - by_letters), values) for name, values in words.items()
    }
    signals |= {
        "letters": (rest * by_letters, normalise(letters)),
        "title": (_TITLE_WEIGHT, titles),
        "date": (_DATE_WEIGHT, found.date),
    }
    if found.meaning:
        return signals | {
            "meaning": (vector, _mix_vectors(meaning, static, case.meaning_share)),
            "static": (beside, static),
        }
    return signals | {"static": (vector, static)}


def _scale_words(
    scores: Mapping[str, Mapping[int, float]], kept: Mapping[int, float]
) -> dict[str, dict[int, float]]:
    """Word scores times what each passage keeps, scaled so that the best sum is 1."""
    lessened = {
        name: {
            number: COLUMNS[name][1] * score * kept[number]
            for number, score in values.items()
            if number in kept
        }
        for name, values in scores.items()
    }
    sums: dict[int, float] = {}
    for values in lessened.values():
        for number, score in values.items():
            sums[number] = sums.get(number, 0.0) + score
    most = max(sums.values(), default=0.0) or 1.0
    return {
        name: {number: score / most for number, score in values.items()}
        for name, values in lessened.items()
    }


def _mix_in_notes(found: Found) -> dict[int, float]:
    """Meaning scores scaled to 0 to 1, mixed with those of the notes on the same scale."""
    meaning = normalise(found.meaning)
    low, high = min(found.meaning.values(), default=0.0), max(found.meaning.values(), default=0.0)
    for number in meaning.keys() & found.note.keys() if high > low else ():
        note = min(1.0, max(0.0, (found.note[number] - low) / (high - low)))
        meaning[number] = (1 - _NOTE_SHARE) * meaning[number] + _NOTE_SHARE * note
    return meaning


def _mix_vectors(
    meaning: Mapping[int, float], static: Mapping[int, float], share: float
) -> dict[int, float]:
    """The meaning score where there is one, mixed with the static one while few have one."""
    return {
        **static,
        **{
            number: share * value + (1 - share) * static.get(number, 0.0)
            for number, value in meaning.items()
        },
    }


def _confidence(case: Case, order: list[int], coverage: Mapping[int, float], found: Found) -> float:
    """How likely one of the first passages answers, from its coverage and its similarity."""
    leading = order[:_CONFIDENCE_PASSAGES]
    if not leading:
        return 0.0
    if not case.keywords.idf:
        if case.is_wordless:
            return 0.0
        return 1.0 if found.date else WEAK  # only a time or filters were given
    vectors = {**found.static, **found.meaning}
    # All evidence must come from one and the same passage.
    sure = max(
        vectors.get(number, 0.0) + coverage[number] / 2 + found.date.get(number, 0.0) / 2
        for number in leading
    )
    sure -= _UNKNOWN_NAME_PENALTY if case.has_unknown_name else 0.0
    return 1 / (1 + math.exp(-_CONFIDENCE_STEEPNESS * (sure - case.balance.sure)))


def normalise(scores: Mapping[int, float]) -> dict[int, float]:
    """Scores scaled to 0 to 1, the lowest to 0; if several are all equal, all become 0."""
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    if high <= low:
        return dict.fromkeys(scores, 1.0 if high > 0 and len(scores) == 1 else 0.0)
    return {number: (score - low) / (high - low) for number, score in scores.items()}


def _measure_proximity(
    case: Case, rows: Mapping[int, FoundRow], places: Mapping[int, Places], found: Found
) -> dict[int, float]:
    """How much of the question each passage found by words has in one place."""
    kept = {}
    for number in {one for values in found.words.values() for one in values if one in rows}:
        end = len(rows[number].names) + 1
        named = {one for at, one in places[number] if at < end}
        kept[number] = case.keywords.share_together(named, places[number])
    return kept
