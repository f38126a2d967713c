"""relate: write that one note is related to another."""

from typing import Annotated, Any

import typer

from obsidian_rag.transports.cli.backend import ask_tool
from obsidian_rag.transports.cli.note_names import complete_note
from obsidian_rag.transports.cli.output import JsonFlag, plain, print_answer

RelOption = Annotated[str, typer.Option("--rel", help='How they are related, e.g. "supports"')]
AddIdFlag = Annotated[
    bool, typer.Option("--add-id", help="Write an id into a target that has none")
]

RELATE_FLAGS = {
    "note": "the note",
    "target": "the target",
    "rel": "--rel",
    "add_missing_id": "--add-id",
}


def relate(
    note: Annotated[
        str,
        typer.Argument(
            help="The note whose `related:` field changes", autocompletion=complete_note
        ),
    ],
    target: Annotated[
        str, typer.Argument(help="The note to add to that field", autocompletion=complete_note)
    ],
    rel: RelOption = "related",
    add_id: AddIdFlag = False,
    json_output: JsonFlag = False,
) -> int:
    """Record in a note that it is related to another one

    Only its `related:` field changes; every other byte stays the same.

    Example:  obsidian-rag relate "Rain garden" Costco --rel supplies --add-id
    """
    arguments = {"note": note, "target": target, "rel": rel, "add_missing_id": add_id}
    envelope = ask_tool("obsidian_rag_add_relation", arguments, RELATE_FLAGS)
    return print_answer(envelope, json_output, print_written)


def print_written(data: Any) -> None:
    """Print what was written, or that it was there already."""
    rel = f"  ({plain(data['rel'])})" if data["rel"] else ""
    state = "" if data["written"] else "  (was there already)"
    print(f"{plain(data['source'])} → {plain(data['target'])}{rel}{state}")
    if data["id_added"]:
        print(f"{plain(data['target'])} now has the id {data['id']}")
