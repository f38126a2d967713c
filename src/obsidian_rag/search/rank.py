"""One score from several signals, each with one meaning, so that each share is visible.

    text      BM25 of the question's words in the passage, as far as they stand there together
    heading   the same in its names: the note's title and aliases, the headings above and in it
    code      the same in its code and its note's properties
    letters   BM25 over words in any form and groups of letters: compounds, inflections, slips
    title     how nearly the question is the note's title or an alias, and nothing else
    static    cosine similarity of the vectors that every passage has
    meaning   the same of the transformer's vectors, of the whole or of its nearest part, and to
              some extent of the whole note; of a passage that has none yet, the static one
    date      how nearly the passage's time is the time that was asked for

A note is as good as its best passage. How much vectors count depends on the embedder and on the
question: the fewer of its telling words the best passages contain, the more the vectors decide.
The best score is how sure the answer is; the other scores are in proportion to it.

The constants were chosen on half of the golden questions; docs/performance.md has what the other
half says, and what each signal is worth.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from obsidian_rag.search.letters import (
    Places,
    letter_scores,
    root_places,
    spaced,
    word_counts,
)
from obsidian_rag.search.telling import Telling
from obsidian_rag.search.words import folded, root
from obsidian_rag.store import FoundRow

_K1 = 1.2
_B = 0.75
_LETTERS = 0.5
# Where we know little of a language's forms, its letters tell more.
_LETTERS_ELSEWHERE = 0.7
_TITLE = 0.6
_DATE = 0.6
# Of the scores of words: what a column counts.
COLUMNS = {"text": ("chunk_text", 1.0), "heading": ("names", 1.0), "code": ("words_only", 0.7)}
# The question's coverage is that of the best of the first few by words.
_BEST_BY_WORDS = 5
# So many of the best are asked how sure they are.
_LEADING = 3
WEAK = 0.5
_STEEP = 10
_UNKNOWN_NAME = 0.25


@dataclass(frozen=True, slots=True)
class Balance:
    """What an embedder's vectors count: always, and more when words leave much out.

    `sure` is the similarity from which on an answer without any of the words is believed.
    """

    always: float
    when_words_fail: float
    sure: float = 0.5

    def weight(self, coverage: float) -> float:
        """For a question of which the best passages have so much."""
        return self.always + self.when_words_fail * (1 - coverage)

    def lessened(self) -> "Balance":
        """For a question that its vectors say little about."""
        return Balance(self.always / 4, self.when_words_fail / 4, self.sure)

    def between(self, other: "Balance", share: float) -> "Balance":
        """So much of this one, and the rest of the other."""
        return Balance(
            other.always + share * (self.always - other.always),
            other.when_words_fail + share * (self.when_words_fail - other.when_words_fail),
            other.sure + share * (self.sure - other.sure),
        )


NO_VECTORS = Balance(0.0, 0.0, 0.15)
MEANING = Balance(0.4, 0.5, 0.42)
_STATIC_BESIDE_MEANING = 0.1
# Of what a passage's meaning counts, so much is that of its whole note.
_NOTE = 0.3
_BALANCES = {"builtin": Balance(0.2, 0.4, 0.36), "hash": Balance(0.0, 0.05, 0.25)}


def balance_of(provider: str) -> Balance:
    """What the vectors of an embedder count; those of a transformer if it is none of ours."""
    return _BALANCES.get(provider, MEANING)


@dataclass(slots=True)
class Found:
    """What the lookups say, by row number; `words` by signal."""

    words: dict[str, dict[int, float]] = field(default_factory=dict)
    static: dict[int, float] = field(default_factory=dict)
    meaning: dict[int, float] = field(default_factory=dict)
    date: dict[int, float] = field(default_factory=dict)
    # The meaning of the note that a row is of, for the most promising notes.
    note: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Rows with their score and each signal's share of it, best first.

    `confidence` is how sure it is that the first ones answer the question, from 0 to 1.
    """

    rows: list[tuple[int, float, dict[str, float]]]
    confidence: float


@dataclass(frozen=True, slots=True)
class Case:
    """A question as it is ranked: its words, and what vectors count for it.

    `has_unknown_name`: it asks about something by a name that no passage has. `meaning_share`: of
    the passages, so many have a meaning vector; while they are few, the nearest of them is seldom
    the right one, and static vectors decide.
    """

    telling: Telling
    words: tuple[str, ...]
    balance: Balance
    leave_out: frozenset[str] = frozenset()
    is_vectors_only: bool = False
    has_unknown_name: bool = False
    meaning_share: float = 1.0
    is_english: bool = True

    @property
    def knows_forms(self) -> bool:
        """Whether we know its words in all their forms."""
        return self.is_english and all(map(str.isascii, self.words))


def rank(case: Case, rows: Mapping[int, FoundRow], found: Found) -> Ranking:
    """Order the candidates by the sum of their signals."""
    texts = {number: spaced(folded(_all_text(row))) for number, row in rows.items()}
    places = root_places(case.words, texts)
    counts = word_counts(case.words, texts, places)
    coverage = {number: _share(case, found) for number, found in counts.items()}
    letters = {} if case.is_vectors_only else letter_scores(case.words, texts, counts)
    # Of other languages we do not know all forms: what seems to be missing may be there.
    kept = {number: (1 + share) / 2 for number, share in coverage.items()}
    if case.knows_forms:
        kept |= _together(case, rows, places, found)
    signals = _signals(case, rows, found, coverage, kept, letters)
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


def _signals(
    case: Case,
    rows: Mapping[int, FoundRow],
    found: Found,
    coverage: Mapping[int, float],
    kept: Mapping[int, float],
    letters: Mapping[int, float],
) -> dict[str, tuple[float, Mapping[int, float]]]:
    """Each signal's weight and its values between 0 and 1."""
    static, meaning = normalised(found.static), _beside_notes(found)
    if case.is_vectors_only:
        if found.meaning:
            return {"meaning": (1.0, _better(meaning, static, case.meaning_share))}
        return {"static": (1.0, static)}
    words = _words(found.words, kept)
    spoken = {
        number: sum(values.get(number, 0.0) for values in words.values()) for number in coverage
    }
    leading = sorted(spoken, key=lambda number: -spoken[number])[:_BEST_BY_WORDS]
    vector = case.balance.weight(max((coverage[number] for number in leading), default=0.0))
    beside = _STATIC_BESIDE_MEANING * case.meaning_share if found.meaning else 0.0
    rest = 1 - (vector + beside if static or meaning else 0.0)
    by_letters = _LETTERS if case.knows_forms else _LETTERS_ELSEWHERE
    # A note's passages have its title all alike.
    called = {number: (row.title, _file_name(row), *row.aliases) for number, row in rows.items()}
    nearness = {names: max(map(case.telling.likeness, names)) for names in set(called.values())}
    titles = {number: nearness[names] for number, names in called.items()}
    signals: dict[str, tuple[float, Mapping[int, float]]] = {
        name: (rest * (1 - by_letters), values) for name, values in words.items()
    }
    signals |= {
        "letters": (rest * by_letters, normalised(letters)),
        "title": (_TITLE, titles),
        "date": (_DATE, found.date),
    }
    if found.meaning:
        return signals | {
            "meaning": (vector, _better(meaning, static, case.meaning_share)),
            "static": (beside, static),
        }
    return signals | {"static": (vector, static)}


def _words(
    scores: Mapping[str, Mapping[int, float]], kept: Mapping[int, float]
) -> dict[str, dict[int, float]]:
    """Scores of words on one scale, of each passage so much as is kept."""
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


def _beside_notes(found: Found) -> dict[int, float]:
    """The meaning of passages between 0 and 1, and that of their notes on the same scale."""
    meaning = normalised(found.meaning)
    low, high = min(found.meaning.values(), default=0.0), max(found.meaning.values(), default=0.0)
    for number in meaning.keys() & found.note.keys() if high > low else ():
        note = min(1.0, max(0.0, (found.note[number] - low) / (high - low)))
        meaning[number] = (1 - _NOTE) * meaning[number] + _NOTE * note
    return meaning


def _better(
    meaning: Mapping[int, float], static: Mapping[int, float], share: float
) -> dict[int, float]:
    """Each passage by the better of its vectors, as far as that can be compared with others."""
    return {
        **static,
        **{
            number: share * value + (1 - share) * static.get(number, 0.0)
            for number, value in meaning.items()
        },
    }


def _confidence(case: Case, order: list[int], coverage: Mapping[int, float], found: Found) -> float:
    """How sure it is that one of the first answers: by what it covers, and by how near it is."""
    leading = order[:_LEADING]
    if not leading:
        return 0.0
    if not case.telling.rarity:
        return 1.0 if found.date else WEAK  # nothing was asked but a time, or filters
    vectors = {**found.static, **found.meaning}
    # What speaks for an answer must speak for one and the same passage.
    sure = max(
        vectors.get(number, 0.0) + coverage[number] / 2 + found.date.get(number, 0.0) / 2
        for number in leading
    )
    sure -= _UNKNOWN_NAME if case.has_unknown_name else 0.0
    return 1 / (1 + math.exp(-_STEEP * (sure - case.balance.sure)))


def normalised(scores: Mapping[int, float]) -> dict[int, float]:
    """Scores between 0 and 1, the least of which becomes 0; where all are alike, none counts."""
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    if high <= low:
        return dict.fromkeys(scores, 1.0 if high > 0 and len(scores) == 1 else 0.0)
    return {number: (score - low) / (high - low) for number, score in scores.items()}


def _file_name(row: FoundRow) -> str:
    name = row.source_file.rpartition("/")[2].rpartition(".")[0]
    return name.replace("_", " ").replace("-", " ")


def _all_text(row: FoundRow) -> str:
    return "\n".join((row.names, row.chunk_text, row.words_only))


def _share(case: Case, counts: Sequence[int]) -> float:
    there = {root(word) for word, count in zip(case.words, counts, strict=True) if count}
    return case.telling.share(there)


def _together(
    case: Case, rows: Mapping[int, FoundRow], places: Mapping[int, Places], found: Found
) -> dict[int, float]:
    """How much of the question each passage found by words has in one place."""
    kept = {}
    for number in {one for values in found.words.values() for one in values if one in rows}:
        end = len(rows[number].names) + 1
        named = {one for at, one in places[number] if at < end}
        kept[number] = case.telling.share_together(named, places[number])
    return kept


def bm25(rarity: Mapping[str, float], texts: Mapping[int, str]) -> dict[int, float]:
    """BM25 over folded texts of the roots of words, each with how telling it is."""
    mean = sum(map(len, texts.values())) / (len(texts) or 1) or 1.0
    scores = {}
    for number, text in texts.items():
        damping = _K1 * (1 - _B + _B * len(text) / mean)
        counts = ((text.count(root), weight) for root, weight in rarity.items())
        scores[number] = sum(
            weight * count * (_K1 + 1) / (count + damping) for count, weight in counts if count
        )
    return scores
