"""The daemon's process: claims the data folder, listens, answers, and shuts down cleanly."""

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

import psutil
import uvicorn

from obsidian_rag.config import Config, load, write_atomically
from obsidian_rag.engine import Daemon, announce, claim
from obsidian_rag.errors import Busy, ConfigInvalid
from obsidian_rag.transports.http.app import AnswerCommand, Door, MakeMcp
from obsidian_rag.transports.http.protocol import ConnectionLimits, PatientProtocol
from obsidian_rag.transports.http.threads import Activity, is_alive
from obsidian_rag.transports.http.web.first_run import FirstRunDoor
from obsidian_rag.transports.log import daemon_log
from obsidian_rag.transports.servers import ServeOptions

# Returns a reason to exit, or None to stay; checked once a second.
Reason = Callable[[], str | None]


def idle_reason(activity: Activity, is_used: Callable[[], bool], most_s: float) -> Reason:
    """Exit after `most_s` seconds without a request or other use."""

    def reason() -> str | None:
        if is_used():
            activity.note_use()
            return None
        return f"no request for {most_s:g} s" if activity.idle_s > most_s else None

    return reason


def parent_reason(pid: int) -> Reason:
    """Exit when this process has ended, even if its id is reused."""
    process: psutil.Process | None = None
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)

    def reason() -> str | None:
        return None if process is not None and is_alive(process) else f"process {pid} is gone"

    return reason


_HOST = "127.0.0.1"
_LAST_PORT = "last-port"
_MAX_CONNECTIONS = 512
_BACKLOG = 512
# How long open requests may take after a stop is requested.
_SHUTDOWN_TIMEOUT_S = 5
_TICKS_PER_S = 10
# How long a daemon started for an agent stays after its last client.
_UNUSED_EXIT_S = 600.0
_SIGNALS = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, n)]
_ANY_PORT = "Stop that program, or take any free port: `obsidian-rag config set server.port 0`."
_log = logging.getLogger(__name__)


def serve(
    config: Config,
    options: ServeOptions,
    make_mcp: MakeMcp | None = None,
    answer_command: AnswerCommand | None = None,
) -> int:
    """Run the daemon of this data folder until it is stopped; returns the exit code.

    While no vault is configured, it serves only the page, where one can be chosen.

    Raises:
        Busy: there is a daemon already, or the port is taken.
        ConfigInvalid: the port may not be used.
    """
    over = threading.Event()
    with (
        _set_on_signal(over),
        claim(config),
        daemon_log(config.logs),
        _listening(config) as listener,
    ):
        own = [] if options.parent_pid is None else [parent_reason(options.parent_pid)]
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
            port = listener.getsockname()[1]
            presence = announce(config, port, while_used=options.while_used)
            door = Door(
                daemon.engine, presence.port, presence.token, over.set, make_mcp, answer_command
            )

            idle = partial(_idle_reason, daemon, door, options)
            server = DoorServer(door, _limits(config), over, [idle, *own])
            server.on_leaving = partial(_withdraw, config)
            line = f"obsidian-rag serves {vaults} at {presence.url} (process {presence.pid})"
            sys.stderr.write(line + "\n")
            sys.stderr.flush()
            server.run(sockets=[listener])
        finally:
            daemon.stop()
    return 0


def _idle_reason(daemon: Daemon, door: Door, options: ServeOptions) -> str | None:
    """Why the daemon is no longer needed; reads the settings each time, since they may change."""

    def is_used() -> bool:
        stays = options.while_used and (door.activity.has_clients or door.streams.listeners > 0)
        return stays or daemon.live.jobs.active is not None

    settings = daemon.engine.config.settings.server
    most_s = _UNUSED_EXIT_S if options.while_used else settings.idle_exit_s
    most_s = most_s if options.idle_exit_s is None else options.idle_exit_s
    return idle_reason(door.activity, is_used, most_s)() if most_s else None


def _await_vault(
    config: Config, listener: socket.socket, over: threading.Event, reasons: list[Reason]
) -> bool:
    """Serve only the page until a vault is chosen there or by `init`, or until a stop.

    Returns whether it was chosen on the page, which also requests the first index.
    """
    chosen, on_page = threading.Event(), threading.Event()

    def check_vault() -> str | None:
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
    server = DoorServer(door, _limits(config), over, [*reasons, check_vault], until=chosen)
    sys.stderr.write(f"No vault is configured yet; choose one at {presence.url}\n")
    sys.stderr.flush()
    server.run(sockets=[listener.dup()])
    return on_page.is_set()


def _limits(config: Config) -> ConnectionLimits:
    return ConnectionLimits(_MAX_CONNECTIONS, config.settings.server.read_timeout_s)


class DoorServer(uvicorn.Server):
    """uvicorn for a door; runs until `over` is set or there is another reason to exit."""

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
                http=partial(PatientProtocol, limits=limits, health=door.health),  # type: ignore[arg-type]
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=_BACKLOG,
                timeout_graceful_shutdown=_SHUTDOWN_TIMEOUT_S,
            )
        )
        self.on_leaving: Callable[[], None] = lambda: None
        self._door = door
        self._over = over
        self._until = until or over
        self._reasons = reasons

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: uvicorn would end the process by the signal instead of with exit code 0."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """Check ten times a second whether to exit."""
        if counter % _TICKS_PER_S == 0:
            for reason in filter(None, (reason() for reason in self._reasons)):
                _log.info("stops: %s", reason)
                self._over.set()
        if self._over.is_set() or self._until.is_set():
            self.should_exit = True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Announce the exit, then let open requests finish."""
        self.on_leaving()
        self._door.streams.close()
        await super().shutdown(sockets)
        self._door.close()


def _withdraw(config: Config) -> None:
    with contextlib.suppress(OSError):
        config.daemon_file.unlink(missing_ok=True)


@contextlib.contextmanager
def _set_on_signal(over: threading.Event) -> Iterator[None]:
    """Treat termination signals as a request to stop; a second Ctrl-C ends the process at once."""

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
    """Listen on 127.0.0.1; early connections wait until the server runs."""
    port = config.settings.server.port
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        if os.name == "posix":  # on Windows another process could then take the same port
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
    """Bind the port; for 0 the last one if it is free, so that open pages still work."""
    if port:
        listener.bind((_HOST, port))
        return
    try:
        listener.bind((_HOST, int(last.read_text(encoding="ascii"))))
    except (OSError, ValueError, OverflowError):
        listener.bind((_HOST, 0))
        with contextlib.suppress(OSError):
            write_atomically(last, f"{listener.getsockname()[1]}\n")
