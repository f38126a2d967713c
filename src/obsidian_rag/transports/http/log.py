"""The daemon's log: ours and uvicorn's."""

import contextlib
import logging
from collections.abc import Iterator

from obsidian_rag.config import Config
from obsidian_rag.transports.log import private_log

LOG_FILE = "daemon.log"
_LOGGERS = ("obsidian_rag", "uvicorn", "asyncio")


@contextlib.contextmanager
def daemon_log(config: Config) -> Iterator[None]:
    """Write what is logged to logs/daemon.log for a while."""
    target = private_log(config.logs / LOG_FILE)
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
