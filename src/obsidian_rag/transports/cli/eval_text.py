"""Formats the result of `eval` as tables, sentences and JSON; questions only on request."""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from obsidian_rag.transports.cli.output import counted, plain, print_trouble, width, wrapped
from obsidian_rag.transports.cli.streams import say, style

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from obsidian_rag.tools import Evaluated, Outcome, Report, Weakness

_MAX_UNKNOWN_SHOWN = 10
# With fewer questions, a difference of _SIGNIFICANT_NDCG in nDCG may be chance.
_MIN_QUESTIONS = 30
_SIGNIFICANT_NDCG = 0.01
# A category with this many questions is judged separately; hybrid may lose at most _MAX_LOSS.
_MIN_CATEGORY_QUESTIONS = 12
_MAX_LOSS = 0.03
# The `is_weak` flag counts as reliable if it catches at least, and is wrong at most, this share.
_MIN_CAUGHT = 0.8
_MAX_WRONG = 0.05
_MEASURES = {
    "ndcg_at_5": "nDCG@5",
    "ndcg_at_10": "nDCG@10",
    "mrr": "MRR",
    "hit_at_1": "Hit@1",
    "hit_at_3": "Hit@3",
    "hit_at_5": "Hit@5",
    "recall_at_10": "recall@10",
}
_ANSWERS = {"answer_at_1": "answer@1", "answer_at_3": "answer@3"}
_POINTS = (0.05, 0.25, 0.5, 0.75, 0.95)


def report_fields(report: "Report", unknown: tuple[str, ...], half: str) -> dict[str, object]:
    """All numbers as JSON, without questions or text of notes."""
    return {
        "half": half,
        "overall": _evaluated_fields(report.overall),
        "categories": {one.category: _evaluated_fields(one) for one in report.categories},
        "weak": _weakness_fields(report.weakness),
        "meaning": {
            "vectors": report.meaning_vectors,
            "chunks": report.chunks,
            "answers": report.with_meaning,
        },
        "verdict": verdict(report, ""),
        "unknown_notes": list(unknown),
    }


def _evaluated_fields(one: "Evaluated") -> dict[str, object]:
    fields: dict[str, object] = {"questions": one.questions}
    for way, measures in one.by_signals.items():
        seen = one.answers[way]
        answers = (seen.answer_at_1, seen.answer_at_3) if seen.questions else (None, None)
        fields[way.value] = {
            **rounded(asdict(measures)),
            **dict(zip(_ANSWERS, map(_rounded_or_none, answers), strict=True)),
        }
    fields["questions_with_answer_text"] = _with_answers(one)
    return fields


def _weakness_fields(weakness: "Weakness") -> dict[str, object]:
    return {
        "answerable": weakness.answerable,
        "answerable_called_weak": weakness.answerable_weak,
        "found_but_called_weak": weakness.found_weak,
        "unanswerable": weakness.unanswerable,
        "unanswerable_called_weak": weakness.unanswerable_weak,
        "calibration": {
            "threshold": round(weakness.threshold, 4),
            "answerable_below": round(weakness.would_be_wrong, 4),
            "unanswerable_below": round(weakness.would_be_caught, 4),
        },
        "answerable_confidence": [round(one, 4) for one in weakness.answerable_confidence],
        "unanswerable_confidence": [round(one, 4) for one in weakness.unanswerable_confidence],
    }


def worst_fields(report: "Report", most: int) -> list[dict[str, object]]:
    """The worst questions as JSON, with the first results and their reasons."""
    return [_outcome_fields(report, one) for one in report.worst(most)]


def _outcome_fields(report: "Report", one: "Outcome") -> dict[str, object]:
    hit = one.first
    first = hit and {
        "source_file": hit.source_file,
        "heading_path": list(hit.heading_path),
        "start_line": hit.start_line,
        "score": hit.score,
        "signals": hit.why.signals,
        "terms": list(hit.why.terms),
    }
    return {
        "position": one.question.position,
        "category": one.question.category,
        "query": one.question.query,
        "relevant": dict(one.question.relevant),
        "ranks": _ranks(report, one),
        "ndcg_at_5": round(one.measures.ndcg_at_5, 4),
        "answered_at": one.answered_at,
        "is_weak": one.is_weak,
        "confidence": round(one.confidence, 4),
        "first": first,
    }


def print_report(report: "Report", half: str) -> None:
    """The table of results by category and in total; the corner names the half."""
    shown = list(report.categories) if len(report.categories) > 1 else []
    shown = [one for one in (*shown, report.overall) if one.questions]
    names = {**_MEASURES, **(_ANSWERS if _with_answers(report.overall) else {})}
    if not shown:
        return
    corner = max(10 + max(len(_label(one)) for one in shown), len(half))
    print(f"{half:<{corner}}" + "".join(f"  {name:>5}" for name in names.values()))
    for one in shown:
        label = f"{_label(one):<{corner - 8}}"
        for way, measures in one.by_signals.items():
            seen = one.answers[way]
            answers = asdict(seen) if seen.questions else {}
            numbers = _cells({**asdict(measures), **answers}, names)
            print(f"{label}{way.value:<8}{numbers}")
            label = " " * len(label)


def _cells(values: "Mapping[str, float]", names: "Mapping[str, str]") -> str:
    texts = {head: f"{values[name]:.3f}" if name in values else "–" for name, head in names.items()}
    return "".join(f"  {text:>{max(5, len(head))}}" for head, text in texts.items())


def verdict(report: "Report", half: str) -> list[str]:
    """A summary of the numbers in sentences."""
    weakness = report.weakness
    said = []
    if half:
        none = f" and {weakness.unanswerable:,} without" if weakness.unanswerable else ""
        said.append(f"{half.capitalize()}: {weakness.answerable:,} with an answer{none}.")
    if report.overall.questions:
        said += _describe_overall(report.overall)
        said += _compare_parts(report)
        said += _describe_meaning(report)
        said += _describe_answers(report.overall)
    said += _describe_weakness(weakness)
    return said


def _describe_overall(overall: "Evaluated") -> list[str]:
    by_name = {way.value: measures for way, measures in overall.by_signals.items()}
    best = by_name.get("hybrid") or by_name["words"]
    said = [
        f"Search finds a right note first for {percent(best.hit_at_1)} of"
        f" {counted(overall.questions, 'question')}, among the first five for"
        f" {percent(best.hit_at_5)}."
    ]
    if "hybrid" not in by_name:
        return said
    gain = best.ndcg_at_5 - by_name["words"].ndcg_at_5
    by_how_much = f"(nDCG@5 {gain:+.3f} over words alone)"
    if overall.questions < _MIN_QUESTIONS:
        said.append("So few questions cannot tell whether the embedder helps.")
    elif gain >= _SIGNIFICANT_NDCG:
        said.append(f"The embedder helps {by_how_much}.")
    elif gain <= -_SIGNIFICANT_NDCG:
        said.append(f"The embedder makes it worse {by_how_much}.")
    else:
        said.append(f"The embedder makes no difference here {by_how_much}.")
    return said


def _compare_parts(report: "Report") -> list[str]:
    """Whether hybrid loses to one of its own parts anywhere."""
    losses = [_loss(one) for one in (*report.categories, report.overall)]
    judged = [one for one in report.categories if one.questions >= _MIN_CATEGORY_QUESTIONS]
    if not any(loss is not None for loss in losses):
        return []
    behind = [
        f"{one.category} ({loss:.3f} behind {better})"
        for one in judged
        if (found := _loss(one)) is not None
        for loss, better in [found]
        if loss > _MAX_LOSS
    ]
    said = []
    overall = losses[-1]
    if overall is not None and overall[0] > 0:
        said.append(f"Over all questions hybrid is {overall[0]:.3f} behind {overall[1]} (nDCG@5).")
    if behind:
        said.append(
            f"Hybrid is more than {_MAX_LOSS} behind the better of words and vectors"
            f" in: {', '.join(behind)}."
        )
    elif judged:
        said.append(
            f"In no category of {_MIN_CATEGORY_QUESTIONS} questions or more is hybrid more than"
            f" {_MAX_LOSS} behind the better of words and vectors."
        )
    else:
        said.append(
            f"No category has {_MIN_CATEGORY_QUESTIONS} questions, so none is judged by itself."
        )
    return said


def _describe_meaning(report: "Report") -> list[str]:
    if [way.value for way in report.outcomes] == ["words"]:
        return []
    if report.meaning_vectors is None:
        return ["There are no meaning vectors: no transformer is installed, or it is off."]
    used = f"they took part in {report.with_meaning:,} of {counted(len(report.main), 'answer')}"
    have = f"Meaning vectors: {report.meaning_vectors:,} of {counted(report.chunks, 'passage')}"
    if report.meaning_vectors < report.chunks:
        return [f"{have}, so expect better when all are there; {used}."]
    return [f"{have}; {used}."]


def _loss(one: "Evaluated") -> "tuple[float, str] | None":
    """How far hybrid is behind the better of words and vectors, and which of them that is."""
    by_name = {way.value: measures.ndcg_at_5 for way, measures in one.by_signals.items()}
    if "hybrid" not in by_name or len(by_name) < 2:
        return None
    hybrid = by_name.pop("hybrid")
    better = max(by_name, key=lambda name: by_name[name])
    return by_name[better] - hybrid, better


def _describe_answers(overall: "Evaluated") -> list[str]:
    seen = list(overall.answers.values())[-1]
    if not seen.questions:
        return []
    return [
        f"The first passage shown has the answer for {percent(seen.answer_at_1)} of"
        f" {counted(seen.questions, 'question')}, one of the first three for"
        f" {percent(seen.answer_at_3)}."
    ]


def _describe_weakness(weakness: "Weakness") -> list[str]:
    if not weakness.unanswerable:
        return []
    caught = weakness.unanswerable_weak / weakness.unanswerable
    wrong = weakness.answerable_weak / max(1, weakness.answerable)
    if caught >= _MIN_CAUGHT and wrong <= _MAX_WRONG:
        worth = "The flag can be trusted."
    elif wrong > _MAX_WRONG:
        worth = "The flag cannot be trusted: it doubts too many good answers."
    else:
        worth = "The flag misses too many of them."
    said = [
        f"Called weak: {weakness.unanswerable_weak:,} of"
        f" {counted(weakness.unanswerable, 'question')} that nothing answers ({percent(caught)}),"
        f" and {weakness.answerable_weak:,} of {weakness.answerable:,} answerable ones"
        f" ({percent(wrong)}), {weakness.found_weak:,} of them with a right note among the first"
        f" five. {worth}"
    ]
    if max(weakness.answerable_confidence, default=0.0) > 0:
        said += [
            f"A confidence below {weakness.threshold:.3f} has {percent(weakness.would_be_wrong)}"
            f" of the answerable and {percent(weakness.would_be_caught)} of the others.",
            f"Confidence at {', '.join(f'{point:.0%}' for point in _POINTS)}: answerable"
            f" {_points(weakness.answerable_confidence)}; not answerable"
            f" {_points(weakness.unanswerable_confidence)}.",
        ]
    return said


def _points(ordered: "Sequence[float]") -> str:
    last = len(ordered) - 1
    return " ".join(f"{ordered[round(point * last)]:.2f}" for point in _POINTS)


def print_worst(report: "Report", most: int) -> None:
    """The worst questions: the expected notes, the first results, and why."""
    for one in report.worst(most):
        question = one.question
        print()
        head = f"{question.position}  {question.category}  nDCG@5 {one.measures.ndcg_at_5:.2f}"
        if not question.is_answerable:
            head = f"{question.position}  {question.category}  not called weak"
        elif one.is_weak:
            head += "  called weak"
        print(f"{style(head, bold=True)}  confidence {one.confidence:.2f}")
        for line in _worst_lines(report, one):
            for part in wrapped(plain(line), width() - 3, 4):
                print(f"   {part}")


def _worst_lines(report: "Report", one: "Outcome") -> "list[str]":
    question = one.question
    lines = [question.query]
    if question.is_answerable:
        ranks = ", ".join(
            f"{way} {rank or 'not found'}" for way, rank in _ranks(report, one).items()
        )
        best = max(question.relevant, key=lambda path: question.relevant[path])
        others = len(question.relevant) - 1
        more = f" and {others} more" if others else ""
        lines.append(f"wanted: {best}{more}; first right note: {ranks}")
    if question.answer is not None:
        place = one.answered_at and f"in passage {one.answered_at}"
        lines.append(f"answer: {place or 'in none of the passages shown'}")
    if one.first is None:
        return [*lines, "first:  nothing at all"]
    hit = one.first
    section = " › ".join(hit.heading_path)
    shares = ", ".join(f"{name} {share:.2f}" for name, share in hit.why.signals.items() if share)
    return [
        *lines,
        f"first:  {hit.source_file}:{hit.start_line} {section}  {hit.score:.2f}",
        f"why:    {shares}; words: {', '.join(hit.why.terms) or 'none'}",
    ]


def _ranks(report: "Report", one: "Outcome") -> "dict[str, int | None]":
    return {way.value: some[one.position].rank for way, some in report.outcomes.items()}


def print_caveats(report: "Report", unknown: tuple[str, ...]) -> None:
    """Print remarks on the numbers to stderr."""
    if unknown:
        say("Not in the index, and so counted as not found:")
        for path in unknown[:_MAX_UNKNOWN_SHOWN]:
            say(f"  {path}")
        if len(unknown) > _MAX_UNKNOWN_SHOWN:
            say(f"  … and {len(unknown) - _MAX_UNKNOWN_SHOWN} more")
    if report.trouble is not None:
        print_trouble(report.trouble.body, sys.stderr)


def percent(rate: float) -> str:
    """A share as a percentage."""
    return f"{rate:.0%}"


def rounded(measures: "Mapping[str, float]") -> dict[str, float]:
    """Round numbers for JSON."""
    return {name: round(value, 4) for name, value in measures.items()}


def _rounded_or_none(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _with_answers(one: "Evaluated") -> int:
    return max((seen.questions for seen in one.answers.values()), default=0)


def _label(one: "Evaluated") -> str:
    return f"{one.category} ({one.questions})"
