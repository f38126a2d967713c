"""eval: measures search on questions with known answers, and related notes on links."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from obsidian_rag.errors import InvalidArgument, NotFound
from obsidian_rag.transports.cli.backend import open_engine
from obsidian_rag.transports.cli.eval_text import percent, verdict
from obsidian_rag.transports.cli.note_names import complete_vault
from obsidian_rag.transports.cli.output import (
    JsonFlag,
    counted,
    plain,
    print_data,
    print_envelope,
    print_trouble,
    progress,
    width,
    wrap,
)
from obsidian_rag.transports.cli.streams import say, style
from obsidian_rag.transports.lazy import tools

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from obsidian_rag.tools import Evaluated, LinksFound, Measurement, Outcome, Report, Weakness

_LINKS = 1000
_MAX_UNKNOWN_SHOWN = 10
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
_WEAKNESS_NAMES = {
    "answerable_weak": "answerable_called_weak",
    "found_weak": "found_but_called_weak",
    "unanswerable_weak": "unanswerable_called_weak",
    "would_be_wrong": "answerable_below",
    "would_be_caught": "unanswerable_below",
}
_CALIBRATION = ("threshold", "answerable_below", "unanswerable_below")


class HalfName(StrEnum):
    """Which questions of a file, by position."""

    ALL = "all"
    EVEN = "even"
    ODD = "odd"


def evaluate(
    golden: Annotated[
        Path | None, typer.Argument(help="JSON list or JSON lines of query and relevant notes")
    ] = None,
    use_own: Annotated[
        bool, typer.Option("--self", help="Make the questions from the vault itself")
    ] = False,
    use_links: Annotated[
        bool,
        typer.Option("--links", help="Remove links, and see whether `related` finds them"),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Use at most this many questions, of each kind with --self (100), or links (1000)",
        ),
    ] = None,
    half: Annotated[
        HalfName, typer.Option(help="Only every second question; even begins with the first")
    ] = HalfName.ALL,
    worst: Annotated[
        int,
        typer.Option(min=0, help="Also list this many of the worst questions, and what came first"),
    ] = 0,
    without: Annotated[
        list[str] | None, typer.Option(help="Leave out a signal, such as meaning or letters")
    ] = None,
    vault: Annotated[
        str | None,
        typer.Option(help="Ask only this vault, by name or link id", autocompletion=complete_vault),
    ] = None,
    json_output: JsonFlag = False,
) -> int:
    """Measure how well search and `related` work on your notes

    Search is measured with words, with vectors and with both; `related` with your own links.

    Example:  obsidian-rag eval --self
    """
    if (golden is not None) + use_own + use_links != 1:
        raise InvalidArgument(
            "eval needs a golden file, --self or --links.", "Try `obsidian-rag eval --self`."
        )
    if not use_links:
        wanted = tools.Measurement(golden, limit, half.value, frozenset(without or ()), vault)
        return _measure_search(wanted, worst, json_output)
    if half is not HalfName.ALL or worst or without or vault:
        raise InvalidArgument(
            "--half, --worst, --without and --vault are about questions, not about links.",
            "Try `obsidian-rag eval --links`.",
        )
    return _measure_links(limit or _LINKS, json_output)


def _measure_search(wanted: "Measurement", worst: int, json_output: bool) -> int:
    with open_engine() as engine, progress("questions") as show:
        report, unknown = tools.measure_search(engine, wanted, show)
    if json_output:
        fields = _report_fields(report, unknown, wanted.half)
        if worst:
            fields["worst"] = [_outcome_fields(report, one) for one in report.worst(worst)]
        print_envelope(tools.success(fields, trouble=report.trouble))
        return 0
    half = _half_text(wanted)
    _print_table(report, half)
    print()
    for sentence in verdict(report, half):
        print(sentence)
    for one in report.worst(worst):
        _print_outcome(report, one)
    _print_caveats(report, unknown)
    return 0


def _half_text(wanted: "Measurement") -> str:
    """The label of the half of a file that was measured."""
    if wanted.half == HalfName.ALL:
        return "both halves" if wanted.golden is not None else ""
    return f"{wanted.half} half"


def _report_fields(report: "Report", unknown: tuple[str, ...], half: str) -> dict[str, object]:
    """All numbers as JSON, without questions or text of notes."""
    return {
        "half": half,
        "overall": _category_fields(report.overall),
        "categories": {one.category: _category_fields(one) for one in report.categories},
        "weak": _weakness_fields(report.weakness),
        "meaning": {
            "vectors": report.meaning_vectors,
            "chunks": report.chunks,
            "answers": report.with_meaning,
        },
        "verdict": verdict(report, ""),
        "unknown_notes": list(unknown),
    }


def _category_fields(one: "Evaluated") -> dict[str, object]:
    fields: dict[str, object] = {"questions": one.questions}
    for way, measures in one.by_signals.items():
        seen = one.answers[way]
        answers = {name: getattr(seen, name) if seen.questions else None for name in _ANSWERS}
        fields[way.value] = _round({**tools.to_json(measures), **answers})
    fields["questions_with_answer_text"] = _with_answers(one)
    return fields


def _weakness_fields(weakness: "Weakness") -> dict[str, object]:
    fields = _round(tools.to_json(weakness, _WEAKNESS_NAMES))
    return {**fields, "calibration": {name: fields.pop(name) for name in _CALIBRATION}}


def _outcome_fields(report: "Report", one: "Outcome") -> dict[str, object]:
    """A question as JSON, with the first result and the reasons for it."""
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


def _print_table(report: "Report", half: str) -> None:
    """The measures by category and in total; the corner names the half."""
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
            values = {**tools.to_json(measures), **(tools.to_json(seen) if seen.questions else {})}
            print(f"{label}{way.value:<8}{_row(values, names)}")
            label = " " * len(label)


def _row(values: "Mapping[str, float]", names: "Mapping[str, str]") -> str:
    texts = {head: f"{values[name]:.3f}" if name in values else "–" for name, head in names.items()}
    return "".join(f"  {text:>{max(5, len(head))}}" for head, text in texts.items())


def _label(one: "Evaluated") -> str:
    return f"{one.category} ({one.questions})"


def _with_answers(one: "Evaluated") -> int:
    return max((seen.questions for seen in one.answers.values()), default=0)


def _print_outcome(report: "Report", one: "Outcome") -> None:
    """A question with the expected notes, the first result, and the reasons for it."""
    question = one.question
    print()
    head = f"{question.position}  {question.category}  nDCG@5 {one.measures.ndcg_at_5:.2f}"
    if not question.is_answerable:
        head = f"{question.position}  {question.category}  not called weak"
    elif one.is_weak:
        head += "  called weak"
    print(f"{style(head, bold=True)}  confidence {one.confidence:.2f}")
    for line in _outcome_lines(report, one):
        for part in wrap(plain(line), width() - 3, 4):
            print(f"   {part}")


def _outcome_lines(report: "Report", one: "Outcome") -> "Iterator[str]":
    question = one.question
    yield question.query
    if question.is_answerable:
        ranks = ", ".join(
            f"{way} {rank or 'not found'}" for way, rank in _ranks(report, one).items()
        )
        best = max(question.relevant, key=lambda path: question.relevant[path])
        others = len(question.relevant) - 1
        more = f" and {others} more" if others else ""
        yield f"wanted: {best}{more}; first right note: {ranks}"
    if question.answer is not None:
        where = f"in passage {one.answered_at}" if one.answered_at else "not in a shown passage"
        yield f"answer: {where}"
    if one.first is None:
        yield "first:  no passage"
        return
    hit = one.first
    section = " › ".join(hit.heading_path)
    shares = ", ".join(f"{name} {share:.2f}" for name, share in hit.why.signals.items() if share)
    yield f"first:  {hit.source_file}:{hit.start_line} {section}  {hit.score:.2f}"
    yield f"why:    {shares}; words: {', '.join(hit.why.terms) or '–'}"


def _ranks(report: "Report", one: "Outcome") -> "dict[str, int | None]":
    return {way.value: some[one.position].rank for way, some in report.outcomes.items()}


def _print_caveats(report: "Report", unknown: tuple[str, ...]) -> None:
    if unknown:
        say("Not in the index, and so counted as not found:")
        for path in unknown[:_MAX_UNKNOWN_SHOWN]:
            say(f"  {path}")
        if len(unknown) > _MAX_UNKNOWN_SHOWN:
            say(f"  … and {len(unknown) - _MAX_UNKNOWN_SHOWN} more")
    if report.trouble is not None:
        print_trouble(report.trouble.body, sys.stderr)


def _measure_links(limit: int, json_output: bool) -> int:
    with open_engine() as engine, progress("links") as show:
        found = tools.measure_links(engine, limit, show)
    if not found.links:
        raise NotFound(
            "No note links to another one, so there is nothing to measure.",
            "Link some notes, run `obsidian-rag sync`, and try again.",
        )
    if json_output:
        rates = {f"hit_at_{most}": rate for most, rate in found.hits.items()}
        rates = _round({**rates, "mrr": found.mrr})
        print_data({"notes": found.notes, "links": found.links, **rates})
    else:
        _print_links(found)
    return 0


def _print_links(found: "LinksFound") -> None:
    names = ("notes", "links", *(f"Hit@{most}" for most in found.hits), "MRR")
    print("".join(f"{name:>9}" for name in names))
    numbers = "".join(f"{rate:>9.3f}" for rate in (*found.hits.values(), found.mrr))
    print(f"{found.notes:>9}{found.links:>9}{numbers}")
    most, rate = list(found.hits.items())[-1]
    print(
        f"\n`related` has the linked note among the first {most} for {percent(rate)} of"
        f" {counted(found.links, 'link')}."
    )


def _round(value: Any) -> Any:
    """The numbers of a JSON value, with four decimals."""
    if isinstance(value, dict):
        return {name: _round(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_round(inner) for inner in value]
    return round(value, 4) if isinstance(value, float) else value
