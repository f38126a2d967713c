"""How well search does on questions whose answers are known: the user's, or made from the vault.

Each question is asked by words alone, by vectors alone and by both, so that a user sees what a
model or a setting does to their own notes. Notes are ranked with one passage each; whether the
answer itself is there is looked up in the passages that `search` shows, ungrouped and cut.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from obsidian_rag.errors import IndexStale, ObsidianRagError
from obsidian_rag.search.answer import Answer, Hit, Request, Signals
from obsidian_rag.search.evaluation.golden import Question
from obsidian_rag.search.measures import (
    Measures,
    mean,
    measure,
    mildest_threshold,
    share_below,
)

# Answers a request, and says what is wrong with the answer.
Ask = Callable[[Request], tuple[Answer, ObsidianRagError | None]]
SIGNALS = (Signals.WORDS, Signals.VECTORS, Signals.HYBRID)
# What `leave_out` may name.
PARTS = ("text", "code", "title", "heading", "letters", "static", "meaning", "date")
# As many passages as `search` shows when nobody says otherwise.
_SHOWN = 5
_MOST_WRONG = 0.05


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """How questions are asked: how many notes count, in which ways, and without which signals."""

    depth: int = 10
    ways: tuple[Signals, ...] = SIGNALS
    leave_out: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one question, asked in one way.

    `rank` is that of the first right note, `answered_at` that of the first shown passage which has
    the answer; both are None if there is none.
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
    """The measures of a category by signal, over so many questions that have an answer."""

    category: str
    questions: int
    by_signals: Mapping[Signals, Measures]
    answers: Mapping[Signals, AnswersSeen]


@dataclass(frozen=True, slots=True)
class Weakness:
    """Which answers were called weak, and which would be by the best threshold.

    `found_weak` counts answerable questions that were called weak although a right note is among
    the first five. A confidence below `threshold` has at most 5 % of the answerable questions.
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
    """What an evaluation found; with `trouble`, signals that need vectors may be missing.

    Questions that nothing answers are in no category: `weakness` is about them. So many of the
    `chunks` have meaning vectors; None where there is no transformer.
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
        """The outcomes of the ranking that search uses; by words if there is no other."""
        return _main(self.outcomes)

    @property
    def with_meaning(self) -> int:
        """How many questions were answered with the help of meaning vectors."""
        return sum("meaning" in outcome.used for outcome in self.main)

    def worst(self, most: int) -> list[Outcome]:
        """The questions that the main ranking answers worst, those without a fault left out."""
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
        IndexNotFound, IndexCorrupted: there is nothing to answer from.
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
            else:  # It was answered by words alone: no measure of what was asked for.
                del found[way]
    on_progress(len(questions), len(questions))
    outcomes = {way: tuple(some) for way, some in found.items()}
    return report_of(outcomes, trouble)


def report_of(
    outcomes: Mapping[Signals, tuple[Outcome, ...]], trouble: ObsidianRagError | None = None
) -> Report:
    """The numbers of some outcomes."""
    some = next(iter(outcomes.values()), ())
    categories = dict.fromkeys(one.question.category for one in some if one.question.is_answerable)
    return Report(
        tuple(_evaluated(name, outcomes) for name in categories),
        _evaluated(None, outcomes),
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
    """No answer at all promises nothing either."""
    return answer.is_weak or not answer.hits


def _answered_at(ask: Ask, question: Question, way: Signals, options: EvalOptions) -> int | None:
    if question.answer is None:
        return None
    shown = Request(
        question.query,
        limit=_SHOWN,
        signals=way,
        today=question.today,
        leave_out=options.leave_out,
    )
    expression = re.compile(question.answer, re.IGNORECASE | re.MULTILINE)
    hits = ask(shown)[0].hits
    return next((at for at, hit in enumerate(hits, 1) if expression.search(hit.text)), None)


def _evaluated(category: str | None, outcomes: Mapping[Signals, tuple[Outcome, ...]]) -> Evaluated:
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
        {way: _answers(some) for way, some in chosen.items()},
    )


def _answers(outcomes: Iterable[Outcome]) -> AnswersSeen:
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
    threshold = mildest_threshold(confidences, _MOST_WRONG)
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
