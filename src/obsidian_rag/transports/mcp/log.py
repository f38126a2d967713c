"""Where this door talks: stdout belongs to the protocol and stderr to whoever started us."""

import contextlib
import logging
from pathlib import Path

from obsidian_rag.transports.log import private_log


def keep_log(file: Path) -> None:
    """Send every log record to `file`; without a disk, nowhere."""
    handler: logging.Handler = logging.NullHandler()
    with contextlib.suppress(OSError):
        handler = private_log(file)
    # `force`: a handler that somebody else put there would write to stderr.
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("obsidian_rag").setLevel(logging.INFO)
