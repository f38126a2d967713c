"""Temporary files beside the files that we replace: their names, and sweeping those left behind.

Threat: a kill between writing and replacing leaves a hidden file in the user's vault for ever; and
a sweeper that goes by a pattern deletes a file that was never ours. So a name tells when, by which
process of which machine it was made, and ends with a checksum over all of that: no other program
makes such a name. It is swept when its writer is gone and nobody has touched the file since. Were
a living writer's file swept after all, its replacing would fail, and nothing be lost.
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

_PLAIN_LETTERS = 40
_MARK = ".tmp-"
_NAME = re.compile(
    r"\.(?P<plain>.{0,40})\.tmp-(?P<at>[0-9a-f]{8,10})-(?P<pid>[0-9a-f]{1,8})-(?P<host>[0-9a-f]{6})"
    r"-(?P<process>[0-9a-f]{6})-(?P<chance>[0-9a-f]{8})-(?P<check>[0-9a-f]{12})",
    re.DOTALL,
)
# What `config.write_atomically` leaves.
_OWN_FOLDER = re.compile(r"\.[\w.-]+\.[a-z0-9_]{8}\.tmp")
_HOST = hashlib.sha256(platform.node().encode("utf-8", "replace")).hexdigest()[:6]
# A process that was given our number later is another one.
_PROCESS = secrets.token_hex(3)
_AT_LEAST_S = 60
# Where the writer cannot be asked after: another machine's, or one whose number is in use again.
_SURELY_S = 86_400
# Linking, dating and copying attributes follow the writing at once.
_UNTOUCHED_S = 3_600


def temporary_name(plain: str) -> str:
    """A hidden name for what will replace the file `plain`, in the same folder."""
    start = f".{plain[:_PLAIN_LETTERS]}{_MARK}"
    stamp = f"{_now_s():08x}-{os.getpid():x}-{_HOST}-{_PROCESS}-{secrets.token_hex(4)}"
    return f"{start}{stamp}-{_check(plain[:_PLAIN_LETTERS], stamp)}"


def is_temporary(name: str) -> bool:
    """Whether we gave this name to a temporary file; a quick no for nearly all."""
    return _MARK in name and _stamp(name) is not None


def sweep(root: Path, rel_paths: Iterable[str]) -> list[str]:
    """Remove those of these temporary files that nobody will come back for; what was removed."""
    removed = []
    for rel in rel_paths:
        with contextlib.suppress(OSError, SecurityViolation), folder_of(root, rel) as (at, name):
            status = os.stat(name, dir_fd=at, follow_symlinks=False)
            # The name that was reached, not the one asked for: a link leads to another file.
            if _is_abandoned(os.path.basename(name), status):  # noqa: PTH119
                os.unlink(name, dir_fd=at)
                removed.append(rel)
    return removed


def sweep_folder(folder: Path) -> list[str]:
    """Do so in one folder of our own; a folder that is not there has none."""
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []
    return sweep(folder, filter(is_temporary, names))


def sweep_data_folder(folder: Path) -> list[str]:
    """Remove what killed writers left in the folder where all files are ours, after a day."""
    removed = sweep_folder(folder)
    with contextlib.suppress(OSError):
        for name in filter(_OWN_FOLDER.fullmatch, os.listdir(folder)):  # noqa: PTH208
            place = folder / name
            status = place.lstat()
            if stat.S_ISREG(status.st_mode) and _now_s() - status.st_mtime > _SURELY_S:
                place.unlink()
                removed.append(name)
    return removed


def _is_abandoned(name: str, status: os.stat_result) -> bool:
    found = _stamp(name)
    if found is None or not stat.S_ISREG(status.st_mode):
        return False
    made_at = int(found["at"], 16)
    age_s = _now_s() - made_at
    if age_s < _AT_LEAST_S or abs(status.st_ctime - made_at) > _UNTOUCHED_S:
        return False
    pid = int(found["pid"], 16)
    if found["host"] == _HOST and pid == os.getpid():
        return found["process"] != _PROCESS
    is_dead = found["host"] == _HOST and _is_dead(pid)
    return is_dead or age_s > _SURELY_S


def _is_dead(pid: int) -> bool:
    if os.name == "nt":
        return False  # there, asking in this way would end the process
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    return False


def _stamp(name: str) -> re.Match[str] | None:
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    stamp = name[found.start("at") : found.start("check") - 1]
    return found if found["check"] == _check(found["plain"], stamp) else None


def _check(plain: str, stamp: str) -> str:
    told = f"obsidian-rag temporary file\n{plain}\n{stamp}"
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _now_s() -> int:
    return int(time.time())
