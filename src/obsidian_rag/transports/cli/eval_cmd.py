"""eval: measures search on questions with known answers, and related notes on links."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from obsidian_rag.errors import InvalidArgument, NotFound
from obsidian_rag.transports.cli.backend import open_engine
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
from obsidian_rag.transports.cli.note_names import complete_vault
from obsidian_rag.transports.cli.output import (
    JsonFlag,
    counted,
    print_data,
    print_envelope,
    progress,
)
from obsidian_rag.transports.lazy import tools

if TYPE_CHECKING:
    from obsidian_rag.tools import LinksFound, Measurement

_LINKS = 1000


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
        fields = report_fields(report, unknown, wanted.half)
        if worst:
            fields["worst"] = worst_fields(report, worst)
        print_envelope(tools.success(fields, trouble=report.trouble))
        return 0
    half = _half_text(wanted)
    print_report(report, half)
    print()
    for sentence in verdict(report, half):
        print(sentence)
    if worst:
        print_worst(report, worst)
    print_caveats(report, unknown)
    return 0


def _half_text(wanted: "Measurement") -> str:
    """The label of the half of a file that was measured."""
    if wanted.half == HalfName.ALL:
        return "both halves" if wanted.golden is not None else ""
    return f"{wanted.half} half"


def _measure_links(limit: int, json_output: bool) -> int:
    with open_engine() as engine, progress("links") as show:
        found = tools.links_found(engine, limit, show)
    if not found.links:
        raise NotFound(
            "No note links to another one, so there is nothing to measure.",
            "Link some notes, run `obsidian-rag sync`, and try again.",
        )
    if json_output:
        print_data({"notes": found.notes, "links": found.links, **_rates(found)})
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
