"""The logs of the doors that stay open: private, small, and without a word of anybody's notes."""

import logging
import os
import traceback
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

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
    target.setFormatter(_Discreet(_LINE))
    return target


class _PrivateFile(RotatingFileHandler):
    """Each new file is for its owner only, whatever the umask."""

    def _open(self) -> TextIOWrapper:
        def private(path: str, flags: int) -> int:
            return os.open(path, flags, 0o600)

        return open(self.baseFilename, "a", encoding="utf-8", opener=private)


class _Discreet(logging.Formatter):
    """Tells where something was raised and of what kind; its message may quote a note."""

    def formatException(self, ei: object) -> str:
        assert isinstance(ei, tuple)
        _, raised, _ = ei
        lines: list[str] = []
        seen: set[int] = set()
        while isinstance(raised, BaseException) and id(raised) not in seen:
            seen.add(id(raised))
            frames = "".join(traceback.format_tb(raised.__traceback__))
            code = f" [errno {raised.errno}]" if isinstance(raised, OSError) else ""
            lines.append(f"{frames}{type(raised).__name__}{code}")
            raised = raised.__cause__ or (
                None if raised.__suppress_context__ else raised.__context__
            )
        return "\nwhile handling:\n".join(lines)
