"""The parent's end of the worker process: start it, speak NDJSON with it, end it.

One thread ensures and receives; any thread may send, close and kill. What the lines mean is known
to both ends, not to this module, but for those that are no part of a run: they come at any time
and are handed to `on_meaning` in the thread that reads.
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

from obsidian_rag.config import Config

_PROGRAM = "from obsidian_rag.engine.worker import serve; serve()"
_LOG_FILE = "worker.log"
_MOST_LOG_BYTES = 1_000_000
_REAP_S = 5.0
_MOST_STARTS = 2
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 30.0
_log = logging.getLogger(__name__)


class WorkerGone(Exception):
    """The worker has ended; there is no exit code if it could not even be started."""

    def __init__(self, exit_code: int | None = None) -> None:
        super().__init__(f"exit code {exit_code}")
        self.exit_code = exit_code


class WorkerLink:
    """One worker at a time; a new one can be started when the last has gone."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.on_meaning: Callable[[dict[str, object]], None] = lambda _: None
        self.on_gone: Callable[[], None] = lambda: None
        self._lines: queue.SimpleQueue[dict[str, object] | None] = queue.SimpleQueue()
        self._reader: threading.Thread | None = None
        self._sent: Config | None = None
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
        """The process id of the worker, if there is one that lives."""
        process = self._process
        if process is not None and process is self._over:
            # While another thread waits for its end, `poll` would say that it lives.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_REAP_S)
        return process.pid if process is not None and process.poll() is None else None

    def ensure(self, stop: threading.Event) -> None:
        """Have a worker that is ready: the present one, or a new one if that has ended.

        After two failed starts in a row each call tries once, with a growing pause between them.

        Raises:
            WorkerGone: none can be started, or `stop` was set.
        """
        while self.pid is None:
            if stop.wait(max(0.0, self._not_before - time.monotonic())):
                raise WorkerGone
            try:
                self._start()
                self._failed_starts = 0
            except WorkerGone:
                pause = min(_FIRST_PAUSE_S * 2**self._failed_starts, _LONGEST_PAUSE_S)
                self._not_before = time.monotonic() + pause
                self._failed_starts += 1
                if self._failed_starts >= _MOST_STARTS:
                    raise

    def send(self, message: Mapping[str, object]) -> None:
        """Write one line.

        Raises:
            WorkerGone: nobody is there to read it.
        """
        process = self._process
        if process is None or process.stdin is None:
            raise WorkerGone
        try:
            with self._sending:
                process.stdin.write(json.dumps(message).encode() + b"\n")
                process.stdin.flush()
        except (OSError, ValueError):  # a broken pipe, or one that we closed ourselves
            raise WorkerGone(process.poll()) from None

    @property
    def is_configured(self) -> bool:
        """Whether the worker has the settings of now."""
        return self.config is self._sent

    def configure(self) -> None:
        """Tell the worker the settings of now, unless it has them; not while it runs.

        Raises:
            WorkerGone: nobody is there to hear it.
        """
        config = self.config
        if config is not self._sent:
            told = {"home": str(config.home), "file": str(config.file)}
            settings = config.settings.model_dump(mode="json", by_alias=True)
            self.send({"type": "configure", **told, "settings": settings})
            self._sent = config

    def receive(self) -> dict[str, object]:
        """Wait for the next line.

        Raises:
            WorkerGone: there will be none.
        """
        line = self._lines.get() if self._reader is not None else None
        if line is None:
            self._lines.put(None)  # whoever asks again is told the same
            raise WorkerGone(self.reap())
        return line

    def _read(
        self,
        process: "subprocess.Popen[bytes]",
        pipe: IO[bytes],
        lines: "queue.SimpleQueue[dict[str, object] | None]",
    ) -> None:
        """Take in the lines of one worker as they come."""
        with pipe:
            for line in pipe:
                message = _message(line)
                if message is None:
                    _log.warning(
                        "the worker said something that is no message (%d bytes)", len(line)
                    )
                elif message.get("type") == "meaning":
                    self._hear(message)
                else:
                    lines.put(message)
        self._over = process
        lines.put(None)
        # A process closes its pipes a moment before it has ended: who starts another must see that.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_REAP_S)
        self.on_gone()

    def _hear(self, message: dict[str, object]) -> None:
        try:
            self.on_meaning(message)
        except Exception:  # noqa: BLE001  (the outer edge of a thread: runs are told of all the same)
            _log.exception("news of meaning vectors could not be passed on")

    def trim_log(self) -> None:
        """Empty the worker's log when it has grown too large; the worker appends all the same."""
        file = self.config.logs / _LOG_FILE
        with contextlib.suppress(OSError):
            if file.stat().st_size > _MOST_LOG_BYTES:
                os.truncate(file, 0)

    def close(self, patience_s: float) -> None:
        """End the worker, tidily if it is quick enough, and start no other."""
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
        """End the worker now; what it was doing is taken up by the next run."""
        process = self._process
        if process is not None:
            process.kill()

    def reap(self) -> int | None:
        """Let go of a worker that has ended or is just about to; its exit code."""
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
                raise WorkerGone
            self._is_ready = False
            process = self._process = self._spawn()
            self._sent = None
        assert process.stdout is not None
        self._lines = queue.SimpleQueue()
        self._reader = threading.Thread(
            target=self._read,
            args=(process, process.stdout, self._lines),
            name="worker",
            daemon=True,
        )
        self._reader.start()
        with contextlib.suppress(WorkerGone):  # `receive` knows the exit code
            self.configure()
        while self.receive().get("type") != "ready":
            continue
        self._is_ready = True

    def _hang_up(self, process: "subprocess.Popen[bytes]") -> None:
        """Say that nothing more comes; a worker ends its run for that, and itself."""
        # Whoever is stuck in sending holds the lock: then only `kill` is left.
        if process.stdin is not None and self._sending.acquire(timeout=1):
            try:
                with contextlib.suppress(OSError):
                    process.stdin.close()
            finally:
                self._sending.release()

    def _spawn(self) -> "subprocess.Popen[bytes]":
        self.trim_log()
        try:
            with _appended(self.config.home, self.config.logs / _LOG_FILE) as log:
                return subprocess.Popen(
                    [sys.executable, "-c", _PROGRAM],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    # The working folder may be a vault: its files must not pass for modules.
                    env={**os.environ, "PYTHONSAFEPATH": "1"},
                    # An interrupt at the terminal is for the parent, which then decides.
                    start_new_session=True,
                )
        except OSError as error:
            _log.warning("the worker cannot be started: %s", error)
            raise WorkerGone from error


def _message(line: bytes) -> dict[str, object] | None:
    with contextlib.suppress(ValueError):
        message = json.loads(line)
        return message if isinstance(message, dict) else None
    return None


@contextlib.contextmanager
def _appended(home: Path, file: Path) -> Iterator[int]:
    """A log that only its owner can read; rather none than no worker."""
    try:
        for folder in (home, file.parent):
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
