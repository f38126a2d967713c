"""How the command line speaks: data on stdout, talk on stderr, one envelope with --json."""

import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from obsidian_rag.config import Config, load
from obsidian_rag.errors import ObsidianRagError, error_from
from obsidian_rag.transports.running import DaemonGone, RunningDaemon, usable_daemon

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obsidian_rag.engine import Engine
    from obsidian_rag.tools import Envelope

JsonFlag = Annotated[bool, typer.Option("--json", help="Print the envelope as JSON")]


def open_engine() -> "Engine":
    """The engine for the configured installation."""
    from obsidian_rag.engine import Engine

    return Engine(load())


def the_daemon(config: Config) -> RunningDaemon | None:
    """The daemon to ask, if one runs with the settings that this command has."""
    daemon, reason = usable_daemon(config)
    if reason:
        print(f"{paint('note', 'yellow')}  {reason}", file=sys.stderr)
    return daemon


def ask_tool(tool: str, arguments: "Mapping[str, object]") -> "Envelope":
    """Ask a tool for the person at the terminal: the daemon if one runs, else in this process.

    Raises:
        ObsidianRagError: there is no answer.
    """
    config = load()
    daemon = the_daemon(config)
    if daemon is not None:
        with contextlib.suppress(DaemonGone):
            return answered(daemon.call(tool, arguments, is_owner=True))
    from obsidian_rag import tools

    with contextlib.closing(open_engine()) as engine:
        return tools.run(engine, tool, arguments, is_owner=True)


def answered(envelope: "Envelope") -> "Envelope":
    """An envelope with data.

    Raises:
        ObsidianRagError: it has none.
    """
    error = envelope["error"]
    if envelope["data"] is None and error is not None:
        raise error_from(error["code"], error["message"], error["suggestion"])
    return envelope


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def print_envelope(envelope: "Envelope") -> None:
    """An answer for programs."""
    print_json(envelope)


def print_failure(error: ObsidianRagError) -> None:
    """A failure: the envelope if JSON was asked for, and always a sentence on stderr."""
    if "--json" in sys.argv:
        from obsidian_rag.tools import failure

        print_envelope(failure(error))
    print(f"{paint('error', 'red')} {error.code}: {error.message}", file=sys.stderr)
    if error.suggestion:
        print(f"{paint('hint', 'cyan')}  {error.suggestion}", file=sys.stderr)


def paint(text: str, colour: str) -> str:
    """Coloured on a terminal that wants colour, plain otherwise."""
    if os.environ.get("NO_COLOR") or not sys.stderr.isatty():
        return text
    return typer.style(text, fg=colour, bold=True)
