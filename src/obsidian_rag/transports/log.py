"""Log files of long-running doors: private, small, and without text of notes."""

import contextlib
import logging
import os
from collections.abc import Iterator
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from obsidian_rag.process import DiscreetFormatter

_MAX_BYTES = 1_000_000
_BACKUPS = 3
_LOGGERS = ("obsidian_rag", "uvicorn", "asyncio")
_LINE = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


@contextlib.contextmanager
def daemon_log(folder: Path) -> Iterator[None]:
    """Context manager that logs our messages and uvicorn's to daemon.log in this folder."""
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
    """Send every log record to `file`, or nowhere if it cannot be written; never to stderr."""
    handler: logging.Handler = logging.NullHandler()
    with contextlib.suppress(OSError):
        handler = _private_log(file)
    # `force` removes handlers of others, which would write to stderr.
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("obsidian_rag").setLevel(logging.INFO)


def _private_log(file: Path) -> logging.Handler:
    """A handler for a file that only its owner can read, and that is rotated."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    target = _PrivateFile(file, maxBytes=_MAX_BYTES, backupCount=_BACKUPS)
    target.setFormatter(DiscreetFormatter(_LINE))
    return target


class _PrivateFile(RotatingFileHandler):
    """Creates each file readable only by its owner, whatever the umask."""

    def _open(self) -> TextIOWrapper:
        def private(path: str, flags: int) -> int:
            return os.open(path, flags, 0o600)

        return open(self.baseFilename, "a", encoding="utf-8", opener=private)
