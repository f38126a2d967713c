"""What a command prints, and how: data on stdout, messages on stderr, an envelope with --json.

Threat: titles and file names come from notes; `plain` escapes the invisible characters in them.
"""

import contextlib
import json
import signal
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from obsidian_rag.errors import ErrorBody, ObsidianRagError
from obsidian_rag.transports.cli.backend import add_health
from obsidian_rag.transports.cli.streams import (
    bar_console,
    escape_json,
    escape_letter,
    paint,
    put,
    say,
    screen,
    style,
)
from obsidian_rag.transports.lazy import tools

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.progress import Progress

    from obsidian_rag.tools import Envelope

_MINUTE_S = 60
_HOUR_S = 3600
_NARROWEST, _WIDEST = 40, 120
_JOINERS = "\u200c\u200d"
# The thresholds and colours of Smart Relations' panel: green, yellow and grey.
_GOOD, _FAIR = 0.7, 0.4

JsonFlag = Annotated[bool, typer.Option("--json", help="Print the envelope as JSON")]


def command_group(text: str) -> typer.Typer:
    """A group of commands with this help text."""
    return typer.Typer(no_args_is_help=True, help=text, rich_markup_mode=None)


def print_envelope(envelope: "Envelope") -> None:
    """Print an envelope as JSON."""
    put(json_text(envelope))


def print_data(data: object) -> None:
    """Print the result of a command as JSON."""
    print_envelope(tools.success(data))


def print_done(data: object, sentence: str, json_output: bool, notes: "Iterable[str]" = ()) -> int:
    """Print what a command did, as JSON or as a sentence with notes; returns the exit code."""
    if json_output:
        print_data(data)
        return 0
    put(sentence)
    for note in notes:
        say(note)
    return 0


def print_answer(envelope: "Envelope", json_output: bool, show: "Callable[[Any], None]") -> int:
    """Print the answer of a tool, as JSON or with `show`; returns the exit code."""
    if json_output:
        print_envelope(envelope)
    else:
        show(envelope["data"])
    return 0


def print_failure(error: ObsidianRagError) -> None:
    """Print an error: with --json its envelope, and always a message on stderr."""
    if "--json" in screen().arguments:
        add_health(error)
        print_envelope(tools.failure(error))
    say(f"{paint('error', 'red')} {error.code}: {error.message}")
    if error.suggestion:
        say(f"{paint('hint', 'cyan')}  {error.suggestion}")


def print_trouble(error: ErrorBody, stream: IO[str]) -> None:
    """Print the error of an answer that has data too."""
    print(f"{style(error['code'], stream=stream, fg='yellow')}: {error['message']}", file=stream)
    if error["suggestion"]:
        print(f"  {error['suggestion']}", file=stream)


def print_sections(
    sections: "Iterable[tuple[str, Iterable[str]]]", most: int | None, all_by: str
) -> None:
    """Print lists with titles, `most` lines of each; skips empty ones. `all_by` shows the rest."""
    for title, lines in sections:
        listed = list(lines)
        if not listed:
            continue
        put(f"{title} ({len(listed)})")
        for line in listed[:most]:
            put(f"  {plain(line)}")
        if most is not None and len(listed) > most:
            put(f"  … and {len(listed) - most} more; {all_by} lists them")
        put()


def json_text(value: object) -> str:
    """A JSON document as text to print."""
    return escape_json(json.dumps(value, ensure_ascii=False, indent=2))


def plain(text: str) -> str:
    """One line with invisible characters escaped, except joiners in letters and emoji."""
    spaced = " ".join(text.split())
    if spaced.isprintable():
        return spaced
    return "".join(
        letter if letter.isprintable() or letter in _JOINERS else escape_letter(letter)
        for letter in spaced
    )


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 note", "2 notes"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def score_text(score: float) -> str:
    """A score, coloured by its value."""
    colour = "green" if score > _GOOD else "yellow" if score > _FAIR else "bright_black"
    return style(f"{score:.2f}", fg=colour)


def local_time(moment: str) -> str:
    """An ISO time as local time, to the minute."""
    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}"


def about_duration(seconds: float) -> str:
    """A rounded duration."""
    if seconds < _MINUTE_S:
        return f"about {max(1, round(seconds))} s"
    if seconds < 2 * _HOUR_S:
        return f"about {round(seconds / _MINUTE_S)} min"
    return f"about {round(seconds / _HOUR_S)} h"


def meaning_text(meaning: Any) -> str:
    """One line about the progress of meaning vectors."""
    share = f"{meaning['done']:,} of {meaning['total']:,}"
    if meaning["trouble"]:
        return f"meaning vectors stop at {share}: {meaning['trouble']}"
    if meaning["is_paused"] and meaning["done"] < meaning["total"]:
        return f"meaning vectors: {share} (paused)"
    left = meaning["seconds_left"]
    return f"meaning vectors: {share}" + (f" ({about_duration(left)} left)" if left else "")


def width() -> int:
    """The width of the output in columns."""
    return max(_NARROWEST, min(_WIDEST, screen().columns))


def cells(text: str) -> int:
    """The width of a text in columns; East Asian letters take two."""
    from rich.cells import cell_len

    return cell_len(text)


def wrap(text: str, columns: int, most: int) -> list[str]:
    """Wrap a text to a maximum number of lines; a cut is marked."""
    lines: list[str] = []
    rest = text
    while rest and len(lines) < most:
        line, rest = _split(rest, columns)
        lines.append(line)
    if rest:
        lines[-1] = _split(lines[-1], columns - 1)[0].rstrip(" ,;") + "…"
    return lines or [""]


def _split(text: str, columns: int) -> tuple[str, str]:
    """Split a text after the first line, between words if possible."""
    from rich.cells import get_character_cell_size

    used = 0
    for at, letter in enumerate(text):
        size = get_character_cell_size(letter)
        used += size
        if used > columns:
            space = text.rfind(" ", 0, at + 1)
            is_between_words = bool(text[: max(space, 0)].strip())
            # Scripts without spaces may break anywhere; a word breaks only if it fills the line.
            end = space if is_between_words and (space > at // 2 or size == 1) else at
            return text[:end].rstrip(), text[end:].lstrip()
    return text, ""


@contextlib.contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar; without a terminal, nothing is drawn."""
    if not screen().err.isatty():
        yield lambda done, total: None
        return
    with new_bar(what) as bars:
        yield lambda done, total: bars.update(bars.task_ids[0], completed=done, total=total)


def new_bar(what: str) -> "Progress":
    """A progress bar, not drawn yet."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bars = Progress(*columns, console=bar_console(), transient=True)
    bars.add_task(what, total=None)
    return bars


def stop_on_signals(what: str) -> threading.Event:
    """An event that an interrupt sets; the current `what` is finished first."""
    stop = threading.Event()

    def request(number: int, _: object) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        stop.set()
        say(f"\nStopping after the {what} under way …")

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, request)
    return stop
