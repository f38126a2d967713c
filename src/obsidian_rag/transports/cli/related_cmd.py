"""related: which notes belong to a note or a text, and why."""

from collections.abc import Iterable
from typing import IO, Annotated, Any

import typer

from obsidian_rag.errors import InvalidArgument
from obsidian_rag.transports.cli.backend import ask_tool
from obsidian_rag.transports.cli.note_names import OptionalNote, VaultOption
from obsidian_rag.transports.cli.output import (
    JsonFlag,
    cells,
    counted,
    plain,
    print_answer,
    score_text,
    width,
    wrap,
)
from obsidian_rag.transports.cli.streams import put, say, style

_FLAGS = {
    "note": "the note",
    "text": "--text",
    "max_results": "--top",
    "tags": "--tags",
    "hide_linked": "--hide-linked",
}
_REASON_LINES = 3
_PASSAGE_LINES = 2
_ROOT = 5
_SCORE = 6
_SHORTEST_PATH = 8


def related(
    note: OptionalNote = None,
    vault: VaultOption = None,
    text: Annotated[
        str | None, typer.Option("--text", help="Compare with this text instead of a note")
    ] = None,
    top: Annotated[
        int | None,
        typer.Option("--top", "-n", help="Show this many notes; relations.max_results by default"),
    ] = None,
    tags: Annotated[
        list[str] | None,
        typer.Option("--tags", "-t", metavar="A,B", help="Prefer notes with these tags"),
    ] = None,
    hide_linked: Annotated[
        bool | None,
        typer.Option(
            "--hide-linked/--show-linked",
            help="Hide or show notes that it links to; relations.hide_linked by default",
            show_default=False,
        ),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show what each signal adds")] = False,
    json_output: JsonFlag = False,
) -> int:
    """Show notes that are related to a note or a text, and why

    Example:  obsidian-rag related "Rain garden" --top 3
    """
    if (note is None) == (text is None):
        raise InvalidArgument(
            "related needs a note or --text, and not both.",
            'Try `obsidian-rag related "A note of yours"`.',
        )
    arguments: dict[str, object] = {
        "note": note,
        "vault": vault,
        "text": text,
        "max_results": top,
        "hide_linked": hide_linked,
        "tags": list(_tags(tags or [])) or None,
    }
    envelope = ask_tool("obsidian_rag_related", arguments, _FLAGS)
    return print_answer(envelope, json_output, lambda data: _show(data, explain))


def _tags(given: Iterable[str]) -> Iterable[str]:
    return (tag.strip() for some in given for tag in some.split(",") if tag.strip())


def _show(data: Any, explain: bool) -> None:
    """Print the notes on stdout, and remarks on stderr."""
    for number, result in enumerate(data["results"], start=1):
        print_related(number, result, data["note"], explain=explain)
    if not data["results"]:
        compared = counted(data["compared"], "note")
        say(f"No related notes among {compared}.")
    if data["vectors"] == "static" and data["with_meaning"]:
        meant, compared = data["with_meaning"], counted(data["compared"], "note")
        say(f"Compared by static vectors: {meant:,} of {compared} have a meaning vector so far.")
    if hidden := data["hidden_linked"]:
        them, its = counted(hidden, "note"), "it" if hidden == 1 else "them"
        say(f"{plain(data['note'])} already links to {them}; --show-linked shows {its}.")


def print_related(number: int, result: Any, source: str | None, *, explain: bool = False) -> None:
    """Print one related note: its title, score, reasons and matching passages."""
    head = f"{number}. "
    indent = " " * len(head)
    room = width() - len(head)
    marks = [*(["linked"] if result["linked"] else []), *result["sensitive_categories"]]
    mark = f"  [{', '.join(marks)}]" if marks else ""
    title = wrap(plain(result["title"]), room - _SCORE - len(mark), 1)[0]
    score = score_text(result["score"])
    put(f"{head}{style(title, bold=True)}  {score}{style(mark, fg='yellow')}")
    put(f"{indent}{style(plain(result['source_file']), fg='cyan')}")
    for line in wrap(_reasons(result), room, _REASON_LINES):
        put(f"{indent}{line}")
    for passage in result["passages"]:
        place = "here" if passage["source_file"] == source else "there"
        _print_passage(place, passage, result["shared_terms"], indent)
    if explain:
        shares = ", ".join(
            f"{name} {signal['share']:.2f}"
            for name, signal in sorted(result["signals"].items(), key=lambda one: -one[1]["share"])
            if signal["share"] > 0
        )
        lines = wrap(f"shares: {shares}", room, _REASON_LINES)
        for line in (*lines, result["link"]):
            put(f"{indent}{style(line, dim=True)}")
    put()


def print_row(number: int, result: Any, stream: IO[str], *, mark: str = "") -> None:
    """One related note on two lines, for a list to choose from; `result` may lack a score."""
    head = f"{number:>3}  "
    score = score_text(result["score"]) if result["score"] is not None else " –  "
    room = width() - len(head) - _SCORE
    title = wrap(plain(result["title"]), room - len(mark), 1)[0]
    left = room - cells(title) - len(mark) - 2
    path = wrap(plain(result["source_file"]), left, 1)[0] if left >= _SHORTEST_PATH else ""
    place = f"  {style(path, fg='cyan')}" if path else ""
    print(f"{head}{score}  {style(title, bold=True)}{place}{mark}", file=stream)
    for line in wrap(_reasons(result), room, 1):
        print(f"{' ' * (len(head) + _SCORE)}{line}", file=stream)


def _reasons(result: Any) -> str:
    return plain("; ".join(result["reasons"]))


def _print_passage(place: str, passage: Any, terms: Iterable[str], indent: str) -> None:
    label = f"{place}:{passage['start_line']}-{passage['end_line']}"
    columns = width() - len(indent) - 2
    text = f"{label}  {excerpt(passage['text'], terms)}"
    first, *more = wrap(text, columns, _PASSAGE_LINES)
    put(f"{indent}{style(label, dim=True)}{first[len(label) :]}")
    for line in more:
        put(f"{indent}  {line}")


def excerpt(text: str, terms: Iterable[str]) -> str:
    """A passage from its most relevant line on, without headings."""
    lines = [plain(line) for line in text.split("\n")]
    said = [line for line in lines if line and not line.startswith("#")] or [*filter(None, lines)]
    roots = [term[:_ROOT].casefold() for term in terms]
    counts = [sum(root in line.casefold() for root in roots) for line in said]
    best = counts.index(max(counts)) if counts else 0
    return " ".join(said[best:])
