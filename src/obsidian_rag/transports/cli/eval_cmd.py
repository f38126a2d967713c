"""eval: how well search does on questions whose answers are known, and related notes on links."""

import contextlib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from obsidian_rag.errors import InvalidArgument, NotFound
from obsidian_rag.transports.cli.eval_text import (
    percent,
    print_caveats,
    print_report,
    print_worst,
    report_fields,
    rounded,
    verdict,
    worst_fields,
)
from obsidian_rag.transports.cli.output import JsonFlag, counted, open_engine, print_envelope
from obsidian_rag.transports.cli.progress import progress

if TYPE_CHECKING:
    from obsidian_rag.engine import Engine, LinksFound, Question

_OWN_QUESTIONS = 100
_LINKS = 1000


class HalfName(StrEnum):
    """Which questions of a file, by position."""

    ALL = "all"
    EVEN = "even"
    ODD = "odd"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the command line asks of a measurement of search."""

    golden: Path | None
    limit: int | None
    half: HalfName
    worst: int
    without: frozenset[str]

    @property
    def half_text(self) -> str:
        """Which half of a file the numbers are from."""
        if self.half is HalfName.ALL:
            return "both halves" if self.golden is not None else ""
        return f"{self.half.value} half"


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
    half: Annotated[
        HalfName, typer.Option(help="Only every second question; even begins with the first")
    ] = HalfName.ALL,
    worst: Annotated[
        int, typer.Option(min=0, help="List this many of the worst questions and what came first")
    ] = 0,
    without: Annotated[
        list[str] | None, typer.Option(help="Leave out a signal, such as meaning or letters")
    ] = None,
    json_output: JsonFlag = False,
) -> int:
    """Measure how well search and `related` work on your notes

    Search is measured by words, by vectors and by both; related notes by your own links.

    Example:  obsidian-rag eval --self
    """
    if (golden is not None) + use_own + use_links != 1:
        raise InvalidArgument(
            "eval needs a golden file, --self or --links.", "Try `obsidian-rag eval --self`."
        )
    wanted = _Wanted(golden, limit, half, worst, frozenset(without or ()))
    if not use_links:
        return _measure_search(wanted, json_output)
    if half is not HalfName.ALL or worst or without:
        raise InvalidArgument(
            "--half, --worst and --without are about questions, not about links.",
            "Try `obsidian-rag eval --links`.",
        )
    return _measure_links(limit or _LINKS, json_output)


def _measure_search(wanted: _Wanted, json_output: bool) -> int:
    from obsidian_rag import tools
    from obsidian_rag.engine import PARTS, EvalOptions, Half, half_of
    from obsidian_rag.engine import evaluate as measure

    if unknown_parts := sorted(wanted.without - set(PARTS)):
        raise InvalidArgument(
            f"No signal is called '{unknown_parts[0]}'.", f"The signals are: {', '.join(PARTS)}."
        )
    with contextlib.closing(open_engine()) as engine, progress("questions") as show:
        questions, unknown = _questions(engine, wanted)
        chosen = half_of(questions, Half(wanted.half))
        chosen = chosen[: wanted.limit] if wanted.golden is not None else chosen
        if not chosen:
            raise InvalidArgument("There is no question in that half.", "Leave out --half.")
        report = measure(engine, chosen, EvalOptions(leave_out=wanted.without), show)
    if json_output:
        fields = report_fields(report, unknown, wanted.half.value)
        if wanted.worst:
            fields["worst"] = worst_fields(report, wanted.worst)
        print_envelope(tools.success(fields, trouble=report.trouble))
        return 0
    print_report(report, wanted.half_text)
    print()
    for sentence in verdict(report, wanted.half_text):
        print(sentence)
    if wanted.worst:
        print_worst(report, wanted.worst)
    print_caveats(report, unknown)
    return 0


def _questions(engine: "Engine", wanted: _Wanted) -> "tuple[list[Question], tuple[str, ...]]":
    from obsidian_rag.engine import load_golden, own_questions

    if wanted.golden is not None:
        loaded = load_golden(engine, wanted.golden)
        return list(loaded.questions), loaded.unknown
    made = own_questions(engine, wanted.limit or _OWN_QUESTIONS)
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
    return rounded(
        {**{f"hit_at_{most}": rate for most, rate in found.hits.items()}, "mrr": found.mrr}
    )


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
