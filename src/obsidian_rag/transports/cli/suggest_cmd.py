"""suggest: notes for a note's `related:` field, to choose from on a terminal."""

import re
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from obsidian_rag.errors import InvalidArgument, ObsidianRagError
from obsidian_rag.transports.cli.backend import ask_tool, open_engine
from obsidian_rag.transports.cli.note_names import NoteArgument
from obsidian_rag.transports.cli.output import (
    JsonFlag,
    plain,
    print_data,
    print_envelope,
    print_failure,
)
from obsidian_rag.transports.cli.relate_cmd import RELATE_FLAGS, AddIdFlag, RelOption, print_written
from obsidian_rag.transports.cli.related_cmd import print_row
from obsidian_rag.transports.cli.streams import say
from obsidian_rag.transports.lazy import ids

if TYPE_CHECKING:
    from obsidian_rag.engine import Engine


_FLAGS = {"note": "the note", "max_results": "--top"}
_NUMBERS = re.compile(r"\s*\d+\s*(?:,\s*\d+\s*)*")
_HELP = "Number to pick, text to filter, * for all, Enter to end: "
_MIN_SIMILARITY = 0.5
_MAX_SIMILAR = 200
_MAX_OTHERS = 5


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
        return _pick(data["note"], data["results"], rel, add_id)
    for number, result in enumerate(data["results"], start=1):
        print_row(number, result, sys.stdout)
    if not data["results"]:
        say(f"Nothing to suggest for {plain(data['note'])}.")
    return 0


def _apply(data: Any, wanted: list[str], rel: str, add_id: bool, json_output: bool) -> int:
    """Write the chosen relations; a failure does not stop the others."""
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
    """Resolve numbers of the list and paths to notes."""
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


def _pick(note: str, suggestions: list[Any], rel: str, add_id: bool) -> int:
    """Let the user choose, and write each choice at once."""
    say(f"{plain(note)} could be related to:")
    with open_engine() as opened:
        _Picker(opened, note, suggestions, rel, add_id).ask()
    return 0


class _Picker:
    """The suggestions; their numbers stay the same while the user filters and picks."""

    def __init__(
        self, opened: "Engine", note: str, suggestions: list[Any], rel: str, add_id: bool
    ) -> None:
        self._engine = opened
        self._note = note
        self._rel = rel
        self._add_id = add_id
        self._choices: list[Any] = list(suggestions)
        self._suggested = len(suggestions)
        self._picked: set[str] = set()

    def ask(self) -> None:
        """Read and run commands until an empty line or the end of the input."""
        if not self._choices:
            say("  Nothing to suggest. Type part of a title to find other notes.")
        else:
            self._show(range(self._suggested))
        while answer := _answer(_HELP):
            if answer == "*":
                self._show(range(self._suggested))
            elif answer.isdecimal() and 1 <= int(answer) <= len(self._choices):
                self._write(self._choices[int(answer) - 1])
            else:
                self._filter(answer)

    def _show(self, numbers: Iterable[int]) -> None:
        shown = list(numbers)
        for number in shown:
            choice = self._choices[number]
            mark = "  (written)" if choice["source_file"] in self._picked else ""
            print_row(number + 1, choice, sys.stderr, mark=mark)
        if not shown:
            say("  No such note.")

    def _filter(self, text: str) -> None:
        """Suggestions with this or a similar name, then other notes."""
        found = ids.similar_titles(self._engine, text, _MAX_SIMILAR)
        alike = {path: share for path, _, share in found if share >= _MIN_SIMILARITY}
        known = {choice["source_file"] for choice in self._choices}
        others = [one for one in found if one[0] in alike and one[0] not in {*known, self._note}]
        self._choices += [_other(path, title) for path, title, _ in others[:_MAX_OTHERS]]
        fits = [
            number for number, choice in enumerate(self._choices) if _is_called(choice, text, alike)
        ]
        self._show(fits)

    def _write(self, choice: Any) -> None:
        target = choice["source_file"]
        rel = _answer(f"How is it related? [{self._rel}] ") or self._rel
        add_id = self._add_id
        if not add_id and not ids.has_id(self._engine, target):
            asked = _answer(f"{plain(target)} has no id. Write one into it? [y/N] ")
            if asked.casefold() not in ("y", "yes"):
                say("Nothing was written.")
                return
            add_id = True
        arguments = {"note": self._note, "target": target, "rel": rel, "add_missing_id": add_id}
        try:
            print_written(ask_tool("obsidian_rag_add_relation", arguments, RELATE_FLAGS)["data"])
            self._picked.add(target)
        except ObsidianRagError as error:
            print_failure(error)


def _other(path: str, title: str) -> dict[str, object]:
    """A note that was not suggested but can be chosen."""
    return {
        "source_file": path,
        "title": title,
        "score": None,
        "reasons": ["not suggested; its title is similar"],
    }


def _is_called(choice: Any, text: str, alike: Mapping[str, float]) -> bool:
    name = f"{choice['title']}\n{choice['source_file']}".casefold()
    return text.casefold() in name or choice["source_file"] in alike


def _answer(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:  # the end of the input, without a line end
        print(file=sys.stderr)
    return line.strip()
