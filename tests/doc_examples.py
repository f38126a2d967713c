"""The commands that a page shows, with what it says they print."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"^( *)(`{3,})(\w*)[^\n]*\n(.*?)^\1\2`*\s*$", re.MULTILINE | re.DOTALL)
# What differs from run to run, and scores, which move a little with every change of ranking.
_PASSING = (
    (re.compile(r"\d+(?:\.\d+)? (?:ms|s|MB|GB)\b"), "N s"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d \([^)]*\)"), "TIME"),
    (re.compile(r"updated [\w ]+"), "updated TIME"),
    (re.compile(r"(?<=, )\d{4}-\d\d-\d\d$", re.MULTILINE), "DAY"),
    (re.compile(r"\b(?:0\.\d{2,3}|1\.000?)\b"), "0.##"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"[+-]0\.\d+ over words"), "0.## over words"),
    (re.compile(r"\b\d{1,3}%"), "N%"),
    (re.compile(r" +$", re.MULTILINE), ""),
)


@dataclass(frozen=True, slots=True)
class Example:
    """A command, and the output that the page shows under it, if any."""

    command: str
    shown: str | None
    indent: str = ""

    @property
    def arguments(self) -> list[str]:
        """What follows `obsidian-rag`."""
        return shlex.split(self.command, comments=True)[1:]


def examples(page: str) -> list[Example]:
    """In their order: of `sh` blocks each line, of `console` blocks what follows a `$`.

    A `text` block is the output of the last command of the `sh` block before it.
    """
    found: list[Example] = []
    before = ""
    for indent, _, kind, block in _FENCE.findall(page):
        text = re.sub(rf"^{indent}", "", block, flags=re.MULTILINE)
        if kind == "sh":
            lines = text.replace("\\\n", " ").splitlines()
            found += (Example(line.strip(), None) for line in lines if line.strip())
        elif kind == "console":
            found += _sessions(text, indent)
        elif kind == "text" and before == "sh":
            found[-1] = Example(found[-1].command, text, indent)
        before = kind
    return found


def _sessions(text: str, indent: str) -> Iterator[Example]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield Example(command, shown, indent)


def settled(output: str) -> str:
    """Output without what differs from run to run."""
    for pattern, instead in _PASSING:
        output = pattern.sub(instead, output)
    return output.strip()
