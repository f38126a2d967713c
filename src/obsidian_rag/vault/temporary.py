"""Temporary files beside the files that we replace: their names, and removing abandoned ones.

Threat: a kill between writing and replacing leaves a hidden file in the user's vault for ever; and
a clean-up that uses a pattern deletes a file that was never ours. So a name contains time, process
and machine, and ends with a checksum over them: no other program creates such a name. A file is
removed when its writer is gone and the file has not been touched since. If the file of a running
writer were removed all the same, its replace would fail and nothing would be lost.
"""

import contextlib
import hashlib
import os
import platform
import re
import secrets
import stat
import time
from collections.abc import Iterable
from pathlib import Path

from obsidian_rag.errors import SecurityViolation
from obsidian_rag.vault.boundary import folder_of

_MAX_PLAIN_LETTERS = 40
_MARK = ".tmp-"
_NAME = re.compile(
    r"\.(?P<plain>.{0,40})\.tmp-(?P<at>[0-9a-f]{8,10})-(?P<pid>[0-9a-f]{1,8})-(?P<host>[0-9a-f]{6})"
    r"-(?P<process>[0-9a-f]{6})-(?P<chance>[0-9a-f]{8})-(?P<check>[0-9a-f]{12})",
    re.DOTALL,
)
# What `config.write_atomically` leaves.
_DATA_FOLDER_NAME = re.compile(r"\.[\w.-]+\.[a-z0-9_]{8}\.tmp")
_HOST = hashlib.sha256(platform.node().encode("utf-8", "replace")).hexdigest()[:6]
# Distinguishes this process from a later one with the same pid.
_PROCESS = secrets.token_hex(3)
_MIN_AGE_S = 60
# If the writer cannot be checked: it is on another machine, or its pid is in use again.
_ABANDONED_AFTER_S = 86_400
# Linking, setting the time and copying attributes follow the write immediately.
_MAX_CTIME_DRIFT_S = 3_600


def temporary_name(plain: str) -> str:
    """A hidden name for the replacement of the file `plain`, in the same folder."""
    start = f".{plain[:_MAX_PLAIN_LETTERS]}{_MARK}"
    stamp = f"{_now_s():08x}-{os.getpid():x}-{_HOST}-{_PROCESS}-{secrets.token_hex(4)}"
    return f"{start}{stamp}-{_checksum(plain[:_MAX_PLAIN_LETTERS], stamp)}"


def is_temporary(name: str) -> bool:
    """Whether this is the name of one of our temporary files; fast for other names."""
    return _MARK in name and _parse_name(name) is not None


def sweep(root: Path, rel_paths: Iterable[str]) -> list[str]:
    """Remove the abandoned ones of these temporary files; returns those removed."""
    removed = []
    for rel in rel_paths:
        with contextlib.suppress(OSError, SecurityViolation), folder_of(root, rel) as (at, name):
            status = os.stat(name, dir_fd=at, follow_symlinks=False)
            # The name after following links: `rel` may be a link to another file.
            if _is_abandoned(os.path.basename(name), status):  # noqa: PTH119
                os.unlink(name, dir_fd=at)
                removed.append(rel)
    return removed


def sweep_folder(folder: Path) -> list[str]:
    """Like `sweep`, for one of our own folders, which may be missing."""
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []
    return sweep(folder, filter(is_temporary, names))


def sweep_data_folder(folder: Path) -> list[str]:
    """Remove what killed writers left in the data folder, after a day."""
    removed = sweep_folder(folder)
    with contextlib.suppress(OSError):
        for name in filter(_DATA_FOLDER_NAME.fullmatch, os.listdir(folder)):  # noqa: PTH208
            place = folder / name
            status = place.lstat()
            if stat.S_ISREG(status.st_mode) and _now_s() - status.st_mtime > _ABANDONED_AFTER_S:
                place.unlink()
                removed.append(name)
    return removed


def _is_abandoned(name: str, status: os.stat_result) -> bool:
    found = _parse_name(name)
    if found is None or not stat.S_ISREG(status.st_mode):
        return False
    made_at = int(found["at"], 16)
    age_s = _now_s() - made_at
    if age_s < _MIN_AGE_S or abs(status.st_ctime - made_at) > _MAX_CTIME_DRIFT_S:
        return False
    pid = int(found["pid"], 16)
    if found["host"] == _HOST and pid == os.getpid():
        return found["process"] != _PROCESS
    is_dead = found["host"] == _HOST and _is_dead(pid)
    return is_dead or age_s > _ABANDONED_AFTER_S


def _is_dead(pid: int) -> bool:
    if os.name == "nt":
        return False  # there, `os.kill` would end the process
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    return False


def _parse_name(name: str) -> re.Match[str] | None:
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    stamp = name[found.start("at") : found.start("check") - 1]
    return found if found["check"] == _checksum(found["plain"], stamp) else None


def _checksum(plain: str, stamp: str) -> str:
    content = f"obsidian-rag temporary file\n{plain}\n{stamp}"
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _now_s() -> int:
    return int(time.time())
