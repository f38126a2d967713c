"""How the command line speaks: data on stdout, talk on stderr, one envelope with --json."""

import json
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from obsidian_rag.config import load
from obsidian_rag.errors import ObsidianRagError

if TYPE_CHECKING:
    from obsidian_rag.engine import Engine
    from obsidian_rag.tools import Envelope

JsonFlag = Annotated[bool, typer.Option("--json", help="Print the envelope as JSON")]


def open_engine() -> "Engine":
    """The engine for the configured installation."""
    from obsidian_rag.engine import Engine

    return Engine(load())


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
