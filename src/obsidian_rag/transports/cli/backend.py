"""Answers a command: by the daemon if one runs with the same settings, else by this process."""

import contextlib
import re
from contextvars import ContextVar
from typing import TYPE_CHECKING

from obsidian_rag.config import Config, load
from obsidian_rag.errors import InvalidArgument, NotFound, ObsidianRagError, error_from
from obsidian_rag.transports.cli.note_names import similar_notes
from obsidian_rag.transports.cli.streams import paint, say, screen
from obsidian_rag.transports.daemon_client import RunningDaemon, daemon_or_here, usable_daemon
from obsidian_rag.transports.lazy import engine, tools

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from obsidian_rag.engine import Engine
    from obsidian_rag.tools import Envelope

_HOW_TO_FIND = "`obsidian-rag search` finds notes by what they say."
# The daemon's engine, while the daemon runs a command for another process.
_daemons_engine: "ContextVar[Engine | None]" = ContextVar("engine", default=None)


@contextlib.contextmanager
def open_engine() -> "Iterator[Engine]":
    """Context manager: an engine for the configured installation."""
    if (living := _daemons_engine.get()) is not None:
        yield living
        return
    with contextlib.closing(engine.Engine(load())) as opened:
        yield opened


@contextlib.contextmanager
def use_engine(living: "Engine") -> "Iterator[None]":
    """Context manager: commands of this thread use the daemon's engine."""
    before = _daemons_engine.set(living)
    try:
        yield
    finally:
        _daemons_engine.reset(before)


def the_daemon(config: Config) -> RunningDaemon | None:
    """The daemon to ask, if one runs with this command's settings."""
    daemon, reason = usable_daemon(config)
    if reason:
        say(f"{paint('note', 'yellow')}  {reason}")
    return daemon


def ask_tool(
    tool: str, arguments: "Mapping[str, object]", flags: "Mapping[str, str] | None" = None
) -> "Envelope":
    """Call a tool as the owner. `flags` names this command's flag for each parameter in errors.

    Raises:
        ObsidianRagError: the tool failed.
    """
    try:
        return _call_tool(tool, arguments)
    except InvalidArgument as error:
        raise InvalidArgument(
            _name_flags(error.message, flags or {}), _name_flags(error.suggestion, flags or {})
        ) from None
    except NotFound as error:
        raise _add_similar(error, arguments) from None


def _call_tool(tool: str, arguments: "Mapping[str, object]") -> "Envelope":
    def there(daemon: RunningDaemon) -> "Envelope":
        return check_answer(daemon.call(tool, arguments, is_owner=True))

    def here() -> "Envelope":
        with open_engine() as opened:
            return tools.run(opened, tool, arguments, tools.OWNER)

    if (living := _daemons_engine.get()) is not None:
        return check_answer(tools.call(living, tool, arguments, tools.OWNER))
    return daemon_or_here(the_daemon(load()), there, here)


def check_answer(envelope: "Envelope") -> "Envelope":
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


def add_health(error: ObsidianRagError) -> None:
    """Set the engine's health on the error of a wrong call, which does not have it."""
    if not error.is_about_call or "status" in vars(error):
        return
    with contextlib.suppress(ObsidianRagError):
        if load().database.exists():
            with open_engine() as opened:
                error.status = engine.health_of(opened).state


def no_note(name: str) -> NotFound:
    """The error for a missing note, with similar names."""
    if found := similar_notes(name):
        *most, last = found
        some = f"{', '.join(most)} or {last}" if most else last
        return NotFound(f"No note '{name}'. Did you mean {some}?", _HOW_TO_FIND)
    return NotFound(f"No note '{name}'.", _HOW_TO_FIND)


def _name_flags(text: str, flags: "Mapping[str, str]") -> str:
    """Replace the names of parameters in a message with flags."""
    if text.startswith("The parameters are: "):
        typed = screen().arguments
        return f"See `obsidian-rag {typed[0]} --help`." if typed else ""
    for parameter, flag in flags.items():
        bare = rf"|\b{parameter}\b" if "_" in parameter else ""  # "note" is also just a word
        text = re.sub(rf"(?:[Pp]arameter )?'{parameter}'{bare}", flag, text)
    return text[:1].upper() + text[1:]


def _add_similar(error: NotFound, arguments: "Mapping[str, object]") -> NotFound:
    for name in (arguments.get("note"), arguments.get("target"), arguments.get("source")):
        if isinstance(name, str) and error.message == f"No note '{name}'.":
            return no_note(name)
    return error
