"""search: the best passages, cited, with the words that matched."""

import os
import re
import sys
from typing import Annotated, Any

import typer

from obsidian_rag.transports.cli.output import JsonFlag, ask_tool, print_envelope

_LINES = 6
_WIDTH = 110


def search(
    question: Annotated[list[str], typer.Argument(help="What you want to know")],
    top: Annotated[int, typer.Option("--top", "-n", help="How many passages")] = 5,
    tags: Annotated[
        list[str] | None, typer.Option("--tags", "-t", help="Only with this tag")
    ] = None,
    folder: Annotated[
        list[str] | None, typer.Option("--folder", help="Only below this folder")
    ] = None,
    since: Annotated[str | None, typer.Option("--from", help="First day, YYYY-MM-DD")] = None,
    until: Annotated[str | None, typer.Option("--to", help="Last day, YYYY-MM-DD")] = None,
    prop: Annotated[list[str] | None, typer.Option("--prop", help="Only with key=value")] = None,
    group: Annotated[bool, typer.Option("--group", help="One passage per note")] = False,
    no_dates: Annotated[
        bool, typer.Option("--no-dates", help='Ignore dates in the question, such as "last March"')
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show how scores came about")] = False,
    json_output: JsonFlag = False,
) -> int:
    """Find passages by meaning and by word

    Example:  obsidian-rag search "how much do I owe Sreenivas?" --top 3
    """
    arguments: dict[str, object] = {
        "query": " ".join(question),
        "max_results": top,
        "group_by_note": group,
        "suggest_dates": not no_dates,
    }
    if since or until:
        arguments["date_range"] = {
            name: day for name, day in (("from", since), ("to", until)) if day is not None
        }
    for name, values in (("tags", tags), ("directory_filter", folder), ("properties", prop)):
        if values:
            arguments[name] = values
    envelope = ask_tool("obsidian_rag_search", arguments)
    if json_output:
        print_envelope(envelope)
        return 0
    data: Any = envelope["data"]
    if error := envelope["error"]:
        print(f"{error['code']}: {error['message']} {error['suggestion']}\n", file=sys.stderr)
    _print_suggestion(data.get("suggested_filter"))
    for number, result in enumerate(data["results"], start=1):
        _print_result(number, result, explain)
    if not data["results"]:
        print("Nothing found. Try fewer filters or other words.", file=sys.stderr)
    return 0


def _print_suggestion(suggested: Any) -> None:
    if suggested and suggested["applied"]:
        span = suggested["date_range"]
        print(
            f"Notes of {span['from']} to {span['to']} and undated ones"
            f' ("{suggested["phrase"]}"; --no-dates searches all).\n',
            file=sys.stderr,
        )


def _print_result(number: int, result: Any, explain: bool) -> None:
    place = f"{result['source_file']}:{result['start_line']}-{result['end_line']}"
    headings = " › ".join(result["heading_path"])
    mark = (
        f"  [{', '.join(result['sensitive_categories'])}]" if result["sensitive_categories"] else ""
    )
    print(f"{number}. {_style(place, bold=True)}  {result['score']:.2f}{_style(mark, fg='yellow')}")
    print(f"   {_style(headings or result['title'], fg='cyan')}")
    for line in _excerpt(result["chunk_text"], result["why"]["terms"]):
        print(f"   {_highlighted(line, result['why']['terms'])}")
    if explain:
        shares = ", ".join(
            f"{name} {share:.2f}" for name, share in result["why"]["signals"].items()
        )
        print(
            f"   {_style(f'why: {shares}; words: ' + ', '.join(result['why']['terms']), dim=True)}"
        )
        print(f"   {_style(result['link'], dim=True)}")
    print()


def _excerpt(text: str, terms: list[str]) -> list[str]:
    """A few lines around the one with most of the words."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > _LINES:
        counts = [sum(term[:5] in line.lower() for term in terms) for line in lines]
        best = counts.index(max(counts))
        start = max(0, min(best - 1, len(lines) - _LINES))
        lines = lines[start : start + _LINES]
    return [_clipped(line, terms) for line in lines]


def _clipped(line: str, terms: list[str]) -> str:
    if len(line) <= _WIDTH * 3:
        return line
    found = [at for term in terms if (at := line.lower().find(term[:5])) >= 0]
    start = max(0, min(found, default=0) - _WIDTH)
    return ("…" if start else "") + line[start : start + _WIDTH * 3] + "…"


def _highlighted(line: str, terms: list[str]) -> str:
    if not terms or not _is_colourful():
        return line
    roots = "|".join(re.escape(term if len(term) < 5 else term[: len(term) - 1]) for term in terms)
    return re.sub(
        rf"\b(?:{roots})\w*", lambda found: _style(found[0], fg="green", bold=True), line,
        flags=re.IGNORECASE,
    )  # fmt: skip


def _style(text: str, **style: Any) -> str:
    return typer.style(text, **style) if text and _is_colourful() else text


def _is_colourful() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
