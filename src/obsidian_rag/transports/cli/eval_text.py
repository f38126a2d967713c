"""The verdict of `eval`: what its numbers mean, in sentences. Pure."""

from typing import TYPE_CHECKING

from obsidian_rag.transports.cli.output import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from obsidian_rag.tools import Evaluated, Report, Weakness

# With fewer questions, a difference of _SIGNIFICANT_NDCG in nDCG may be chance.
_MIN_QUESTIONS = 30
_SIGNIFICANT_NDCG = 0.01
# A category with this many questions is judged separately; hybrid may lose at most _MAX_LOSS.
_MIN_CATEGORY_QUESTIONS = 12
_MAX_LOSS = 0.03
# The `is_weak` flag counts as reliable if it catches at least, and is wrong at most, this share.
_MIN_CAUGHT = 0.8
_MAX_WRONG = 0.05
_POINTS = (0.05, 0.25, 0.5, 0.75, 0.95)


def verdict(report: "Report", half: str) -> list[str]:
    """The sentences below the table; `half` names the part of the file that was measured."""
    return list(_sentences(report, half))


def _sentences(report: "Report", half: str) -> "Iterator[str]":
    weakness = report.weakness
    if half:
        others = f" and {weakness.unanswerable:,} without" if weakness.unanswerable else ""
        yield f"{half.capitalize()}: {weakness.answerable:,} with an answer{others}."
    if report.overall.questions:
        yield from _describe_overall(report.overall)
        yield from _compare_parts(report)
        yield from _describe_meaning(report)
        yield from _describe_answers(report.overall)
    if weakness.unanswerable:
        yield from _describe_weakness(weakness)


def _describe_overall(overall: "Evaluated") -> "Iterator[str]":
    by_name = {way.value: measures for way, measures in overall.by_signals.items()}
    best = by_name.get("hybrid") or by_name["words"]
    yield (
        f"Search finds a right note first for {percent(best.hit_at_1)} of"
        f" {counted(overall.questions, 'question')}, among the first five for"
        f" {percent(best.hit_at_5)}."
    )
    if "hybrid" not in by_name:
        return
    gain = best.ndcg_at_5 - by_name["words"].ndcg_at_5
    by_how_much = f"(nDCG@5 {gain:+.3f} over words alone)"
    if overall.questions < _MIN_QUESTIONS:
        yield "With so few questions, whether the embedder helps may be chance."
    elif gain >= _SIGNIFICANT_NDCG:
        yield f"The embedder helps {by_how_much}."
    elif gain <= -_SIGNIFICANT_NDCG:
        yield f"The embedder makes it worse {by_how_much}."
    else:
        yield f"The embedder makes no difference here {by_how_much}."


def _compare_parts(report: "Report") -> "Iterator[str]":
    """Whether hybrid loses to words or to vectors alone, overall or in a category."""
    overall = _loss(report.overall)
    if overall is None:
        return
    if overall[0] > 0:
        yield f"Over all questions hybrid is {overall[0]:.3f} behind {overall[1]} (nDCG@5)."
    judged = [one for one in report.categories if one.questions >= _MIN_CATEGORY_QUESTIONS]
    losses = [(one.category, *loss) for one in judged if (loss := _loss(one)) is not None]
    behind = [f"{name} ({loss:.3f} behind {by})" for name, loss, by in losses if loss > _MAX_LOSS]
    if behind:
        yield (
            f"Hybrid is more than {_MAX_LOSS} behind the better of words and vectors"
            f" in: {', '.join(behind)}."
        )
    elif judged:
        yield (
            f"In no category of {_MIN_CATEGORY_QUESTIONS} questions or more is hybrid more than"
            f" {_MAX_LOSS} behind the better of words and vectors."
        )
    else:
        yield f"No category has {_MIN_CATEGORY_QUESTIONS} questions, enough to be judged by itself."


def _loss(one: "Evaluated") -> "tuple[float, str] | None":
    """How far hybrid is behind the better of words and vectors, and which of them that is."""
    by_name = {way.value: measures.ndcg_at_5 for way, measures in one.by_signals.items()}
    hybrid = by_name.pop("hybrid", None)
    if hybrid is None or not by_name:
        return None
    better = max(by_name, key=lambda name: by_name[name])
    return by_name[better] - hybrid, better


def _describe_meaning(report: "Report") -> "Iterator[str]":
    if [way.value for way in report.outcomes] == ["words"]:
        return
    if report.meaning_vectors is None:
        yield "There are no meaning vectors: no transformer is installed, or it is off."
        return
    used = f"they took part in {report.with_meaning:,} of {counted(len(report.main), 'answer')}"
    have = f"Meaning vectors: {report.meaning_vectors:,} of {counted(report.chunks, 'passage')}"
    if report.meaning_vectors < report.chunks:
        have += ", so expect better when all are there"
    yield f"{have}; {used}."


def _describe_answers(overall: "Evaluated") -> "Iterator[str]":
    seen = list(overall.answers.values())[-1]
    if seen.questions:
        yield (
            f"The first passage shown has the answer for {percent(seen.answer_at_1)} of"
            f" {counted(seen.questions, 'question')}, one of the first three for"
            f" {percent(seen.answer_at_3)}."
        )


def _describe_weakness(weakness: "Weakness") -> "Iterator[str]":
    caught = weakness.unanswerable_weak / weakness.unanswerable
    wrong = weakness.answerable_weak / max(1, weakness.answerable)
    if caught >= _MIN_CAUGHT and wrong <= _MAX_WRONG:
        worth = "The flag can be trusted."
    elif wrong > _MAX_WRONG:
        worth = "The flag cannot be trusted: it doubts too many good answers."
    else:
        worth = "The flag misses too many of them."
    yield (
        f"Called weak: {weakness.unanswerable_weak:,} of"
        f" {counted(weakness.unanswerable, 'question')} that nothing answers ({percent(caught)}),"
        f" and {weakness.answerable_weak:,} of {weakness.answerable:,} answerable ones"
        f" ({percent(wrong)}), {weakness.found_weak:,} of them with a right note among the first"
        f" five. {worth}"
    )
    if max(weakness.answerable_confidence, default=0.0) > 0:
        yield (
            f"A confidence below {weakness.threshold:.3f} has {percent(weakness.would_be_wrong)}"
            f" of the answerable and {percent(weakness.would_be_caught)} of the others."
        )
        yield (
            f"Confidence at {', '.join(f'{point:.0%}' for point in _POINTS)}: answerable"
            f" {_points(weakness.answerable_confidence)}; not answerable"
            f" {_points(weakness.unanswerable_confidence)}."
        )


def _points(ordered: "Sequence[float]") -> str:
    last = len(ordered) - 1
    return " ".join(f"{ordered[round(point * last)]:.2f}" for point in _POINTS)


def percent(rate: float) -> str:
    """A share as a percentage."""
    return f"{rate:.0%}"
