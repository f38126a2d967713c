"""read: a note or a part of it. The user at the terminal is the owner: nothing is withheld."""

import re
from typing import Annotated, Any

import typer

from obsidian_rag.errors import InvalidArgument
from obsidian_rag.transports.cli.backend import ask_tool, open_engine
from obsidian_rag.transports.cli.note_names import NoteArgument, VaultOption
from obsidian_rag.transports.cli.output import JsonFlag, print_answer
from obsidian_rag.transports.cli.streams import put, say, screen
from obsidian_rag.transports.lazy import tools

_FLAGS = {
    "note": "the note",
    "heading": "--heading",
    "start_line": "--lines",
    "end_line": "--lines",
}
_LINES = re.compile(r"(\d+)(?:(-)(\d*))?")


def read(
    note: NoteArgument,
    vault: VaultOption = None,
    heading: Annotated[
        str | None, typer.Option(help="Only the section under this heading; 'A > B' for B under A")
    ] = None,
    lines: Annotated[
        str | None, typer.Option(metavar="A-B", help="Only these lines: 10-20, 10- or 10")
    ] = None,
    confirm_sensitive: Annotated[
        bool, typer.Option("--confirm-sensitive", help="For agent scripts; you don't need it")
    ] = False,
    json_output: JsonFlag = False,
) -> int:
    """Print a note, one section of it, or some lines

    Example:  obsidian-rag read Journal/2024-01-15 --heading "#mentalhealth"
    """
    if heading is not None and lines is not None:
        raise InvalidArgument("--heading and --lines exclude each other.", "Choose one.")
    first, last = _range(lines)
    arguments = {
        "note": note,
        "vault": vault,
        "heading": heading,
        "start_line": first,
        "end_line": last,
        "confirm_sensitive": confirm_sensitive,
    }
    is_whole = heading is None and lines is None
    envelope = ask_tool("obsidian_rag_read", arguments, _FLAGS)
    return print_answer(envelope, json_output, lambda data: _show(data, is_whole))


def _show(data: Any, is_whole: bool) -> None:
    if screen().out.isatty():
        put(data["text"])
    else:
        _write_raw((_bytes_of(data) if is_whole else None) or _encode(data["text"]))
    if data["sensitive_detected"] and screen().err.isatty():
        say(f"sensitive: {', '.join(data['sensitive_categories'])}")


def _bytes_of(note: Any) -> bytes | None:
    """The bytes of the whole note, so that `read NOTE > file` copies it."""
    with open_engine() as opened:
        return tools.note_bytes(opened, note["link_id"], note["source_file"])


def _encode(text: str) -> bytes:
    return f"{text}\n".encode(errors="replace")


def _write_raw(data: bytes) -> None:
    """Write the note unchanged to a pipe or file, control characters included."""
    out: Any = screen().out
    out.flush()
    out.buffer.write(data)
    out.buffer.flush()


def _range(lines: str | None) -> tuple[int | None, int | None]:
    if lines is None:
        return None, None
    found = _LINES.fullmatch(lines.strip())
    if found is None:
        raise InvalidArgument(f"--lines cannot be '{lines}'.", "Write 10-20, 10- or 10.")
    first = int(found[1])
    if not found[2]:
        return first, first
    if not found[3]:
        return first, None
    if int(found[3]) < first:
        raise InvalidArgument(f"--lines {lines} ends before it begins.", "Write 10-20, 10- or 10.")
    return first, int(found[3])
