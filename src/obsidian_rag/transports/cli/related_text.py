"""Formats related notes for a terminal, readable without colour.

Threat: titles and file names come from notes, so characters that control a terminal are removed.
"""

import unicodedata
from collections.abc import Iterable
from typing import IO, Any

from obsidian_rag.transports.cli.streams import put, screen, style, visible

_NARROWEST, _WIDEST = 40, 120
_REASON_LINES = 3
_PASSAGE_LINES = 2
_ROOT = 5
_SCORE = 6
_SHORTEST_PATH = 8
# The colours of the panel that people may know: green, yellow and grey.
_GOOD, _FAIR = 0.7, 0.4
_JOINERS = "\u200c\u200d"


def print_related(number: int, result: Any, source: str | None, *, explain: bool = False) -> None:
    """Print one related note: its title, score, reasons and matching passages."""
    head = f"{number}. "
    indent = " " * len(head)
    room = width() - len(head)
    marks = [*(["linked"] if result["linked"] else []), *result["sensitive_categories"]]
    mark = f"  [{', '.join(marks)}]" if marks else ""
    title = wrapped(plain(result["title"]), room - _SCORE - len(mark), 1)[0]
    score = score_text(result["score"])
    put(f"{head}{style(title, bold=True)}  {score}{style(mark, fg='yellow')}")
    put(f"{indent}{style(plain(result['source_file']), fg='cyan')}")
    for line in wrapped(_reasons(result), room, _REASON_LINES):
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
        lines = wrapped(f"shares: {shares}", room, _REASON_LINES)
        for line in (*lines, result["link"]):
            put(f"{indent}{style(line, dim=True)}")
    put()


def print_row(number: int, result: Any, stream: IO[str], *, mark: str = "") -> None:
    """One related note on two lines, for a list to choose from; `result` may lack a score."""
    head = f"{number:>3}  "
    score = score_text(result["score"]) if result["score"] is not None else " –  "
    room = width() - len(head) - _SCORE
    title = wrapped(plain(result["title"]), room - len(mark), 1)[0]
    left = room - cells(title) - len(mark) - 2
    path = wrapped(plain(result["source_file"]), left, 1)[0] if left >= _SHORTEST_PATH else ""
    place = f"  {style(path, fg='cyan')}" if path else ""
    print(f"{head}{score}  {style(title, bold=True)}{place}{mark}", file=stream)
    for line in wrapped(_reasons(result), room, 1):
        print(f"{' ' * (len(head) + _SCORE)}{line}", file=stream)


def score_text(score: float) -> str:
    """A score, coloured by its value."""
    colour = "green" if score > _GOOD else "yellow" if score > _FAIR else "bright_black"
    return style(f"{score:.2f}", fg=colour)


def plain(text: str) -> str:
    """One line with invisible characters escaped, except joiners in letters and emoji."""
    spaced = " ".join(text.split())
    if spaced.isprintable():
        return spaced
    return "".join(
        letter if letter.isprintable() or letter in _JOINERS else visible(letter)
        for letter in spaced
    )


def width() -> int:
    """The width of the output in columns."""
    return max(_NARROWEST, min(_WIDEST, screen().columns))


def wrapped(text: str, columns: int, most: int) -> list[str]:
    """Wrap a text to a maximum number of lines; a cut is marked."""
    lines: list[str] = []
    rest = text
    while rest and len(lines) < most:
        line, rest = _split(rest, columns)
        lines.append(line)
    if rest:
        lines[-1] = _split(lines[-1], columns - 1)[0].rstrip(" ,;") + "…"
    return lines or [""]


def cells(text: str) -> int:
    """The width of a text in columns; East Asian letters take two."""
    return sum(map(_cells, text))


def _reasons(result: Any) -> str:
    return plain("; ".join(result["reasons"]))


def _print_passage(place: str, passage: Any, terms: Iterable[str], indent: str) -> None:
    label = f"{place}:{passage['start_line']}-{passage['end_line']}"
    columns = width() - len(indent) - 2
    text = f"{label}  {excerpt(passage['text'], terms)}"
    first, *more = wrapped(text, columns, _PASSAGE_LINES)
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


def _split(text: str, columns: int) -> tuple[str, str]:
    """Split a text after the first line, between words if possible."""
    used = 0
    for at, letter in enumerate(text):
        used += _cells(letter)
        if used > columns:
            space = text.rfind(" ", 0, at + 1)
            is_between_words = bool(text[: max(space, 0)].strip())
            # Scripts without spaces may break anywhere; a word breaks only if it fills the line.
            end = space if is_between_words and (space > at // 2 or _cells(letter) == 1) else at
            return text[:end].rstrip(), text[end:].lstrip()
    return text, ""


def _cells(letter: str) -> int:
    if unicodedata.combining(letter) or letter in _JOINERS:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
