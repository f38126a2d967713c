"""eval: how well search does on questions whose answers are known, and related notes on links."""

import contextlib
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from obsidian_rag.errors import InvalidArgument, NotFound
from obsidian_rag.transports.cli.output import JsonFlag, open_engine, print_envelope
from obsidian_rag.transports.cli.progress import progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obsidian_rag.engine import Engine, Evaluated, LinksFound, Question, Report

_OWN_QUESTIONS = 100
_LINKS = 1000
_UNKNOWN_SHOWN = 10
_MEASURES = {
    "ndcg_at_5": "nDCG@5",
    "ndcg_at_10": "nDCG@10",
    "mrr": "MRR",
    "hit_at_1": "Hit@1",
    "hit_at_5": "Hit@5",
    "recall_at_10": "recall@10",
}


def evaluate(
    golden: Annotated[
        Path | None, typer.Argument(help="JSON list or JSON lines of query and relevant notes")
    ] = None,
    use_own: Annotated[
        bool, typer.Option("--self", help="Make the questions from the vault itself")
    ] = False,
    use_links: Annotated[
        bool,
        typer.Option("--links", help="Take links away, and see whether `related` suggests them"),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Most questions of the file, of each kind with --self (100), or most links (1000)",
        ),
    ] = None,
    json_output: JsonFlag = False,
) -> int:
    """Measure how well search finds the right notes, or how well `related` suggests them

    Search is measured by words, by vectors and by both; related notes by your own links.

    Example:  obsidian-rag eval --self
    """
    if (golden is not None) + use_own + use_links != 1:
        raise InvalidArgument(
            "eval needs a golden file, --self or --links.", "Try `obsidian-rag eval --self`."
        )
    if use_links:
        return _measure_links(limit or _LINKS, json_output)
    return _measure_search(golden, limit, json_output)


def _measure_search(golden: Path | None, limit: int | None, json_output: bool) -> int:
    from obsidian_rag import tools
    from obsidian_rag.engine import evaluate as measure

    with contextlib.closing(open_engine()) as engine, progress("questions") as show:
        questions, unknown = _questions(engine, golden, limit)
        report = measure(engine, questions, on_progress=show)
    if json_output:
        print_envelope(tools.success(_fields(report, unknown), trouble=report.trouble))
        return 0
    _print(report)
    _tell(report, unknown)
    return 0


def _questions(
    engine: "Engine", golden: Path | None, limit: int | None
) -> "tuple[list[Question], tuple[str, ...]]":
    from obsidian_rag.engine import load_golden, own_questions

    if golden is not None:
        loaded = load_golden(engine, golden)
        return list(loaded.questions[:limit]), loaded.unknown
    made = own_questions(engine, limit or _OWN_QUESTIONS)
    if not made:
        raise NotFound(
            "No question can be made from this vault: it has no title of two words or more,"
            " no alias and no link within a sentence.",
            "Write a golden file: see docs/guides/eval.md.",
        )
    return made, ()


def _measure_links(limit: int, json_output: bool) -> int:
    from obsidian_rag import tools
    from obsidian_rag.engine import links_found

    with contextlib.closing(open_engine()) as engine, progress("links") as show:
        found = links_found(engine, limit, show)
    if not found.links:
        raise NotFound(
            "No note links to another one, so no link can be taken away.",
            "Link some notes, run `obsidian-rag sync`, and try again.",
        )
    if json_output:
        print_envelope(tools.success({"notes": found.notes, "links": found.links, **_rates(found)}))
    else:
        _print_links(found)
    return 0


def _rates(found: "LinksFound") -> dict[str, float]:
    return _rounded(
        {**{f"hit_at_{most}": rate for most, rate in found.hits.items()}, "mrr": found.mrr}
    )


def _print_links(found: "LinksFound") -> None:
    names = ("notes", "links", *(f"Hit@{most}" for most in found.hits), "MRR")
    print("".join(f"{name:>9}" for name in names))
    numbers = "".join(f"{rate:>9.3f}" for rate in (*found.hits.values(), found.mrr))
    print(f"{found.notes:>9}{found.links:>9}{numbers}")


def _fields(report: "Report", unknown: tuple[str, ...]) -> dict[str, object]:
    return {
        "overall": _evaluated_fields(report.overall),
        "categories": {one.category: _evaluated_fields(one) for one in report.categories},
        "unknown_notes": list(unknown),
    }


def _evaluated_fields(one: "Evaluated") -> dict[str, object]:
    by_signals = {signals.value: _rounded(asdict(m)) for signals, m in one.by_signals.items()}
    return {"questions": one.questions, **by_signals}


def _rounded(measures: "Mapping[str, float]") -> dict[str, float]:
    return {name: round(value, 4) for name, value in measures.items()}


def _print(report: "Report") -> None:
    shown = list(report.categories) if len(report.categories) > 1 else []
    shown.append(report.overall)
    width = max(len(_label(one)) for one in shown)
    print(" " * (width + 10) + "".join(f"{name:>10}" for name in _MEASURES.values()))
    for one in shown:
        label = _label(one)
        for signals, measures in one.by_signals.items():
            values = asdict(measures)
            numbers = "".join(f"{values[name]:>10.3f}" for name in _MEASURES)
            print(f"{label:<{width}}  {signals.value:<8}{numbers}")
            label = ""


def _label(one: "Evaluated") -> str:
    return f"{one.category} ({one.questions})"


def _tell(report: "Report", unknown: tuple[str, ...]) -> None:
    """What the numbers do not say, on stderr."""
    if unknown:
        print("Not in the index, and so counted as not found:", file=sys.stderr)
        for path in unknown[:_UNKNOWN_SHOWN]:
            print(f"  {path}", file=sys.stderr)
        if len(unknown) > _UNKNOWN_SHOWN:
            print(f"  … and {len(unknown) - _UNKNOWN_SHOWN} more", file=sys.stderr)
    if report.trouble is not None:
        error = report.trouble
        print(f"{error.code}: {error.message}\n  {error.suggestion}", file=sys.stderr)
