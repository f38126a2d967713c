"""Output of the command line: data on stdout, messages on stderr, an envelope with --json."""

import contextlib
import json
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import datetime
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from obsidian_rag.config import Config, load
from obsidian_rag.errors import InvalidArgument, NotFound, ObsidianRagError, error_from
from obsidian_rag.transports.cli.note_names import similar_notes
from obsidian_rag.transports.cli.related_text import plain
from obsidian_rag.transports.cli.streams import bar_console, escaped, put, say, screen, style
from obsidian_rag.transports.daemon_client import RunningDaemon, daemon_or_here, usable_daemon
from obsidian_rag.transports.lazy import engine, tools

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.progress import Progress

    from obsidian_rag.engine import Engine
    from obsidian_rag.tools import Envelope


_MINUTE_S = 60
_HOUR_S = 3600


def meaning_text(meaning: Any) -> str:
    """One line about the progress of meaning vectors."""
    share = f"{meaning['done']:,} of {meaning['total']:,}"
    if meaning["trouble"]:
        return f"meaning vectors stop at {share}: {meaning['trouble']}"
    if meaning["is_paused"] and meaning["done"] < meaning["total"]:
        return f"meaning vectors: {share} (paused)"
    left = meaning["seconds_left"]
    return f"meaning vectors: {share}" + (f" ({about_duration(left)} left)" if left else "")


def about_duration(seconds: float) -> str:
    """A rounded duration."""
    if seconds < _MINUTE_S:
        return f"about {max(1, round(seconds))} s"
    if seconds < 2 * _HOUR_S:
        return f"about {round(seconds / _MINUTE_S)} min"
    return f"about {round(seconds / _HOUR_S)} h"


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


_HOW_TO_FIND = "`obsidian-rag search` finds notes by what they say."
# The daemon's engine, while the daemon runs a command; else a command opens its own.
_living: "ContextVar[Engine | None]" = ContextVar("engine", default=None)
JsonFlag = Annotated[bool, typer.Option("--json", help="Print the envelope as JSON")]


def command_group(text: str) -> typer.Typer:
    """A group of commands with this help text."""
    return typer.Typer(no_args_is_help=True, help=text, rich_markup_mode=None)


@contextlib.contextmanager
def open_engine() -> "Iterator[Engine]":
    """Context manager: an engine for the configured installation."""
    if (living := _living.get()) is not None:
        yield living
        return
    with contextlib.closing(engine.Engine(load())) as opened:
        yield opened


@contextlib.contextmanager
def living_engine(living: "Engine") -> "Iterator[None]":
    """Context manager: commands inside use this engine, in this process."""
    before = _living.set(living)
    try:
        yield
    finally:
        _living.reset(before)


def the_daemon(config: Config) -> RunningDaemon | None:
    """The daemon to ask, if one runs with this command's settings."""
    daemon, reason = usable_daemon(config)
    if reason:
        say(f"{paint('note', 'yellow')}  {reason}")
    return daemon


def ask_tool(
    tool: str, arguments: "Mapping[str, object]", names: "Mapping[str, str] | None" = None
) -> "Envelope":
    """Call a tool as the owner: in the daemon if one runs, else in this process.

    `names` maps the tool's parameters to this command's flags, for error messages.

    Raises:
        ObsidianRagError: the tool failed.
    """
    try:
        return _call_tool(tool, arguments)
    except InvalidArgument as error:
        raise InvalidArgument(
            _in_flags(error.message, names or {}), _in_flags(error.suggestion, names or {})
        ) from None
    except NotFound as error:
        raise _with_similar(error, arguments) from None


def _call_tool(tool: str, arguments: "Mapping[str, object]") -> "Envelope":
    def there(daemon: RunningDaemon) -> "Envelope":
        return answered(daemon.call(tool, arguments, is_owner=True))

    def here() -> "Envelope":
        with open_engine() as opened:
            return tools.run(opened, tool, arguments, tools.OWNER)

    if (living := _living.get()) is not None:
        return answered(tools.call(living, tool, arguments, tools.OWNER))
    return daemon_or_here(the_daemon(load()), there, here)


def _in_flags(text: str, names: "Mapping[str, str]") -> str:
    """Replace the names of parameters in a message with flags."""
    if text.startswith("The parameters are: "):
        typed = screen().arguments
        return f"See `obsidian-rag {typed[0]} --help`." if typed else ""
    for parameter, flag in names.items():
        bare = rf"|\b{parameter}\b" if "_" in parameter else ""  # "note" is also just a word
        text = re.sub(rf"(?:[Pp]arameter )?'{parameter}'{bare}", flag, text)
    return text[:1].upper() + text[1:]


def _with_similar(error: NotFound, arguments: "Mapping[str, object]") -> NotFound:
    """Add similar names to the error for a missing note."""
    for name in (arguments.get("note"), arguments.get("target"), arguments.get("source")):
        if isinstance(name, str) and error.message == f"No note '{name}'.":
            return no_note(name)
    return error


def no_note(name: str) -> NotFound:
    """The error for a missing note, with similar names."""
    if found := similar_notes(name):
        *most, last = found
        some = f"{', '.join(most)} or {last}" if most else last
        return NotFound(f"No note '{name}'. Did you mean {some}?", _HOW_TO_FIND)
    return NotFound(f"No note '{name}'.", _HOW_TO_FIND)


def answered(envelope: "Envelope") -> "Envelope":
    """Return the envelope if it has data.

    Raises:
        ObsidianRagError: it contains only an error.
    """
    error = envelope["error"]
    if envelope["data"] is None and error is not None:
        failure = error_from(error["code"], error["message"], error["suggestion"])
        failure.status = envelope["status"]
        raise failure
    return envelope


def json_text(value: object) -> str:
    """A JSON document as text to print."""
    return escaped(json.dumps(value, ensure_ascii=False, indent=2))


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
        _set_health(error)
        print_envelope(tools.failure(error))
    say(f"{paint('error', 'red')} {error.code}: {error.message}")
    if error.suggestion:
        say(f"{paint('hint', 'cyan')}  {error.suggestion}")


def print_trouble(error: Any, stream: IO[str]) -> None:
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


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 note", "2 notes"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def local_time(moment: str) -> str:
    """An ISO time as local time, to the minute."""
    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}"


def _set_health(error: ObsidianRagError) -> None:
    """Set the engine's health on the error of a wrong call, which says nothing about it."""
    if not error.is_about_call or "status" in vars(error):
        return
    with contextlib.suppress(ObsidianRagError):
        if load().database.exists():
            with open_engine() as opened:
                error.status = engine.health_of(opened).state


def paint(text: str, colour: str) -> str:
    """A word for stderr, coloured on a terminal that wants colour."""
    return style(text, stream=screen().err, fg=colour, bold=True)
