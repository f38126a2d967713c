"""A child process and the parent's end of its pipe: one JSON object per line.

One thread calls `ensure` and `receive`; any thread may call `send`, `close` and `kill`. This module
knows one message only: `ready`, which a child sends when it can take work.
"""

import contextlib
import json
import logging
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_JOIN_TIMEOUT_S = 5.0
_MAX_LOG_BYTES = 1_000_000
_REAP_TIMEOUT_S = 5.0
_MAX_FAILED_STARTS = 2
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 30.0
_log = logging.getLogger(__name__)
Message = dict[str, object]


@dataclass(frozen=True, slots=True)
class _Running:
    """A thread, its stop event, and what wakes it to check the event."""

    thread: threading.Thread
    stop: threading.Event
    wake: Callable[[], None]


class Threads:
    """The threads of one owner; each can be ended on its own."""

    def __init__(self) -> None:
        self._running: dict[str, _Running] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._running

    def begin(
        self,
        name: str,
        run: Callable[[threading.Event], None],
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """Start a thread that runs until its event is set; `wake` makes it look at the event."""
        stop = threading.Event()
        thread = threading.Thread(target=run, args=(stop,), name=name, daemon=True)
        thread.start()
        self._running[name] = _Running(thread, stop, wake)

    def end(self, *names: str) -> None:
        """End these threads, in parallel; unknown names are ignored."""
        found = [self._running.pop(name, None) for name in names]
        ending = [one for one in found if one is not None]
        for one in ending:
            one.stop.set()
            one.wake()
        for one in ending:
            one.thread.join(_JOIN_TIMEOUT_S)


class ChildGone(Exception):
    """The child has ended; `exit_code` is None if it could not be started."""

    def __init__(self, exit_code: int | None = None) -> None:
        super().__init__(f"exit code {exit_code}")
        self.exit_code = exit_code


class ChildProcess:
    """One child at a time; a new one can be started when the last has gone."""

    def __init__(
        self,
        program: str,
        log_file: Callable[[], Path],
        is_news: Callable[[Message], bool] = lambda _: False,
    ) -> None:
        """`program` is Python code; `is_news` chooses the messages that go to `on_news` at once."""
        self.on_news: Callable[[Message], None] = lambda _: None
        self.on_gone: Callable[[], None] = lambda: None
        self._program = program
        self._log_file = log_file
        self._is_news = is_news
        self._lines: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._reader: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._ended: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        self._is_closed = False
        self._spawning = threading.Lock()
        self._sending = threading.Lock()
        self._failed_starts = 0
        self._not_before = 0.0

    @property
    def pid(self) -> int | None:
        """The process id of the child while it is running."""
        process = self._process
        if process is not None and process is self._ended:
            # While another thread is in `wait`, `poll` reports the process as running.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_REAP_TIMEOUT_S)
        return process.pid if process is not None and process.poll() is None else None

    def ensure(self, stop: threading.Event) -> None:
        """Make sure that a child is ready: start a new one if the last has ended.

        After two failed starts in a row each call tries once, with growing pauses in between.

        Raises:
            ChildGone: it cannot be started, or `stop` was set.
        """
        while self.pid is None:
            if stop.wait(max(0.0, self._not_before - time.monotonic())):
                raise ChildGone
            try:
                self._start()
                self._failed_starts = 0
            except ChildGone:
                pause = min(_FIRST_PAUSE_S * 2**self._failed_starts, _LONGEST_PAUSE_S)
                self._not_before = time.monotonic() + pause
                self._failed_starts += 1
                if self._failed_starts >= _MAX_FAILED_STARTS:
                    raise

    def greet(self) -> None:
        """Send a new child what it needs before it is ready; nothing by default.

        Raises:
            ChildGone: the child has ended.
        """

    def send(self, message: Mapping[str, object]) -> None:
        """Write one line.

        Raises:
            ChildGone: the child has ended.
        """
        process = self._process
        if process is None or process.stdin is None:
            raise ChildGone
        try:
            with self._sending:
                process.stdin.write(json.dumps(message).encode() + b"\n")
                process.stdin.flush()
        except (OSError, ValueError):  # a broken pipe, or one that we closed ourselves
            raise ChildGone(process.poll()) from None

    def receive(self) -> Message:
        """Wait for the next line.

        Raises:
            ChildGone: the child has ended and all lines are read.
        """
        line = self._lines.get() if self._reader is not None else None
        if line is None:
            self._lines.put(None)  # for the next call
            raise ChildGone(self.reap())
        return line

    def trim_log(self) -> None:
        """Empty the child's log if it is too large; a running child keeps appending to it."""
        file = self._log_file()
        with contextlib.suppress(OSError):
            if file.stat().st_size > _MAX_LOG_BYTES:
                os.truncate(file, 0)

    def close(self, patience_s: float) -> None:
        """End the child, waiting `patience_s` before killing it; no other can be started."""
        with self._spawning:
            self._is_closed = True
            process = self._process
        if process is None:
            return
        self._close_stdin(process)
        try:
            # One that is still loading has nothing to finish.
            process.wait(patience_s if self._is_ready else 0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """End the child now."""
        process = self._process
        if process is not None:
            process.kill()

    def reap(self) -> int | None:
        """Wait for a child that has ended or is about to; its exit code."""
        process = self._process
        if process is None:
            return None
        self._close_stdin(process)
        try:
            code = process.wait(_REAP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if self._reader is not None:
            self._reader.join(_REAP_TIMEOUT_S)
        return code

    def _start(self) -> None:
        self.reap()
        with self._spawning:
            if self._is_closed:
                raise ChildGone
            self._is_ready = False
            process = self._process = self._spawn()
        assert process.stdout is not None
        self._lines = queue.SimpleQueue()
        self._reader = threading.Thread(
            target=self._read,
            args=(process, process.stdout, self._lines),
            name="child",
            daemon=True,
        )
        self._reader.start()
        with contextlib.suppress(ChildGone):  # `receive` raises it with the exit code
            self.greet()
        while self.receive().get("type") != "ready":
            continue
        self._is_ready = True

    def _spawn(self) -> "subprocess.Popen[bytes]":
        self.trim_log()
        try:
            with _open_log(self._log_file()) as log:
                return subprocess.Popen(
                    [sys.executable, "-c", self._program],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    # The working folder may be a vault: its files must not be imported.
                    env={**os.environ, "PYTHONSAFEPATH": "1"},
                    # Ctrl-C goes to the parent, which then decides. With a session of its own the
                    # child would get as much CPU time as our session, whatever its nice value.
                    process_group=0,
                )
        except OSError as error:
            _log.warning("a process cannot be started: %s", error)
            raise ChildGone from error

    def _read(
        self,
        process: "subprocess.Popen[bytes]",
        pipe: IO[bytes],
        lines: "queue.SimpleQueue[Message | None]",
    ) -> None:
        with pipe:
            for line in pipe:
                message = _parse_message(line)
                if message is None:
                    _log.warning("the child sent an invalid message (%d bytes)", len(line))
                elif self._is_news(message):
                    self._pass_on(message)
                else:
                    lines.put(message)
        self._ended = process
        lines.put(None)
        # A process closes its pipes a moment before it ends: wait before a new one is started.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_REAP_TIMEOUT_S)
        self.on_gone()

    def _pass_on(self, message: Message) -> None:
        try:
            self.on_news(message)
        except Exception:  # noqa: BLE001  (the outer edge of a thread: it must keep reading)
            _log.exception("news of a child could not be passed on")

    def _close_stdin(self, process: "subprocess.Popen[bytes]") -> None:
        """Close the child's stdin, on which it stops its work and exits."""
        # A thread that is stuck in `send` holds the lock: then only `kill` helps.
        if process.stdin is not None and self._sending.acquire(timeout=1):
            try:
                with contextlib.suppress(OSError):
                    process.stdin.close()
            finally:
                self._sending.release()


def _parse_message(line: bytes) -> Message | None:
    with contextlib.suppress(ValueError):
        message = json.loads(line)
        return message if isinstance(message, dict) else None
    return None


@contextlib.contextmanager
def _open_log(file: Path) -> Iterator[int]:
    """Open a log that only its owner can read; without one the child still starts."""
    try:
        for folder in (file.parent.parent, file.parent):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        log = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        _log.warning("%s cannot be written: %s", file, error)
        yield subprocess.DEVNULL
        return
    try:
        yield log
    finally:
        os.close(log)
