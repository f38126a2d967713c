"""How the command line speaks: data on stdout, talk on stderr, one envelope with --json."""

import contextlib
import json
import re
import sys
from datetime import datetime
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from obsidian_rag.config import Config, load
from obsidian_rag.errors import InvalidArgument, NotFound, ObsidianRagError, error_from
from obsidian_rag.transports.backend import daemon_or_here, usable_daemon
from obsidian_rag.transports.cli.note_names import similar_notes
from obsidian_rag.transports.cli.related_text import plain
from obsidian_rag.transports.cli.streams import escaped, say, style
from obsidian_rag.transports.daemon_client import RunningDaemon
from obsidian_rag.transports.lazy import engine, tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from obsidian_rag.engine import Engine
    from obsidian_rag.tools import Envelope

_HOW_TO_FIND = "`obsidian-rag search` finds notes by what they say."
JsonFlag = Annotated[bool, typer.Option("--json", help="Print the envelope as JSON")]


def command_group(text: str) -> typer.Typer:
    """A name with commands below it; `text` says what they are about."""
    return typer.Typer(no_args_is_help=True, help=text, rich_markup_mode=None)


@contextlib.contextmanager
def open_engine() -> "Iterator[Engine]":
    """The engine for the configured installation, for a while."""
    with contextlib.closing(engine.Engine(load())) as opened:
        yield opened


def the_daemon(config: Config) -> RunningDaemon | None:
    """The daemon to ask, if one runs with the settings that this command has."""
    daemon, reason = usable_daemon(config)
    if reason:
        say(f"{paint('note', 'yellow')}  {reason}")
    return daemon


def ask_tool(
    tool: str, arguments: "Mapping[str, object]", names: "Mapping[str, str] | None" = None
) -> "Envelope":
    """Ask a tool for the person at the terminal: the daemon if one runs, else in this process.

    `names` says what this command calls the tool's parameters.

    Raises:
        ObsidianRagError: there is no answer.
    """
    try:
        return _asked(tool, arguments)
    except InvalidArgument as error:
        raise InvalidArgument(
            _in_flags(error.message, names or {}), _in_flags(error.suggestion, names or {})
        ) from None
    except NotFound as error:
        raise _with_similar(error, arguments) from None


def _asked(tool: str, arguments: "Mapping[str, object]") -> "Envelope":
    def there(daemon: RunningDaemon) -> "Envelope":
        return answered(daemon.call(tool, arguments, is_owner=True))

    def here() -> "Envelope":
        with open_engine() as opened:
            return tools.run(opened, tool, arguments, tools.OWNER)

    return daemon_or_here(the_daemon(load()), there, here)


def _in_flags(text: str, names: "Mapping[str, str]") -> str:
    """A message about parameters, in the words of the command line."""
    if text.startswith("The parameters are: "):
        return f"See `obsidian-rag {sys.argv[1]} --help`." if len(sys.argv) > 1 else ""
    for parameter, flag in names.items():
        bare = rf"|\b{parameter}\b" if "_" in parameter else ""  # "note" is also just a word
        text = re.sub(rf"(?:[Pp]arameter )?'{parameter}'{bare}", flag, text)
    return text[:1].upper() + text[1:]


def _with_similar(error: NotFound, arguments: "Mapping[str, object]") -> NotFound:
    """A note that is not there, and the ones that may have been meant."""
    for name in (arguments.get("note"), arguments.get("target"), arguments.get("source")):
        if isinstance(name, str) and error.message == f"No note '{name}'.":
            return no_note(name)
    return error


def no_note(name: str) -> NotFound:
    """There is no such note; the message names those that are called nearly so."""
    if found := similar_notes(name):
        *most, last = found
        some = f"{', '.join(most)} or {last}" if most else last
        return NotFound(f"No note '{name}'. Did you mean {some}?", _HOW_TO_FIND)
    return NotFound(f"No note '{name}'.", _HOW_TO_FIND)


def answered(envelope: "Envelope") -> "Envelope":
    """An envelope with data.

    Raises:
        ObsidianRagError: it has none.
    """
    error = envelope["error"]
    if envelope["data"] is None and error is not None:
        failure = error_from(error["code"], error["message"], error["suggestion"])
        failure.status = envelope["status"]
        raise failure
    return envelope


def json_text(value: object) -> str:
    """One JSON document, as it is printed."""
    return escaped(json.dumps(value, ensure_ascii=False, indent=2))


def print_envelope(envelope: "Envelope") -> None:
    """An answer for programs."""
    print(json_text(envelope))


def print_data(data: object) -> None:
    """What a command found or did, for programs."""
    print_envelope(tools.success(data))


def print_done(data: object, sentence: str, json_output: bool, notes: "Iterable[str]" = ()) -> int:
    """What a command did: for programs, or in a sentence with notes; returns the exit code."""
    if json_output:
        print_data(data)
        return 0
    print(sentence)
    for note in notes:
        say(note)
    return 0


def print_answer(envelope: "Envelope", json_output: bool, show: "Callable[[Any], None]") -> int:
    """The answer of a tool: for programs, or its data as `show` has it; returns the exit code."""
    if json_output:
        print_envelope(envelope)
    else:
        show(envelope["data"])
    return 0


def print_failure(error: ObsidianRagError) -> None:
    """A failure: the envelope if JSON was asked for, and always a sentence on stderr."""
    if "--json" in sys.argv:
        _tell_health(error)
        print_envelope(tools.failure(error))
    say(f"{paint('error', 'red')} {error.code}: {error.message}")
    if error.suggestion:
        say(f"{paint('hint', 'cyan')}  {error.suggestion}")


def print_trouble(error: Any, stream: IO[str]) -> None:
    """What is wrong although there is an answer."""
    print(f"{style(error['code'], stream=stream, fg='yellow')}: {error['message']}", file=stream)
    if error["suggestion"]:
        print(f"  {error['suggestion']}", file=stream)


def print_sections(
    sections: "Iterable[tuple[str, Iterable[str]]]", most: int | None, all_by: str
) -> None:
    """Lists under their titles, `most` lines of each; `all_by` shows the rest. Empty ones not."""
    for title, lines in sections:
        listed = list(lines)
        if not listed:
            continue
        print(f"{title} ({len(listed)})")
        for line in listed[:most]:
            print(f"  {plain(line)}")
        if most is not None and len(listed) > most:
            print(f"  … and {len(listed) - most} more; {all_by} lists them")
        print()


def counted(number: int, noun: str) -> str:
    """So many of something: "1 note", "2 notes"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def local_time(moment: str) -> str:
    """An ISO moment as a clock on the wall shows it, to the minute."""
    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}"


def _tell_health(error: ObsidianRagError) -> None:
    """A wrong call says nothing about the engine: its envelope has the health all the same."""
    if not error.is_about_call or "status" in vars(error):
        return
    with contextlib.suppress(ObsidianRagError):
        if load().database.exists():
            with open_engine() as opened:
                error.status = engine.health_of(opened).state


def paint(text: str, colour: str) -> str:
    """A word on stderr, coloured on a terminal that wants colour."""
    return style(text, stream=sys.stderr, fg=colour, bold=True)
