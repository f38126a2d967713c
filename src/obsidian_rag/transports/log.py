"""The logs of the doors that stay open: private, small, and without a word of anybody's notes."""

import logging
import os
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from obsidian_rag.process import DiscreetFormatter

_MOST_BYTES = 1_000_000
_KEPT = 3
_LINE = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


def private_log(file: Path) -> logging.Handler:
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
