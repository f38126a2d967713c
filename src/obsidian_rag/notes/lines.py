"""Lines of a note and which of them are code.

Only \n, \r\n and a lone \r end a line: `str.splitlines` splits at more and would shift numbers.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

LINE_END = re.compile(r"\r\n?|\n")
_FENCE = re.compile(r"([\s>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?+)(`{3,}+|~{3,}+)(.*)", re.DOTALL)
_TICKS = re.compile(r"`+")


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced code block: lines `start` to `end` (exclusive), fence lines included."""

    start: int
    end: int
    info: str
    is_closed: bool


@dataclass(frozen=True, slots=True)
class Body:
    """Lines to scan, from `first` on; line i of the list is line `numbers[i]` of the file.

    `breaks` are indexes at which a new part begins in any case (Canvas nodes).
    """

    lines: list[str]
    first: int
    numbers: Sequence[int]
    fences: tuple[Fence, ...]
    breaks: frozenset[int] = frozenset()

    def prose(self) -> Iterator[tuple[int, int]]:
        """The ranges of lines that are not fenced code."""
        start = self.first
        for fence in self.fences:
            if fence.start > start:
                yield start, fence.start
            start = fence.end
        if start < len(self.lines):
            yield start, len(self.lines)


def split_lines(text: str) -> list[str]:
    """The lines of a file, without their ends; at least one."""
    lines = LINE_END.split(text) if "\r" in text else text.split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    if lines[0].startswith("\ufeff"):
        lines[0] = lines[0][1:]
    return lines


@lru_cache(maxsize=4)
def markdown_body(text: str, body_line: int) -> Body:
    """The body of a Markdown file, numbered as in the file.

    Cached, because a note is parsed and then chunked; never change its lines.
    """
    lines = split_lines(text)
    first = body_line - 1
    has_fences = "```" in text or "~~~" in text
    fences = find_fences(lines, first) if has_fences else ()
    return Body(lines, first, range(1, len(lines) + 1), fences)


def find_fences(lines: Sequence[str], first: int, offset: int = 0) -> tuple[Fence, ...]:
    """Fenced code blocks, also inside quotes and list items; an open one runs to the end.

    Lines before `first` are skipped; `offset` is added to every index of the result.
    """
    text = "\n".join(lines)
    marked = sorted({*_lines_with("```", text), *_lines_with("~~~", text)})
    marked = marked[bisect_left(marked, first) :]
    fences = []
    position = 0
    while position < len(marked):
        start = marked[position]
        position += 1
        opening = _FENCE.match(lines[start])
        if opening is None or (opening[2][0] == "`" and "`" in opening[3]):
            continue
        end, is_closed = _find_close(lines, start, opening, marked, position)
        fences.append(Fence(start + offset, end + offset, opening[3].strip(), is_closed))
        position = bisect_left(marked, end, position)
    return tuple(fences)


def _lines_with(mark: str, text: str) -> Iterator[int]:
    """Indexes of lines that contain `mark`; much faster than checking each line."""
    line = counted = 0
    found = text.find(mark)
    while found >= 0:
        line += text.count("\n", counted, found)
        yield line
        counted = text.find("\n", found)
        if counted < 0:
            return
        found = text.find(mark, counted)


def _find_close(
    lines: Sequence[str], start: int, opening: re.Match[str], marked: list[int], position: int
) -> tuple[int, bool]:
    """Where the fence ends, and whether it is closed; a quoted one ends with its quote."""
    ticks = opening[2]
    is_quoted = ">" in opening[1]
    candidates = range(start + 1, len(lines)) if is_quoted else range(position, len(marked))
    for candidate in candidates:
        i = candidate if is_quoted else marked[candidate]
        if is_quoted and lines[i].lstrip()[:1] != ">":
            return i, False
        line = lines[i].strip(" \t>")
        if len(line) >= len(ticks) and line[0] == ticks[0] and not line.strip(ticks[0]):
            return i + 1, True
    return len(lines), False


def code_spans(line: str) -> list[tuple[int, int]]:
    """Inline code in one line, with its backticks; an unpaired run of backticks is text."""
    runs = [match.span() for match in _TICKS.finditer(line)]
    last = {end - start: start for start, end in runs}
    spans = []
    i = 0
    while i < len(runs):
        start, end = runs[i]
        i += 1
        length = end - start
        # Knowing the last run of each length keeps this linear: a search that starts will succeed.
        if last[length] <= start or (start and line[start - 1] == "\\"):
            continue
        while runs[i][1] - runs[i][0] != length:
            i += 1
        spans.append((start, runs[i][1]))
        i += 1
    return spans


def blank_spans(line: str, spans: Sequence[tuple[int, int]]) -> str:
    """`line` with those spans blanked, so that offsets stay and nothing matches there."""
    parts = []
    position = 0
    for start, end in spans:
        parts.append(line[position:start])
        parts.append("\x00" * (end - start))
        position = end
    parts.append(line[position:])
    return "".join(parts)


def without_code(line: str) -> str:
    """`line` with inline code blanked."""
    return blank_spans(line, code_spans(line)) if "`" in line else line
