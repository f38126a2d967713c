"""read: a note or a part of it. Who sits at the terminal owns the notes: nothing is withheld."""

import re
import sys
from typing import Annotated, Any

import typer

from obsidian_rag.errors import InvalidArgument
from obsidian_rag.transports.cli.output import JsonFlag, ask_tool, print_envelope

_LINES = re.compile(r"(\d+)(?:(-)(\d*))?")


def read(
    note: Annotated[str, typer.Argument(help="Path in the vault, or a unique file name")],
    heading: Annotated[
        str | None, typer.Option(help="Only the section under this heading; 'A > B' for B under A")
    ] = None,
    lines: Annotated[
        str | None, typer.Option(metavar="A-B", help="Only these lines: 10-20, 10- or 10")
    ] = None,
    confirm_sensitive: Annotated[
        bool, typer.Option("--confirm-sensitive", help="For scripts of agents; you need it not")
    ] = False,
    json_output: JsonFlag = False,
) -> int:
    """Print a note, or a section or some lines of it

    Example:  obsidian-rag read Journal/2024-01-15 --heading "#mentalhealth"
    """
    first, last = _range(lines)
    arguments = {
        "note": note,
        "heading": heading,
        "start_line": first,
        "end_line": last,
        "confirm_sensitive": confirm_sensitive,
    }
    envelope = ask_tool("obsidian_rag_read", arguments)
    if json_output:
        print_envelope(envelope)
        return 0
    data: Any = envelope["data"]
    print(data["text"])
    if data["sensitive_detected"] and sys.stderr.isatty():
        print(f"sensitive: {', '.join(data['sensitive_categories'])}", file=sys.stderr)
    return 0


def _range(lines: str | None) -> tuple[int | None, int | None]:
    if lines is None:
        return None, None
    found = _LINES.fullmatch(lines.strip())
    if found is None:
        raise InvalidArgument(f"--lines '{lines}' is no range.", "Write 10-20, 10- or 10.")
    first = int(found[1])
    if not found[2]:
        return first, first
    return first, int(found[3]) if found[3] else None
