"""The logs of the doors that stay open: private, small, and without a word of anybody's notes."""

import contextlib
import logging
import os
from collections.abc import Iterator
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from obsidian_rag.process import DiscreetFormatter

_MOST_BYTES = 1_000_000
_KEPT = 3
_LOGGERS = ("obsidian_rag", "uvicorn", "asyncio")
_LINE = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


@contextlib.contextmanager
def daemon_log(folder: Path) -> Iterator[None]:
    """Write what we and uvicorn log to daemon.log in this folder, for a while."""
    target = _private_log(folder / "daemon.log")
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(target)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(target)
            logger.setLevel(level)
        target.close()


def log_to(file: Path) -> None:
    """Send every log record to `file`, and nothing to stderr; without a disk, nowhere."""
    handler: logging.Handler = logging.NullHandler()
    with contextlib.suppress(OSError):
        handler = _private_log(file)
    # `force`: a handler that somebody else put there would write to stderr.
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("obsidian_rag").setLevel(logging.INFO)


def _private_log(file: Path) -> logging.Handler:
    """Writes to `file`, which only its owner can read and which does not grow for ever.

    Raises:
        OSError: it cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    target = _PrivateFile(file, maxBytes=_MOST_BYTES, backupCount=_KEPT)
    target.setFormatter(DiscreetFormatter(_LINE))
    return target


class _PrivateFile(RotatingFileHandler):
    """Each new file is for its owner only, whatever the umask."""

    def _open(self) -> TextIOWrapper:
        def private(path: str, flags: int) -> int:
            return os.open(path, flags, 0o600)

        return open(self.baseFilename, "a", encoding="utf-8", opener=private)
