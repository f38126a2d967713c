"""Output streams for a terminal or a pipe: always UTF-8, and safe for the terminal.

Threat: notes, file names, tags, remembered facts and paths from other devices are printed. An
escape sequence in them could recolour, hide or rewrite what the terminal shows, set its title or
make it type; a bidi override shows a name backwards. So while a command runs, stdout and stderr are
replaced by streams that remove all control characters except those that `style` and `bar_console`
mark as ours, with a random key that no note can contain.
"""

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, cast

import typer

from obsidian_rag.transports.cli.instant import USUAL_COLUMNS, columns, discard

if TYPE_CHECKING:
    from rich.console import Console

_KEY = f"\x10{os.urandom(8).hex()}"
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_BIDI = "\u202a-\u202e\u2066-\u2069"
_UNSAFE = re.compile(f"{_KEY}([\x1b\r])|(\r(?=\n)|[{_BIDI}])|[{_CONTROLS}]")
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\ud800-\udfff" + _BIDI + "]")


@dataclass(frozen=True, slots=True)
class Screen:
    """Where a command prints, and its arguments; `is_plain` means without colour."""

    out: IO[str]
    err: IO[str]
    arguments: list[str]
    columns: int
    is_plain: bool


# Set in a thread of the daemon while it runs a command of another process.
_elsewhere: ContextVar[Screen | None] = ContextVar("screen", default=None)


def screen() -> Screen:
    """The screen of the current command."""
    return _elsewhere.get() or Screen(
        sys.stdout,
        sys.stderr,
        sys.argv[1:],
        columns(USUAL_COLUMNS),
        bool(os.environ.get("NO_COLOR")),
    )


@contextlib.contextmanager
def screen_elsewhere(
    arguments: list[str], columns: int, terminals: tuple[bool, bool], is_plain: bool
) -> Iterator[list[tuple[int, bytearray]]]:
    """Record what this thread prints, for a command of another process.

    `terminals` says whether stdout and stderr are terminals there. The list has the number of the
    stream (1 or 2) and the bytes written to it, in order.
    """
    said: list[tuple[int, bytearray]] = []
    out, err = (
        _SafeStream(
            cast("Any", _Recorder(number, is_terminal, said)),
            encoding="utf-8",
            errors="replace",
            newline="\n",
            write_through=True,
        )
        for number, is_terminal in enumerate(terminals, start=1)
    )
    before = _elsewhere.set(Screen(out, err, arguments, columns, is_plain))
    try:
        yield said
    finally:
        _elsewhere.reset(before)


@contextlib.contextmanager
def safe_streams() -> Iterator[None]:
    """Context manager that replaces stdout and stderr with safe streams."""
    before = sys.stdout, sys.stderr
    after = _wrap_stream(sys.stdout), _wrap_stream(sys.stderr)
    sys.stdout, sys.stderr = after
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in after:
            if isinstance(stream, _SafeStream):
                stream.let_go()


def neutralise(text: str) -> str:
    """Escape control and bidi characters, so that they cannot control a terminal."""
    return _UNSAFE.sub(_escape_match, text)


def escape_letter(letter: str) -> str:
    """An invisible character, written as a visible escape sequence."""
    return (
        letter.encode("ascii", "backslashreplace").decode()
        if ord(letter) > 127
        else f"\\x{ord(letter):02x}"
    )


def escape_json(json_text: str) -> str:
    """Escape a JSON document so that it is safe to show and can always be encoded."""
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", json_text)


def style(text: str, *, stream: IO[str] | None = None, **how: Any) -> str:
    """Colour the text if the stream (by default stdout) is a terminal that wants colour."""
    shown = screen()
    if not text or shown.is_plain or not (stream or shown.out).isatty():
        return text
    return _mark_as_ours(typer.style(neutralise(text), **how))


def paint(text: str, colour: str) -> str:
    """A word for stderr, coloured on a terminal that wants colour."""
    return style(text, stream=screen().err, fg=colour, bold=True)


def put(text: str = "") -> None:
    """Print a line of data on stdout."""
    print(text, file=screen().out)


def say(text: str) -> None:
    """Print a message on stderr."""
    print(text, file=screen().err)


def line_start() -> str:
    """The characters that return to the start of the line, to overwrite it."""
    return f"{_KEY}\r"


def bar_console() -> "Console":
    """A console on stderr for progress bars, which may move the cursor."""
    from rich.console import Console

    return Console(file=cast("IO[str]", _CursorStream(sys.stderr)))


def _escape_match(found: re.Match[str]) -> str:
    if found[1]:
        return found[1]
    if found[2] == "\r":
        return ""
    # Escaping keeps a name recognisable, and distinct from one that differs only here.
    return escape_letter(found[0])


def _mark_as_ours(text: str) -> str:
    return text.replace("\x1b", f"{_KEY}\x1b").replace("\r", f"{_KEY}\r")


def _wrap_stream(stream: Any) -> Any:
    """Wrap the stream's file in a safe stream; a stream without one, as in tests, is kept."""
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        return stream
    with contextlib.suppress(OSError, ValueError):
        stream.flush()
    return _SafeStream(
        buffer,
        encoding="utf-8",
        errors="replace",
        newline="\n" if sys.platform != "win32" else None,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


class _SafeStream(io.TextIOWrapper):
    """Writes text without the control characters in it."""

    def write(self, text: str) -> int:
        super().write(neutralise(text))
        return len(text)

    def let_go(self) -> None:
        """Detach, so that the file stays open; a reader that went away is not a failure."""
        try:
            self.flush()
        except BrokenPipeError:
            discard(self)
        except (OSError, ValueError):
            pass  # the stream is closed
        with contextlib.suppress(OSError, ValueError):
            self.detach()


class _Recorder(io.RawIOBase):
    """Records writes to one of two streams in a list that keeps the order of both."""

    def __init__(self, number: int, is_terminal: bool, said: list[tuple[int, bytearray]]) -> None:
        self._number = number
        self._is_terminal = is_terminal
        self._said = said

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, data: Any) -> int:
        if not self._said or self._said[-1][0] != self._number:
            self._said.append((self._number, bytearray()))
        self._said[-1][1].extend(data)
        return len(data)


class _CursorStream:
    """A stream for rich, whose escape sequences are marked as ours."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(_mark_as_ours(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
