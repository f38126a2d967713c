"""Drivers of the command line: in this process, in another one, and on a terminal."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
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
    monkeypatch.setattr(sys, "argv", ["obsidian-rag", *arguments])
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    capsys.readouterr()
    try:
        code = main()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    out, err = capsys.readouterr()
    return Done(code, out, err)


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
    """On a terminal, answering each awaited text with a line.

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
    shown, written = b"", b""
    waiting = list(answers)
    with process, os.fdopen(terminal, "rb+", buffering=0) as screen:
        sources: list[IO[bytes]] = [screen]
        if process.stdout is not None:
            sources.append(process.stdout)
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
        code = process.wait(PATIENCE_S)
    return Done(code, written.decode(), shown.decode().replace("\r\n", "\n"))


def _block(source: IO[bytes]) -> bytes:
    try:
        return os.read(source.fileno(), 65536)
    except OSError:  # Linux says EIO when the far end of a terminal is closed
        return b""
