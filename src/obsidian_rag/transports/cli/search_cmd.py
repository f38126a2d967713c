"""search: the best passages, cited, with the words that matched."""

import re
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from obsidian_rag.transports.cli.backend import ask_tool
from obsidian_rag.transports.cli.note_names import VaultsOption
from obsidian_rag.transports.cli.output import (
    JsonFlag,
    cells,
    plain,
    print_answer,
    print_trouble,
    score_text,
    width,
    wrap,
)
from obsidian_rag.transports.cli.streams import neutralise, put, say, screen, style

_FLAGS = {
    "query": "the question",
    "max_results": "--top",
    "directory_filter": "--folder",
    "properties": "--prop",
    "vaults": "--vault",
    "tags": "--tags",
    "date_range.from": "--from",
    "date_range.to": "--to",
    "date_range": "--from and --to",
}
_INDENT = "   "
_CODE_INDENT = "    "
_FENCE = re.compile("`{3,}")
_ROWS = 7
_EXPLAIN_LINES = 3
_LONG_ROWS = 4
_ROOT = 5


def search(
    question: Annotated[list[str], typer.Argument(help="What you want to know")],
    top: Annotated[int, typer.Option("--top", "-n", help="Show this many passages")] = 5,
    tags: Annotated[
        list[str] | None, typer.Option("--tags", "-t", help="Only notes with this tag")
    ] = None,
    folder: Annotated[
        list[str] | None, typer.Option("--folder", help="Only notes in this folder")
    ] = None,
    vault: VaultsOption = None,
    since: Annotated[str | None, typer.Option("--from", help="First day, YYYY-MM-DD")] = None,
    until: Annotated[str | None, typer.Option("--to", help="Last day, YYYY-MM-DD")] = None,
    prop: Annotated[
        list[str] | None, typer.Option("--prop", help="Only notes with key=value")
    ] = None,
    group: Annotated[bool, typer.Option("--group", help="One passage per note")] = False,
    no_dates: Annotated[
        bool, typer.Option("--no-dates", help='Ignore dates in the question, such as "last March"')
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Explain each score")] = False,
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
    for name, values in (
        ("tags", tags),
        ("directory_filter", folder),
        ("properties", prop),
        ("vaults", vault),
    ):
        if values:
            arguments[name] = values
    envelope = ask_tool("obsidian_rag_search", arguments, _FLAGS)
    if envelope["error"] and not json_output:
        print_trouble(envelope["error"], screen().err)
        say("")
    return print_answer(envelope, json_output, lambda data: _show(data, explain))


def _show(data: Any, explain: bool) -> None:
    """Print the passages on stdout, and remarks on stderr."""
    _print_suggestion(data.get("suggested_filter"))
    _print_remarks(data, explain)
    if data["results"] and data.get("is_weak"):
        say("Nothing in your notes seems to answer this. The nearest passages:\n")
    for number, result in enumerate(data["results"], start=1):
        _print_result(number, result, explain)
    if not data["results"]:
        say("Nothing found. Try fewer filters or other words.")


def _print_remarks(data: Any, explain: bool) -> None:
    if corrected := data.get("searched_for"):
        say(f"Searched for: {plain(corrected)}\n")
    if explain and (notice := data.get("embedder_notice")):
        say(f"{plain(notice)}\n")


def _print_suggestion(suggested: Any) -> None:
    if suggested and suggested["applied"]:
        span = suggested["date_range"]
        say(
            f"Notes from {span['from']} to {span['to']} come first"
            f' ("{suggested["phrase"]}"). --no-dates treats all notes alike.\n'
        )
    elif suggested:
        say(f'No note is from "{suggested["phrase"]}", so all notes were searched.\n')


def _print_result(number: int, result: Any, explain: bool) -> None:
    place = f"{plain(result['source_file'])}:{result['start_line']}-{result['end_line']}"
    headings = plain(" › ".join(result["heading_path"]) or result["title"])
    marks = ", ".join(result["sensitive_categories"])
    mark = f"  [{marks}]" if marks else ""
    terms: list[str] = result["why"]["terms"]
    columns = width() - len(_INDENT)
    score = score_text(result["score"])
    # The primary vault is not named.
    vault = "" if result["vault_label"].startswith("Primary") else f"  in {plain(result['vault'])}"
    put(f"{number}. {style(place, bold=True)}{vault}  {score}{style(mark, fg='yellow')}")
    put(f"{_INDENT}{style(wrap(headings, columns, 1)[0], fg='cyan')}")
    for line in excerpt(_without_heading(result), terms, columns):
        put(f"{_INDENT}{_highlight_terms(line, terms)}")
    if explain:
        signals = result["why"]["signals"].items()
        shares = ", ".join(f"{name} {share:.2f}" for name, share in signals)
        why = plain(f"why: {shares}; words: {', '.join(terms)}")
        for line in (*wrap(why, columns, _EXPLAIN_LINES), result["link"]):
            put(f"{_INDENT}{style(line, dim=True)}")
    put()


def _without_heading(result: Any) -> str:
    """The text of a hit, without a heading that is printed above it."""
    text: str = result["chunk_text"].lstrip("\n")
    first, _, rest = text.partition("\n")
    heading = result["heading_path"][-1] if result["heading_path"] else result["title"]
    is_shown = first.startswith("#") and first.strip("# ") == heading.strip("# ")
    return rest if is_shown and rest.strip() else text


def excerpt(text: str, terms: list[str], columns: int) -> list[str]:
    """A few rows around the line with the most query words; cuts show as "…"."""
    lines = list(_lines(text))
    start = _first_line(lines, terms, columns)
    rows: list[str] = []
    for number, line in enumerate(lines[start:], start=start):
        shown, is_cut = _from_match(line, terms, columns)
        if number == start > 0 and not is_cut:
            shown = f"… {shown}"
        rows += wrap(shown, columns, _ROWS - len(rows))
        if len(rows) == _ROWS:
            return rows if number + 1 == len(lines) else [*rows[:-1], _with_more(rows[-1], columns)]
    return rows


def _lines(text: str) -> Iterator[str]:
    """The lines with content; code is indented instead of fenced."""
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if found and (not fence or line.rstrip() == fence):
            fence = "" if fence else found[0]
        elif line.strip():
            yield (_CODE_INDENT if fence else "") + neutralise(line).expandtabs(4)


def _with_more(row: str, columns: int) -> str:
    """Mark a row as cut."""
    if row.endswith("…"):
        return row
    return f"{row} …" if cells(row) + 2 <= columns else wrap(f"{row} more", columns, 1)[0]


def _first_line(lines: list[str], terms: list[str], columns: int) -> int:
    """The first row to show, so that the line with the most words is visible."""
    heights = [len(wrap(line, columns, _ROWS)) for line in lines]
    if sum(heights) <= _ROWS:
        return 0
    counts = [sum(term[:_ROOT] in line.lower() for term in terms) for line in lines]
    start = max(0, counts.index(max(counts)) - 1)
    while start and sum(heights[start - 1 :]) <= _ROWS:
        start -= 1
    return start


def _from_match(line: str, terms: list[str], columns: int) -> tuple[str, bool]:
    """The part of a long line that has the words, from the start of a word."""
    if len(line) <= columns * _LONG_ROWS:
        return line, False
    found = [at for term in terms if (at := line.lower().find(term[:_ROOT])) >= 0]
    near = min(found, default=0) - columns
    if near <= 0:
        return line, False
    start = line.find(" ", near) + 1 or near
    return f"… {line[start:]}", True


def _highlight_terms(line: str, terms: list[str]) -> str:
    if not terms:
        return line
    roots = "|".join(re.escape(term if len(term) < 5 else term[: len(term) - 1]) for term in terms)
    return re.sub(
        rf"\b(?:{roots})\w*", lambda found: style(found[0], fg="green", bold=True), line,
        flags=re.IGNORECASE,
    )  # fmt: skip
