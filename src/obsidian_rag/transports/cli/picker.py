"""Choosing related notes on a terminal: a numbered list that typing narrows down."""

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.transports.cli.output import ask_tool, open_engine, print_failure
from obsidian_rag.transports.cli.relate_cmd import RELATE_FLAGS, print_written
from obsidian_rag.transports.cli.related_text import plain, print_row
from obsidian_rag.transports.cli.streams import say
from obsidian_rag.transports.lazy import ids

if TYPE_CHECKING:
    from obsidian_rag.engine import Engine

_HELP = "Number to pick, text to filter, * for all, Enter to end: "
_ALIKE = 0.5
_MOST_ALIKE = 200
_OTHERS_SHOWN = 5


def pick(note: str, suggestions: list[Any], rel: str, add_id: bool) -> int:
    """Let the person at the terminal choose, and write each choice at once."""
    say(f"{plain(note)} could be related to:")
    with open_engine() as opened:
        _Picker(opened, note, suggestions, rel, add_id).ask()
    return 0


class _Picker:
    """The suggestions with their numbers, which stay while one filters and picks."""

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
        """Show, listen, act; an empty line or the end of the input ends it."""
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
        """The suggestions that are called so or nearly so, then other notes that are."""
        found = ids.similar_titles(self._engine, text, _MOST_ALIKE)
        alike = {path: share for path, _, share in found if share >= _ALIKE}
        known = {choice["source_file"] for choice in self._choices}
        others = [one for one in found if one[0] in alike and one[0] not in {*known, self._note}]
        self._choices += [_other(path, title) for path, title, _ in others[:_OTHERS_SHOWN]]
        fits = [
            number for number, choice in enumerate(self._choices) if _is_called(choice, text, alike)
        ]
        self._show(fits)

    def _write(self, choice: Any) -> None:
        target = choice["source_file"]
        rel = _answer(f"How is it related? [{self._rel}] ") or self._rel
        add_id = self._add_id
        if not add_id and not ids.has_id(self._engine.vaults.primary, target):
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
    """A note that was not suggested, to be chosen all the same."""
    return {
        "source_file": path,
        "title": title,
        "score": None,
        "reasons": ["not suggested; its title is alike"],
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
