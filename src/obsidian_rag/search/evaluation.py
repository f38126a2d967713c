"""Measure search on questions with known answers: the user's, or generated from the vault.

Each question is asked by words alone, by vectors alone and by both, so that users see the effect of
a model or a setting on their own notes. Notes are ranked with one passage each; whether the answer
itself was found is checked in the passages that `search` shows, ungrouped and cut.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from obsidian_rag.errors import IndexStale, ObsidianRagError
from obsidian_rag.search.answer import Answer, Hit, Request, Signals
from obsidian_rag.search.golden import Question

Grades = Mapping[str, float]
# Answers a request; the error, if any, says what is wrong with the answer.
Ask = Callable[[Request], tuple[Answer, ObsidianRagError | None]]
SIGNALS = (Signals.WORDS, Signals.VECTORS, Signals.HYBRID)
# The signals that `leave_out` may name.
PARTS = ("text", "code", "title", "heading", "letters", "static", "meaning", "date")
# The default number of passages that `search` shows.
_SHOWN_PASSAGES = 5
_MAX_WRONG_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of one ranking, or their means over several; all from 0 to 1."""

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
    """The mean of each measure; 0 for an empty list."""
    return Measures(
        **{
            field.name: math.fsum(getattr(one, field.name) for one in measured)
            / max(1, len(measured))
            for field in fields(Measures)
        }
    )


def mildest_threshold(answerable: Sequence[float], most_wrong: float) -> float:
    """The highest threshold with at most this share of answerable questions below it."""
    ordered = sorted(answerable)
    return ordered[int(most_wrong * len(ordered))] if ordered else 0.0


def share_below(confidences: Sequence[float], threshold: float) -> float:
    """The share of confidences below a threshold; 0 for an empty list."""
    return sum(one < threshold for one in confidences) / max(1, len(confidences))


def ndcg(ranking: Sequence[str], relevant: Grades, depth: int) -> float:
    """Gain of the first `depth` notes, discounted by log2 of the rank, over the best possible gain.

    The gain of a note is its grade, as in trec_eval, so that results compare to published ones.
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


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """How to ask questions: how many notes count, which rankings, and which signals to ignore."""

    depth: int = 10
    ways: tuple[Signals, ...] = SIGNALS
    leave_out: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one question, asked in one way.

    `rank` is the rank of the first relevant note, `answered_at` that of the first shown passage
    with the answer; None if there is none.
    """

    question: Question
    position: int
    measures: Measures
    rank: int | None
    answered_at: int | None
    is_weak: bool
    confidence: float
    used: frozenset[str]
    first: Hit | None


@dataclass(frozen=True, slots=True)
class AnswersSeen:
    """How often the first passage, or one of the first three, has the answer."""

    questions: int
    answer_at_1: float
    answer_at_3: float


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The measures of a category by ranking, over its answerable questions."""

    category: str
    questions: int
    by_signals: Mapping[Signals, Measures]
    answers: Mapping[Signals, AnswersSeen]


@dataclass(frozen=True, slots=True)
class Weakness:
    """Which answers were called weak, and which would be with the best threshold.

    `found_weak` counts answerable questions that were called weak although a relevant note is among
    the first five. At most 5 % of the answerable questions have a confidence below `threshold`.
    """

    answerable: int
    answerable_weak: int
    found_weak: int
    unanswerable: int
    unanswerable_weak: int
    threshold: float
    would_be_wrong: float
    would_be_caught: float
    answerable_confidence: tuple[float, ...]
    unanswerable_confidence: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The results of an evaluation; with `trouble`, rankings that need vectors may be missing.

    Questions without an answer count in `weakness`, not in a category. `meaning_vectors` is the
    number of `chunks` that have one; None if there is no transformer.
    """

    categories: tuple[Evaluated, ...]
    overall: Evaluated
    weakness: Weakness
    outcomes: Mapping[Signals, tuple[Outcome, ...]]
    trouble: ObsidianRagError | None
    meaning_vectors: int | None = None
    chunks: int = 0

    @property
    def main(self) -> tuple[Outcome, ...]:
        """The outcomes of the ranking that search uses, or of the best one available."""
        return _main(self.outcomes)

    @property
    def with_meaning(self) -> int:
        """How many questions were answered using meaning vectors."""
        return sum("meaning" in outcome.used for outcome in self.main)

    def worst(self, most: int) -> list[Outcome]:
        """The questions that the main ranking answers worst, without the perfect ones."""
        faulty = [(_quality(one), one.position, one) for one in self.main if _quality(one) < 1]
        return [one for _, _, one in sorted(faulty, key=lambda item: item[:2])[:most]]


def evaluate_search(
    ask: Ask,
    questions: Sequence[Question],
    options: EvalOptions,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Ask every question in every way, and measure the first `depth` notes of each answer.

    Raises:
        IndexNotFound, IndexCorrupted: there is no usable index.
    """
    found: dict[Signals, list[Outcome]] = {way: [] for way in options.ways}
    trouble: ObsidianRagError | None = None
    for done, question in enumerate(questions):
        on_progress(done, len(questions))
        for way in list(found):
            outcome, problem = _outcome(ask, done, question, way, options)
            trouble = trouble or problem
            if problem is None or isinstance(problem, IndexStale) or way is Signals.WORDS:
                found[way].append(outcome)
            else:  # It fell back to words alone, so it does not measure this ranking.
                del found[way]
    on_progress(len(questions), len(questions))
    outcomes = {way: tuple(some) for way, some in found.items()}
    return report_of(outcomes, trouble)


def report_of(
    outcomes: Mapping[Signals, tuple[Outcome, ...]], trouble: ObsidianRagError | None = None
) -> Report:
    """The report of these outcomes."""
    some = next(iter(outcomes.values()), ())
    categories = dict.fromkeys(one.question.category for one in some if one.question.is_answerable)
    return Report(
        tuple(_evaluate_category(name, outcomes) for name in categories),
        _evaluate_category(None, outcomes),
        _weakness(_main(outcomes)),
        outcomes,
        trouble,
    )


def _main(outcomes: Mapping[Signals, tuple[Outcome, ...]]) -> tuple[Outcome, ...]:
    ways = (Signals.HYBRID, Signals.WORDS, Signals.VECTORS)
    return next((outcomes[way] for way in ways if way in outcomes), ())


def _quality(outcome: Outcome) -> float:
    if outcome.question.is_answerable:
        return outcome.measures.ndcg_at_5
    return float(outcome.is_weak)


def _outcome(
    ask: Ask, position: int, question: Question, way: Signals, options: EvalOptions
) -> tuple[Outcome, ObsidianRagError | None]:
    request = Request(
        question.query,
        limit=options.depth + (question.excluded is not None),
        signals=way,
        group_by_note=True,
        today=question.today,
        leave_out=options.leave_out,
    )
    answer, trouble = ask(request)
    hits = [hit for hit in answer.hits if hit.source_file != question.excluded]
    ranking = list(dict.fromkeys(hit.source_file for hit in hits))[: options.depth]
    ranks = (at for at, path in enumerate(ranking, 1) if question.relevant.get(path, 0.0) > 0)
    outcome = Outcome(
        question=question,
        position=position,
        measures=measure(ranking, question.relevant),
        rank=next(ranks, None),
        answered_at=_answered_at(ask, question, way, options),
        is_weak=_is_weak(answer),
        confidence=answer.confidence,
        used=frozenset(name for hit in hits for name in hit.why.signals),
        first=hits[0] if hits else None,
    )
    return outcome, trouble


def _is_weak(answer: Answer) -> bool:
    """An empty answer counts as weak too."""
    return answer.is_weak or not answer.hits


def _answered_at(ask: Ask, question: Question, way: Signals, options: EvalOptions) -> int | None:
    if question.answer is None:
        return None
    shown = Request(
        question.query,
        limit=_SHOWN_PASSAGES,
        signals=way,
        today=question.today,
        leave_out=options.leave_out,
    )
    expression = re.compile(question.answer, re.IGNORECASE | re.MULTILINE)
    hits = ask(shown)[0].hits
    return next((at for at, hit in enumerate(hits, 1) if expression.search(hit.text)), None)


def _evaluate_category(
    category: str | None, outcomes: Mapping[Signals, tuple[Outcome, ...]]
) -> Evaluated:
    chosen = {
        way: [
            one
            for one in some
            if one.question.is_answerable and category in (None, one.question.category)
        ]
        for way, some in outcomes.items()
    }
    return Evaluated(
        category or "all",
        max(map(len, chosen.values()), default=0),
        {way: mean([one.measures for one in some]) for way, some in chosen.items()},
        {way: _count_answers(some) for way, some in chosen.items()},
    )


def _count_answers(outcomes: Iterable[Outcome]) -> AnswersSeen:
    places = [one.answered_at for one in outcomes if one.question.answer is not None]
    count = max(1, len(places))
    return AnswersSeen(
        len(places),
        sum(place == 1 for place in places) / count,
        sum(place is not None and place <= 3 for place in places) / count,
    )


def _weakness(outcomes: Sequence[Outcome]) -> Weakness:
    answerable = [one for one in outcomes if one.question.is_answerable]
    others = [one for one in outcomes if not one.question.is_answerable]
    confidences = tuple(sorted(one.confidence for one in answerable))
    other_confidences = tuple(sorted(one.confidence for one in others))
    threshold = mildest_threshold(confidences, _MAX_WRONG_SHARE)
    return Weakness(
        answerable=len(answerable),
        answerable_weak=sum(one.is_weak for one in answerable),
        found_weak=sum(one.is_weak and one.measures.hit_at_5 > 0 for one in answerable),
        unanswerable=len(others),
        unanswerable_weak=sum(one.is_weak for one in others),
        threshold=threshold,
        would_be_wrong=share_below(confidences, threshold),
        would_be_caught=share_below(other_confidences, threshold),
        answerable_confidence=confidences,
        unanswerable_confidence=other_confidences,
    )
