"""Text on its way to a terminal or a pipe: always UTF-8, and never a command to the terminal.

Threat: notes, file names, tags, remembered facts and paths from other devices are printed. In
them, an escape sequence could recolour, hide or rewrite what the terminal shows, set its title
or make it type; a bidi override shows a name backwards. So stdout and stderr are replaced, for
as long as a command runs, by streams that pass no control characters except those that `style`
and `bar_console` mark as ours, with a key that no note can know.
"""

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, cast

import typer

if TYPE_CHECKING:
    from rich.console import Console

_KEY = f"\x10{os.urandom(8).hex()}"
_REPLACEMENT = "\ufffd"
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_BIDI = "\u202a-\u202e\u2066-\u2069"
_UNSAFE = re.compile(f"{_KEY}([\x1b\r])|(\r(?=\n)|[{_BIDI}])|[{_CONTROLS}]")
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\ud800-\udfff" + _BIDI + "]")


@contextlib.contextmanager
def safe_streams() -> Iterator[None]:
    """Print through safe streams for a while."""
    before = sys.stdout, sys.stderr
    after = _safe(sys.stdout), _safe(sys.stderr)
    sys.stdout, sys.stderr = after
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in after:
            if isinstance(stream, _SafeStream):
                stream.let_go()


def neutral(text: str) -> str:
    """The text without what steers a terminal: a mark for controls, nothing for bidi controls."""
    return _UNSAFE.sub(_harmless, text)


def escaped(json_text: str) -> str:
    """A JSON document that is safe to show and can be encoded whatever it holds."""
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", json_text)


def style(text: str, *, stream: IO[str] | None = None, **how: Any) -> str:
    """Coloured if the stream (stdout unless told) is a terminal that wants colour."""
    if not text or os.environ.get("NO_COLOR") or not (stream or sys.stdout).isatty():
        return text
    return _ours(typer.style(neutral(text), **how))


def say(text: str) -> None:
    """Talk, which is not data: a line on stderr."""
    print(text, file=sys.stderr)


def line_start() -> str:
    """What goes back to the beginning of the line, to write over it."""
    return f"{_KEY}\r"


def bar_console() -> "Console":
    """Where progress bars are drawn: stderr, with the codes that move the cursor."""
    from rich.console import Console

    return Console(file=cast("IO[str]", _CursorStream(sys.stderr)))


def _harmless(found: re.Match[str]) -> str:
    if found[1]:
        return found[1]
    return "" if found[2] else _REPLACEMENT


def _ours(text: str) -> str:
    return text.replace("\x1b", f"{_KEY}\x1b").replace("\r", f"{_KEY}\r")


def _safe(stream: Any) -> Any:
    """A safe stream over the same file; a stream without one (a test's, say) stays."""
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
        super().write(neutral(text))
        return len(text)

    def let_go(self) -> None:
        """Leave the file open for its earlier stream; a reader that went away is no failure."""
        try:
            self.flush()
        except BrokenPipeError:
            _discard(self)
        except (OSError, ValueError):
            pass  # closed: there is nobody left to tell
        with contextlib.suppress(OSError, ValueError):
            self.detach()


def _discard(stream: IO[str]) -> None:
    """Send what is left nowhere, or the interpreter complains about it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError):
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class _CursorStream:
    """A stream as rich needs it; its escape sequences count as ours."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(_ours(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
