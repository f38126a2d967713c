"""A process that we start and speak with, a JSON object per line: the parent's end of its pipe.

One thread ensures and receives; any thread may send, close and kill. What the messages mean is
known to both ends, not to this module, but for `ready`, the first one of a child.
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
from pathlib import Path
from typing import IO

_MOST_LOG_BYTES = 1_000_000
_REAP_S = 5.0
_MOST_STARTS = 2
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 30.0
_log = logging.getLogger(__name__)
Message = dict[str, object]


class ChildGone(Exception):
    """The child has ended; there is no exit code if it could not even be started."""

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
        """`program` is Python code; messages that are news are handed over as they are read."""
        self.on_news: Callable[[Message], None] = lambda _: None
        self.on_gone: Callable[[], None] = lambda: None
        self._program = program
        self._log_file = log_file
        self._is_news = is_news
        self._lines: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._reader: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._over: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        self._is_closed = False
        self._spawning = threading.Lock()
        self._sending = threading.Lock()
        self._failed_starts = 0
        self._not_before = 0.0

    @property
    def pid(self) -> int | None:
        """The process id of the child, if there is one that lives."""
        process = self._process
        if process is not None and process is self._over:
            # While another thread waits for its end, `poll` would say that it lives.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_REAP_S)
        return process.pid if process is not None and process.poll() is None else None

    def ensure(self, stop: threading.Event) -> None:
        """Have a child that is ready: the present one, or a new one if that has ended.

        After two failed starts in a row each call tries once, with a growing pause between them.

        Raises:
            ChildGone: none can be started, or `stop` was set.
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
                if self._failed_starts >= _MOST_STARTS:
                    raise

    def greet(self) -> None:
        """What a new child is told before it is ready; nothing here.

        Raises:
            ChildGone: nobody is there to hear it.
        """

    def send(self, message: Mapping[str, object]) -> None:
        """Write one line.

        Raises:
            ChildGone: nobody is there to read it.
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
            ChildGone: there will be none.
        """
        line = self._lines.get() if self._reader is not None else None
        if line is None:
            self._lines.put(None)  # whoever asks again is told the same
            raise ChildGone(self.reap())
        return line

    def trim_log(self) -> None:
        """Empty the child's log when it has grown too large; the child appends all the same."""
        file = self._log_file()
        with contextlib.suppress(OSError):
            if file.stat().st_size > _MOST_LOG_BYTES:
                os.truncate(file, 0)

    def close(self, patience_s: float) -> None:
        """End the child, tidily if it is quick enough, and start no other."""
        with self._spawning:
            self._is_closed = True
            process = self._process
        if process is None:
            return
        self._hang_up(process)
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
        """Let go of a child that has ended or is just about to; its exit code."""
        process = self._process
        if process is None:
            return None
        self._hang_up(process)
        try:
            code = process.wait(_REAP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if self._reader is not None:
            self._reader.join(_REAP_S)
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
        with contextlib.suppress(ChildGone):  # `receive` knows the exit code
            self.greet()
        while self.receive().get("type") != "ready":
            continue
        self._is_ready = True

    def _spawn(self) -> "subprocess.Popen[bytes]":
        self.trim_log()
        try:
            with _appended(self._log_file()) as log:
                return subprocess.Popen(
                    [sys.executable, "-c", self._program],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    # The working folder may be a vault: its files must not pass for modules.
                    env={**os.environ, "PYTHONSAFEPATH": "1"},
                    # An interrupt at the terminal is for the parent, which then decides. A session
                    # of its own would get as much time as ours, however nice it is.
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
        """Take in the lines of one child as they come."""
        with pipe:
            for line in pipe:
                message = _message(line)
                if message is None:
                    _log.warning("the child said what is no message (%d bytes)", len(line))
                elif self._is_news(message):
                    self._hear(message)
                else:
                    lines.put(message)
        self._over = process
        lines.put(None)
        # A process closes its pipes a moment before it has ended: who starts another must see that.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_REAP_S)
        self.on_gone()

    def _hear(self, message: Message) -> None:
        try:
            self.on_news(message)
        except Exception:  # noqa: BLE001  (the outer edge of a thread: it must go on reading)
            _log.exception("news of a child could not be passed on")

    def _hang_up(self, process: "subprocess.Popen[bytes]") -> None:
        """Say that nothing more comes; a child ends its work for that, and itself."""
        # Whoever is stuck in sending holds the lock: then only `kill` is left.
        if process.stdin is not None and self._sending.acquire(timeout=1):
            try:
                with contextlib.suppress(OSError):
                    process.stdin.close()
            finally:
                self._sending.release()


def _message(line: bytes) -> Message | None:
    with contextlib.suppress(ValueError):
        message = json.loads(line)
        return message if isinstance(message, dict) else None
    return None


@contextlib.contextmanager
def _appended(file: Path) -> Iterator[int]:
    """A log that only its owner can read; rather none than no child."""
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
