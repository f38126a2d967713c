"""A database, another device of its network, and a command line that knows the password."""

import base64
import contextlib
import hashlib
import os
import pty
import select
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.livesync.nodes import TestNode
from tests.transports.command_line import COMMAND, Done
from tests.waiting import PATIENCE_S

from obsidian_rag.livesync import Tweaks
from obsidian_rag.livesync.remote import Remote

PASSPHRASE = "nötig-geheim"


def options_of(remote: Remote, vault: Path) -> list[str]:
    """The options that name a database and a folder."""
    return [
        *("--url", remote.url, "--db", remote.database, "--user", remote.user or ""),
        *("--password-env", "COUCH_PASSWORD", "--vault", str(vault)),
    ]


def device_of(
    folder: Path, remote: Remote, tweaks: Tweaks | None = None, passphrase: str | None = None
) -> TestNode:
    """Another device, which has set the database up."""
    node = TestNode(folder, remote, tweaks=tweaks, passphrase=passphrase)
    node.sync()
    return node


def forms_of(secret: str) -> set[str]:
    """How a secret may look where it does not belong."""
    data = secret.encode()
    return {
        secret,
        repr(secret)[1:-1],
        ascii(secret)[1:-1],
        base64.b64encode(data).decode(),
        hashlib.sha256(data).hexdigest(),
    }


def answering(*arguments: str, answers: Iterable[tuple[str, str]]) -> Done:
    """Run a command on a terminal of its own, and answer what it asks; `err` is the screen."""
    terminal, far_end = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=far_end,
        stdout=far_end,
        stderr=far_end,
        # Without the terminal of whoever runs the tests: a hidden question would go there.
        start_new_session=True,
    )
    os.close(far_end)
    shown = b""
    waiting = list(answers)
    with process, os.fdopen(terminal, "rb+", buffering=0) as screen:
        while select.select([screen], [], [], PATIENCE_S)[0]:
            block = b""
            with contextlib.suppress(OSError):  # Linux says EIO when the far end is closed
                block = os.read(screen.fileno(), 65536)
            if not block:
                break
            shown += block
            if waiting and waiting[0][0].encode() in shown:
                screen.write(waiting.pop(0)[1].encode() + b"\n")
        code = process.wait(PATIENCE_S)
    return Done(code, "", shown.decode().replace("\r\n", "\n"))
