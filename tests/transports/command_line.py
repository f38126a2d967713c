"""Drivers of the command line: in this process, in another one, and on a terminal."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Any

import pytest
from tests.waiting import PATIENCE_S

from obsidian_rag.transports.cli import main

COMMAND = [sys.executable, "-m", "obsidian_rag"]


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document that stdout is."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The JSON documents that the lines of stdout are."""
        return [json.loads(line) for line in self.out.splitlines()]


def in_process(
    arguments: Sequence[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Done:
    """Quick, and enough where the operating system has no say."""
    capsys.readouterr()
    code = _main(arguments, monkeypatch)
    out, err = capsys.readouterr()
    return Done(code, out, err)


def _main(arguments: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["obsidian-rag", *arguments])
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return main()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def in_another_process(*arguments: str, stdout: int = subprocess.PIPE) -> Done:
    """As a user's shell or the plugin runs it."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_S,
    )
    return Done(done.returncode, done.stdout or "", done.stderr)


def on_terminal(
    *arguments: str,
    answers: Iterable[tuple[str, str]] = (),
    is_redirected: bool = False,
    command: Sequence[str] = COMMAND,
) -> Done:
    """On a terminal, answering each awaited text with a line, in another process.

    `err` has all that was shown; `out` is what went to a file if stdout `is_redirected`.
    """
    terminal, far_end = pty.openpty()
    process = subprocess.Popen(
        [*command, *arguments],
        stdin=far_end,
        stdout=subprocess.PIPE if is_redirected else far_end,
        stderr=far_end,
        # Without the terminal of whoever runs the tests: a hidden question would go there.
        start_new_session=True,
    )
    os.close(far_end)
    with process, os.fdopen(terminal, "rb+", buffering=0) as screen:
        shown, written = _talk(screen, process.stdout, answers)
        code = process.wait(PATIENCE_S)
    return Done(code, written, shown)


def on_terminal_in_process(
    *arguments: str,
    answers: Iterable[tuple[str, str]] = (),
    is_redirected: bool = False,
) -> Done:
    """As `on_terminal`, in this process: enough for what is shown and asked.

    Not for signals, nor for hidden questions, which go to the terminal of whoever runs the tests.
    """
    terminal, far_end = pty.openpty()
    with (
        os.fdopen(terminal, "rb+", buffering=0) as screen,
        tempfile.TemporaryFile("w+", encoding="utf-8") as file,
        ThreadPoolExecutor(1) as user,
    ):
        with ExitStack() as open_streams, pytest.MonkeyPatch.context() as patch:
            for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
                stream = os.fdopen(os.dup(far_end), mode, buffering=1, encoding="utf-8")
                open_streams.enter_context(stream)
                patch.setattr(sys, name, stream)
            os.close(far_end)
            if is_redirected:
                patch.setattr(sys, "stdout", file)
            talk = user.submit(_talk, screen, None, answers)
            code = _main(arguments, patch)
        shown, _ = talk.result()
        file.seek(0)
        return Done(code, file.read(), shown)


def _talk(
    screen: IO[bytes], pipe: IO[bytes] | None, answers: Iterable[tuple[str, str]]
) -> tuple[str, str]:
    """All that is shown on a terminal and written to a pipe, to the end of both."""
    shown, written = b"", b""
    waiting = list(answers)
    sources = [screen] if pipe is None else [screen, pipe]
    while sources and (ready := select.select(sources, [], [], PATIENCE_S)[0]):
        for source in ready:
            block = _block(source)
            if not block:
                sources.remove(source)
            elif source is screen:
                shown += block
            else:
                written += block
        if waiting and waiting[0][0].encode() in shown:
            screen.write(waiting.pop(0)[1].encode() + b"\n")
    return shown.decode().replace("\r\n", "\n"), written.decode()


def _block(source: IO[bytes]) -> bytes:
    try:
        return os.read(source.fileno(), 65536)
    except OSError:  # Linux says EIO when the far end of a terminal is closed
        return b""
