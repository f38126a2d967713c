"""Runs commands in the daemon for another process, which prints their output (see `instant`).

The daemon runs the same code as the command line, with its own engine, and records the output. It
never prompts, reads stdin or writes a file for a command. Help, wrong flags, other settings and
unexpected failures are left to the other process.
"""

import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from typer.exceptions import TyperException

from obsidian_rag.config import ENV_PREFIX
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.transports.cli.app import command_tree  # noqa: TID253  (loaded there already)
from obsidian_rag.transports.cli.backend import use_engine
from obsidian_rag.transports.cli.instant import ANSWERED, surroundings
from obsidian_rag.transports.cli.output import print_failure
from obsidian_rag.transports.cli.streams import screen_elsewhere

if TYPE_CHECKING:
    from obsidian_rag.engine import Engine

_log = logging.getLogger(__name__)


def answer_command(engine: "Engine", asked: Mapping[str, object]) -> dict[str, object] | None:
    """Run a command; returns its output and exit code, or None if its process must run it."""
    try:
        (name, *arguments), columns, terminals, is_plain = _parse_request(asked)
    except (KeyError, TypeError, ValueError):
        return None
    if name not in ANSWERED or asked.get("surroundings") != surroundings():
        return None
    with (
        engine.one_set_of_settings(),
        use_engine(engine),
        screen_elsewhere([name, *arguments], columns, terminals, is_plain) as said,
    ):
        code = _run(name, arguments) if _has_settings_of_file(engine) else None
    if code is None:
        return None
    shown = [(number, text.decode("utf-8", "surrogateescape")) for number, text in said]
    return {"code": code, "shown": shown}


def _parse_request(asked: Mapping[str, Any]) -> tuple[list[str], int, tuple[bool, bool], bool]:
    """The arguments, the columns, which streams are terminals, and whether to avoid colour."""
    arguments, columns, is_plain = asked["arguments"], asked["columns"], asked["is_plain"]
    out, err = asked["terminals"]
    if not isinstance(arguments, list) or not all(isinstance(one, str) for one in arguments):
        raise TypeError("arguments are a list of texts")
    if not arguments or type(columns) is not int:
        raise ValueError("a command has a name, and a terminal a width")
    return arguments, columns, (bool(out), bool(err)), bool(is_plain)


def _has_settings_of_file(engine: "Engine") -> bool:
    """Whether all settings come from the config file and the environment."""
    variables = (
        f"{ENV_PREFIX}{name.upper().replace('.', '__')}" for name in engine.config.overrides
    )
    return engine.settings_file.trouble is None and all(one in os.environ for one in variables)


def _run(name: str, arguments: list[str]) -> int | None:
    command = command_tree().commands[name]
    try:
        # Typer prints help outside our streams; without these options --help is a wrong flag.
        with command.make_context(name, arguments, help_option_names=[]) as context:
            ended = command.invoke(context)
    except TyperException:
        return None
    except ObsidianRagError as error:
        print_failure(error)
        return error.exit_code
    except Exception:  # noqa: BLE001  (the outer edge: the other process runs the command and reports it)
        _log.exception("%s failed", name)
        return None
    return ended if isinstance(ended, int) else 0
