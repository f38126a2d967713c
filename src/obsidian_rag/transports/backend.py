"""What answers: the daemon while one runs with the same settings, else this process.

The command line asks once and ends; an MCP server stays, and decides anew with every call. The
daemon's own HTTP server always answers itself.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from obsidian_rag import __version__
from obsidian_rag.config import Config
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.transports.daemon_client import DaemonGone, RunningDaemon, find_daemon
from obsidian_rag.transports.lazy import engine, tools
from obsidian_rag.transports.limits import NO_LIMITS, Limits

if TYPE_CHECKING:
    from obsidian_rag.engine import Engine
    from obsidian_rag.tools import Caller, Envelope

_log = logging.getLogger(__name__)
T = TypeVar("T")


def daemon_or_here(
    daemon: RunningDaemon | None, there: Callable[[RunningDaemon], T], here: Callable[[], T]
) -> T:
    """What the daemon answers; what this process does, if there is none or it went away."""
    if daemon is not None:
        try:
            return there(daemon)
        except DaemonGone:
            _log.info("the daemon (process %d) is gone; answering here", daemon.pid)
    return here()


def usable_daemon(config: Config) -> tuple[RunningDaemon | None, str]:
    """The daemon to ask instead of working here, and why a running one is not asked.

    A daemon follows the config file, so it has the settings of a command that reads the same file,
    unless the environment of one of them says otherwise.
    """
    daemon = find_daemon(config.home)
    if daemon is None:
        return None, ""
    if daemon.version != __version__:
        differs = "is from another version"
    elif daemon.config != str(config.file):
        differs = f"has other settings (from {daemon.config})"
    elif names := config.differing(daemon.overrides):
        differs = f"has other settings from its environment ({', '.join(names)})"
    else:
        return daemon, ""
    return None, (
        f"The running daemon (process {daemon.pid}) {differs}, so it is not used;"
        " `obsidian-rag serve --detach` restarts it."
    )


class Backend(Protocol):
    """What answers an agent."""

    def call(self, tool: str, arguments: Mapping[str, object]) -> "Envelope":
        """Ask a tool; whatever happens, the answer is an envelope."""
        ...

    def ask_daemon(self, method: str, params: Mapping[str, object]) -> Any:
        """The result of an MCP request from another process that answers it; None without one."""
        ...

    @property
    def caller(self) -> "Caller":
        """The caller."""
        ...

    @property
    def engine(self) -> "Engine":
        """The engine of this process."""
        ...

    def close(self) -> None:
        """End what was started for the answers."""
        ...


@dataclass(frozen=True, slots=True)
class DaemonBackend:
    """The daemon's own engine, for one caller at its door."""

    engine: "Engine"
    caller: "Caller"

    def call(self, tool: str, arguments: Mapping[str, object]) -> "Envelope":
        """Ask a tool; whatever happens, the answer is an envelope."""
        return tools.call(self.engine, tool, arguments, self.caller)

    def ask_daemon(self, method: str, params: Mapping[str, object]) -> Any:
        """Nobody else has to be asked: this is the daemon."""
        return None

    def close(self) -> None:
        """Nothing was started."""


class ResidentBackend:
    """The tools of one installation for a process that stays, wherever they run.

    Calls come from several threads at once. The engine of this process stays warm; a daemon that
    appears later is asked from then on, and one that goes is not missed.
    """

    def __init__(self, config: Config, limits: Limits = NO_LIMITS) -> None:
        self._limits = limits
        self._resident = engine.ResidentEngine(config)
        self._told = ""

    def call(self, tool: str, arguments: Mapping[str, object]) -> "Envelope":
        """Ask a tool, as an agent within limits; whatever happens, the answer is an envelope."""

        def there(daemon: RunningDaemon) -> "Envelope":
            envelope: Envelope = daemon.call(tool, arguments, limits=self._limits.header)
            return envelope

        def here() -> "Envelope":
            envelope = tools.call(self.engine, tool, arguments, self.caller)
            self._resident.follow_up()
            return envelope

        try:
            # A name that is no tool's never becomes part of an address.
            daemon = self._daemon() if tool in tools.TOOLS else None
            return daemon_or_here(daemon, there, here)
        except ObsidianRagError as error:
            return tools.for_agents(tools.failure(error))

    def ask_daemon(self, method: str, params: Mapping[str, object]) -> Any:
        """The result of an MCP request from a running daemon; None without one or if it refuses."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params}}

        def there(daemon: RunningDaemon) -> Any:
            answer = daemon.post("/mcp", request, limits=self._limits.header)
            return answer.get("result")

        return daemon_or_here(self._daemon(), there, lambda: None)

    @property
    def caller(self) -> "Caller":
        """The caller, within the limits."""
        return self._limits.caller()

    @property
    def engine(self) -> "Engine":
        """The engine of this process, with the settings of now.

        Raises:
            Busy: we are about to end.
        """
        return self._resident.now

    def close(self) -> None:
        """End what was started here; an index run is ended tidily and goes on next time."""
        self._resident.close()

    def _daemon(self) -> RunningDaemon | None:
        daemon, reason = usable_daemon(self.engine.config)
        if reason and reason != self._told:
            _log.warning(reason)
        self._told = reason
        return daemon
