"""Instant output: the help, the version, and commands that a running daemon answers.

Importing typer and pydantic costs ten times as much CPU as all of this. A daemon has both in
memory, so it runs the command (see `answering`), and this process prints the output. Everything
else is left to `app`, which prints the same, only more slowly.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import IO, Any

from obsidian_rag import __version__
from obsidian_rag.data_folder import ENV_PREFIX, config_file, data_home
from obsidian_rag.transports.light_client import daemon_facts, post

ANSWERED = frozenset({"search", "read", "related", "status"})
PATH = "/command"
# The width of the output if the width of the terminal is unknown.
USUAL_COLUMNS = 100
# The width of the help texts in the file; typer never uses more.
_HELP_COLUMNS = 80
HELP_FILE = Path(__file__).with_name("help.json")
_COMPLETING = "_OBSIDIAN_RAG_COMPLETE"
_PLACES = (f"{ENV_PREFIX}HOME", f"{ENV_PREFIX}CONFIG")


def answer_at_once(arguments: list[str]) -> int | None:
    """Print a command's output if `app` is not needed; returns the exit code, or None."""
    if _COMPLETING in os.environ or not _can_print(sys.stdout, sys.stderr):
        return None
    if (text := _fixed_text(arguments)) is not None:
        return _print([(1, text.replace("\n", os.linesep))], 0)
    found = _from_daemon(arguments)
    return None if found is None else _print(found["shown"], found["code"])


def columns(usual: int) -> int:
    """The terminal's width, like `shutil.get_terminal_size`, which is slow to import."""
    try:
        if (wanted := int(os.environ["COLUMNS"])) > 0:
            return wanted
    except (KeyError, ValueError):
        pass
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or usual  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return usual


def surroundings() -> list[object]:
    """What output depends on besides the config file: settings in the environment, time zone.

    The settings as a digest, because one may be a password.
    """
    settings = sorted(
        f"{name}={value}"
        for name, value in os.environ.items()
        if name.startswith(ENV_PREFIX) and name not in _PLACES
    )
    zone = [os.environ.get("TZ"), time.timezone, time.altzone, *time.tzname]
    return [_digest("\0".join(settings)) if settings else "", *zone]


def discard(stream: IO[str]) -> None:
    """Discard buffered output, or the interpreter reports an error when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    except OSError:
        pass
    finally:
        os.close(nowhere)


def _fixed_text(arguments: list[str]) -> str | None:
    if arguments == ["--version"]:
        return f"obsidian-rag {__version__}\n"
    if arguments[-1:] not in (["--help"], ["-h"]) or columns(_HELP_COLUMNS) < _HELP_COLUMNS:
        return None
    texts: dict[str, str] = json.loads(HELP_FILE.read_text(encoding="utf-8"))
    return texts.get(" ".join(arguments[:-1]))


def _from_daemon(arguments: list[str]) -> Any:
    """Let a daemon with our settings run the command; None if it has to run here."""
    # On Windows, arguments and line ends would be changed in transit.
    if not arguments or arguments[0] not in ANSWERED or sys.platform == "win32":
        return None
    try:
        facts = daemon_facts(data_home())
        if (
            facts is None
            or facts["version"] != __version__
            or facts["config"] != str(config_file())
        ):
            return None
        status, body = post(facts["port"], facts["token"], PATH, _encode_request(arguments))
        return json.loads(body) if status == 200 else None
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        return None


def _encode_request(arguments: list[str]) -> bytes:
    for argument in arguments:
        argument.encode()  # `app` refuses an argument that is not UTF-8
    return json.dumps(
        {
            "arguments": arguments,
            "columns": columns(USUAL_COLUMNS),
            "terminals": [sys.stdout.isatty(), sys.stderr.isatty()],
            "is_plain": bool(os.environ.get("NO_COLOR")),
            "surroundings": surroundings(),
        }
    ).encode("ascii")


def _can_print(*streams: Any) -> bool:
    return all(getattr(stream, "buffer", None) is not None for stream in streams)


def _print(shown: list[Any], code: int) -> int | None:
    """Print both streams in the original order; a reader that went away is not a failure."""
    for number, text in shown:
        stream = sys.stdout if number == 1 else sys.stderr
        try:
            stream.buffer.write(text.encode("utf-8", "surrogateescape"))
            stream.buffer.flush()
        except BrokenPipeError:
            discard(stream)
        except OSError:
            return None  # such as a full disk: `app` reports it
    return code


def _digest(text: str) -> str:
    import hashlib  # noqa: PLC0415  (seldom needed, and slow to load)

    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
