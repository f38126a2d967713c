"""related: which notes belong to a note or a text, and why."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from obsidian_rag.errors import InvalidArgument
from obsidian_rag.transports.cli.note_names import OptionalNote, VaultOption
from obsidian_rag.transports.cli.output import JsonFlag, ask_tool, counted, print_answer
from obsidian_rag.transports.cli.related_text import plain, print_related
from obsidian_rag.transports.cli.streams import say

_FLAGS = {
    "note": "the note",
    "text": "--text",
    "max_results": "--top",
    "tags": "--tags",
    "hide_linked": "--hide-linked",
}


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
        say(f"Nothing is related among {compared}.")
    if data["vectors"] == "static" and data["with_meaning"]:
        meant, compared = data["with_meaning"], counted(data["compared"], "note")
        say(f"Compared by static vectors: {meant:,} of {compared} have a meaning vector yet.")
    if hidden := data["hidden_linked"]:
        them, its = counted(hidden, "note"), "it" if hidden == 1 else "them"
        say(f"{plain(data['note'])} already links to {them}; --show-linked shows {its}.")
