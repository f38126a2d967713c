"""The daemon's process: claims the data folder, listens, answers, and leaves in good order."""

import contextlib
import errno
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import uvicorn

from obsidian_rag.config import Config, load, write_atomically
from obsidian_rag.engine import Daemon, announce, claim
from obsidian_rag.errors import Busy, ConfigInvalid
from obsidian_rag.transports.http.app import Door
from obsidian_rag.transports.http.lifetime import Reason, idle_reason, parent_reason
from obsidian_rag.transports.http.mcp_path import MakeMcp
from obsidian_rag.transports.http.protocol import ConnectionLimits, PatientProtocol
from obsidian_rag.transports.http.web.first_run import FirstRunDoor
from obsidian_rag.transports.log import daemon_log

_HOST = "127.0.0.1"
_LAST_PORT = "last-port"
_MOST_CONNECTIONS = 512
_BACKLOG = 512
# How long requests under way may take once the daemon is told to stop.
_LAST_REQUESTS_S = 5
_TICKS_PER_S = 10
_SIGNALS = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, n)]
_ANY_PORT = "Stop that program, or take any free port: `obsidian-rag config set server.port 0`."
_log = logging.getLogger(__name__)


def serve(
    config: Config,
    idle_exit_s: float | None = None,
    parent_pid: int | None = None,
    make_mcp: MakeMcp | None = None,
) -> int:
    """Be the daemon of this data folder until told to stop; returns the exit code.

    Without `idle_exit_s` the settings say when it ends, also when they change. While no vault is
    configured, it serves the page, on which one can be chosen.

    Raises:
        Busy: there is a daemon already, or the port is taken.
        ConfigInvalid: the port may not be used.
    """
    over = threading.Event()
    with (
        _told_by_signal(over),
        claim(config),
        daemon_log(config.logs),
        _listening(config) as listener,
    ):
        own = [] if parent_pid is None else [parent_reason(parent_pid)]
        is_wanted = False
        while not config.has_vault:
            is_wanted = _await_vault(config, listener, over, own)
            if over.is_set():
                return 0
            config = load()
        vaults = ", ".join(str(root) for root in config.vault_roots)
        daemon = Daemon(config)
        try:
            daemon.start()
            if is_wanted:
                daemon.live.jobs.request("full")
            presence = announce(config, listener.getsockname()[1])
            door = Door(daemon.engine, presence.port, presence.token, over.set, make_mcp)

            def is_working() -> bool:
                return daemon.live.jobs.active is not None

            def idle() -> str | None:
                settings = daemon.engine.config.settings.server
                most_s = settings.idle_exit_s if idle_exit_s is None else idle_exit_s
                return idle_reason(door.activity, is_working, most_s)() if most_s else None

            server = DoorServer(door, _limits(config), over, [idle, *own])
            server.on_leaving = partial(_withdraw, config)
            told = f"obsidian-rag serves {vaults} at {presence.url} (process {presence.pid})"
            sys.stderr.write(told + "\n")
            sys.stderr.flush()
            server.run(sockets=[listener])
        finally:
            daemon.stop()
    return 0


def _await_vault(
    config: Config, listener: socket.socket, over: threading.Event, reasons: list[Reason]
) -> bool:
    """Serve the page alone until a vault is chosen there or by `init`, or until told to stop.

    Returns whether it was chosen on the page: that asks for the first index too.
    """
    chosen, on_page = threading.Event(), threading.Event()

    def has_vault() -> str | None:
        with contextlib.suppress(ConfigInvalid):
            if load().has_vault:
                chosen.set()
        return None

    def stop() -> None:
        over.set()
        chosen.set()

    def choose() -> None:
        on_page.set()
        chosen.set()

    presence = announce(config, listener.getsockname()[1])
    door = FirstRunDoor(config, presence.port, presence.token, stop, choose)
    server = DoorServer(door, _limits(config), over, [*reasons, has_vault], until=chosen)
    sys.stderr.write(f"No vault is configured yet; choose one at {presence.url}\n")
    sys.stderr.flush()
    server.run(sockets=[listener.dup()])
    return on_page.is_set()


def _limits(config: Config) -> ConnectionLimits:
    return ConnectionLimits(_MOST_CONNECTIONS, config.settings.server.read_timeout_s)


class DoorServer(uvicorn.Server):
    """uvicorn around a door, until it is `over` or there is another reason to end."""

    def __init__(
        self,
        door: Door | FirstRunDoor,
        limits: ConnectionLimits,
        over: threading.Event,
        reasons: Sequence[Reason] = (),
        until: threading.Event | None = None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                door,
                loop="asyncio",
                http=partial(PatientProtocol, limits=limits),  # type: ignore[arg-type]
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=_BACKLOG,
                timeout_graceful_shutdown=_LAST_REQUESTS_S,
            )
        )
        self.on_leaving: Callable[[], None] = lambda: None
        self._door = door
        self._over = over
        self._until = until or over
        self._reasons = reasons

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them alone: uvicorn would end the process by the signal instead of with 0."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: is it time to go?"""
        if counter % _TICKS_PER_S == 0:
            for reason in filter(None, (reason() for reason in self._reasons)):
                _log.info("stops: %s", reason)
                self._over.set()
        if self._over.is_set() or self._until.is_set():
            self.should_exit = True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say that we are gone, then let everybody finish."""
        self.on_leaving()
        self._door.streams.close()
        await super().shutdown(sockets)
        self._door.close()


def _withdraw(config: Config) -> None:
    with contextlib.suppress(OSError):
        config.daemon_file.unlink(missing_ok=True)


@contextlib.contextmanager
def _told_by_signal(over: threading.Event) -> Iterator[None]:
    """Take the signals that end a process as a wish; a second Ctrl-C ends it at once."""

    def take(number: int, _: object) -> None:
        if over.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        over.set()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, take) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)


@contextlib.contextmanager
def _listening(config: Config) -> Iterator[socket.socket]:
    """A socket of this machine only; early connections wait until we answer."""
    port = config.settings.server.port
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        if os.name == "posix":  # elsewhere it would let another process take the same port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            _bind(listener, port, config.home / _LAST_PORT)
            listener.listen(_BACKLOG)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise Busy(
                    f"Port {port} of {_HOST} is taken by another program.", _ANY_PORT
                ) from None
            raise ConfigInvalid(
                f"Port {port} of {_HOST} cannot be used ({error.strerror}).", _ANY_PORT
            ) from None
        yield listener


def _bind(listener: socket.socket, port: int, last: Path) -> None:
    """Take the port, or any free one: the last one again if it is free, for open pages."""
    if port:
        listener.bind((_HOST, port))
        return
    try:
        listener.bind((_HOST, int(last.read_text(encoding="ascii"))))
    except (OSError, ValueError, OverflowError):
        listener.bind((_HOST, 0))
        with contextlib.suppress(OSError):
            write_atomically(last, f"{listener.getsockname()[1]}\n")
