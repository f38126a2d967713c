"""Which daemon serves a data folder: a lock released when its holder dies, and its address."""

import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from obsidian_rag import __version__
from obsidian_rag.config import DAEMON_LOCK, Config, write_atomically
from obsidian_rag.errors import Busy
from obsidian_rag.store import hold_lock, now

# A check whether a daemon runs holds the lock for a moment.
_LOCK_TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True)
class Presence:
    """The content of `daemon.json`: how to reach the daemon, and whose settings it has.

    It follows the file `config`. `overrides` are digests of its flags and environment overrides,
    `started_with` are the settings that it cannot change while running.
    """

    port: int
    token: str
    pid: int
    url: str
    version: str
    config: str
    overrides: dict[str, str]
    started_with: dict[str, object]
    # Started for an agent; gives way to a daemon that the user starts.
    while_used: bool
    started_at: str


@contextlib.contextmanager
def claim(config: Config) -> Iterator[None]:
    """Hold the daemon lock of this data folder; a stale `daemon.json` is removed.

    Raises:
        Busy: another daemon holds it.
        ReadOnly: the data folder is not writable.
    """

    def busy() -> Busy:
        return Busy(
            f"A daemon already serves {config.home}.",
            "Use it, or stop it with `obsidian-rag serve --stop`.",
        )

    suggestion = "Commands that only read work without a daemon."
    with hold_lock(config.home / DAEMON_LOCK, _LOCK_TIMEOUT_S, busy, suggestion):
        try:
            config.daemon_file.unlink(missing_ok=True)
            yield
        finally:
            with contextlib.suppress(OSError):
                config.daemon_file.unlink(missing_ok=True)


def announce(config: Config, port: int, *, while_used: bool = False) -> Presence:
    """Publish the daemon's address, readable by its owner only, with a new token per start."""
    presence = Presence(
        port=port,
        token=secrets.token_urlsafe(32),
        pid=os.getpid(),
        url=f"http://127.0.0.1:{port}",
        version=__version__,
        config=str(config.file),
        overrides=config.override_digests,
        started_with=config.restart_values,
        while_used=while_used,
        started_at=now(),
    )
    # The temporary file is made with mode 0600, and the rename keeps it.
    write_atomically(config.daemon_file, json.dumps(asdict(presence), indent=2) + "\n")
    return presence
