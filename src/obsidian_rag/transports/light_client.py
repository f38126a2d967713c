"""Finds the running daemon and sends it requests, using little of the standard library.

For commands that answer before anything else is imported: `http.client` alone would double their
start-up time, and pydantic and filelock cost even more.

The daemon holds a lock for as long as it lives, so a `daemon.json` left behind by a crash is
ignored, and a reused process id or port cannot mislead us.
"""

import json
import socket
import sys
from pathlib import Path
from typing import Any

from obsidian_rag.data_folder import DAEMON_FILE, DAEMON_LOCK

_CONNECT_S = 3.0
_ANSWER_S = 120.0


def daemon_facts(home: Path) -> dict[str, Any] | None:
    """What the daemon of this data folder wrote in `daemon.json`; None if no daemon runs."""
    try:
        found = json.loads((home / DAEMON_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and is_locked(home) else None


def post(port: int, token: str, path: str, body: bytes) -> tuple[int, bytes]:
    """Send JSON to a daemon as the owner of the notes; the status and the body of its answer.

    Raises:
        OSError: the daemon refuses the connection, or does not answer in time.
        ValueError: the answer is incomplete.
    """
    lines = (
        f"POST {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        f"Authorization: Bearer {token}",
        "X-Obsidian-Rag-Caller: owner",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.settimeout(_CONNECT_S)
        connection.connect(("127.0.0.1", port))
        connection.settimeout(_ANSWER_S)
        connection.sendall("\r\n".join((*lines, "", "")).encode("ascii") + body)
        return parse_answer(b"".join(iter(lambda: connection.recv(65536), b"")))


def parse_answer(received: bytes) -> tuple[int, bytes]:
    """The status and the body of a whole HTTP answer.

    Raises:
        ValueError: the answer is incomplete.
    """
    head, _, body = received.partition(b"\r\n\r\n")
    first, *fields = head.decode("latin-1").split("\r\n")
    headers = dict(field.lower().split(": ", 1) for field in fields)
    if len(body) != int(headers.get("content-length", "-1")):
        raise ValueError("the answer is cut off")
    return int(first.split(" ")[1]), body


if sys.platform == "win32":
    from filelock import FileLock, Timeout

    def is_locked(home: Path) -> bool:
        """Whether a daemon holds this data folder, ready or not."""
        try:
            with FileLock(home / DAEMON_LOCK).acquire(timeout=0):
                return False
        except Timeout:
            return True
        except OSError:
            return False
else:
    import fcntl

    def is_locked(home: Path) -> bool:
        """Whether a daemon holds this data folder, ready or not.

        Takes a shared lock, so that two concurrent checks do not take each other for a daemon.
        """
        try:
            with (home / DAEMON_LOCK).open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
        except BlockingIOError:
            return True
        except OSError:
            return False
