"""suggest: notes that could stand in a note's `related:` field, to choose from on a terminal."""

import re
import sys
from typing import Annotated, Any

import typer

from obsidian_rag.errors import InvalidArgument, ObsidianRagError
from obsidian_rag.transports.cli.note_names import NoteArgument
from obsidian_rag.transports.cli.output import JsonFlag, ask_tool, print_data, print_envelope
from obsidian_rag.transports.cli.picker import pick
from obsidian_rag.transports.cli.relate_cmd import RELATE_FLAGS, AddIdFlag, RelOption, print_written
from obsidian_rag.transports.cli.related_text import plain, print_row
from obsidian_rag.transports.cli.streams import say

_FLAGS = {"note": "the note", "max_results": "--top"}
_NUMBERS = re.compile(r"\s*\d+\s*(?:,\s*\d+\s*)*")


def suggest(
    note: NoteArgument,
    top: Annotated[int, typer.Option("--top", "-n", help="Show this many suggestions")] = 10,
    apply: Annotated[
        list[str] | None,
        typer.Option("--apply", metavar="N,N|PATH", help="Write these without asking"),
    ] = None,
    rel: RelOption = "related",
    add_id: AddIdFlag = False,
    json_output: JsonFlag = False,
) -> int:
    """Suggest related notes, and write the ones you pick

    They go into the note's `related:` field.
    On a terminal: a number picks, text filters, an empty line ends.

    Example:  obsidian-rag suggest "Rain garden" --apply 1,3 --rel references
    """
    envelope = ask_tool(
        "obsidian_rag_suggest_relations", {"note": note, "max_results": top}, _FLAGS
    )
    data: Any = envelope["data"]
    if apply:
        return _apply(data, apply, rel, add_id, json_output)
    if json_output:
        print_envelope(envelope)
        return 0
    if all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        return pick(data["note"], data["results"], rel, add_id)
    for number, result in enumerate(data["results"], start=1):
        print_row(number, result, sys.stdout)
    if not data["results"]:
        say(f"Nothing to suggest for {plain(data['note'])}.")
    return 0


def _apply(data: Any, wanted: list[str], rel: str, add_id: bool, json_output: bool) -> int:
    """Write what was asked for; one that fails does not stop the others."""
    written: list[Any] = []
    failed: list[tuple[str, ObsidianRagError]] = []
    for target in _targets(data["results"], wanted):
        arguments = {"note": data["note"], "target": target, "rel": rel, "add_missing_id": add_id}
        try:
            answer = ask_tool("obsidian_rag_add_relation", arguments, RELATE_FLAGS)
            written.append(answer["data"])
        except ObsidianRagError as error:
            failed.append((target, error))
    if not written:
        raise failed[0][1]
    if json_output:
        failures = [{"target": target, **error.body} for target, error in failed]
        print_data({"note": data["note"], "written": written, "failed": failures})
    for one in () if json_output else written:
        print_written(one)
    for _, failure in failed:
        say(f"{failure.code}: {failure.message} {failure.suggestion}")
    return 1 if failed else 0


def _targets(results: Any, wanted: list[str]) -> list[str]:
    """The notes behind numbers of the list, and notes named by their paths."""
    found: dict[str, None] = {}
    for entry in wanted:
        if not _NUMBERS.fullmatch(entry):
            found[entry] = None
            continue
        for number in map(int, entry.split(",")):
            if not 1 <= number <= len(results):
                raise InvalidArgument(
                    f"No suggestion {number}: there are {len(results)}.",
                    "Run it without --apply to see them. Name a note like 12.md by its path.",
                )
            found[results[number - 1]["source_file"]] = None
    return list(found)
