"""A client of the running daemon, for tools and events; `light_client` finds the daemon.

A command is answered by the daemon if one runs with the same settings, else by this process.
"""

import http.client
import json
import logging
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from obsidian_rag import __version__
from obsidian_rag.config import Config
from obsidian_rag.errors import Busy, IndexerFailed
from obsidian_rag.transports.light_client import daemon_facts
from obsidian_rag.transports.light_client import is_locked as is_locked
from obsidian_rag.transports.limits import LIMITS_HEADER

_ANSWER_S = 120.0
_CONNECT_S = 3.0
_JSON = "application/json"
# Statuses of the door itself: too many requests or connections.
_OVERLOADED = {429, 503}


class DaemonGone(Exception):
    """The daemon does not answer or is overloaded: the caller works without it."""


@dataclass(frozen=True, slots=True)
class RunningDaemon:
    """How to reach the daemon of a data folder."""

    port: int
    token: str
    pid: int
    version: str
    config: str
    overrides: Mapping[str, str] = field(default_factory=dict)
    started_with: Mapping[str, object] = field(default_factory=dict)
    while_used: bool = False

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def call(
        self,
        tool: str,
        arguments: Mapping[str, object],
        *,
        is_owner: bool = False,
        limits: str | None = None,
    ) -> Any:
        """Call a tool and return its envelope. `limits` is the header with an agent's limits.

        Raises:
            DaemonGone: the daemon stopped before it answered.
        """
        return self.post(f"/tools/{tool}", arguments, is_owner=is_owner, limits=limits)

    def post(
        self,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        is_owner: bool = False,
        limits: str | None = None,
    ) -> Any:
        """Send a POST request and return the JSON of the answer."""
        headers = {**self._headers(is_owner), "Content-Type": _JSON, "Accept": _JSON}
        if limits is not None:
            headers[LIMITS_HEADER] = limits
        connection = self._connect()
        try:
            connection.request("POST", path, json.dumps(body or {}), headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
        except TimeoutError:
            raise IndexerFailed(
                f"The daemon (process {self.pid}) does not answer.",
                "Look at logs/daemon.log in the data folder; `obsidian-rag serve --stop` stops it.",
            ) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise DaemonGone from error
        finally:
            connection.close()
        if response.status in _OVERLOADED and answer["error"]["code"] == Busy.code:
            raise DaemonGone("it has too much to do")
        return answer

    def events(self, after: int | None = None) -> Generator[tuple[str, dict[str, Any]], None, None]:
        """Yield the daemon's events as (kind, data) until it stops; the first is ("ready", {}).

        With `after`, remembered events with a higher number come next.

        Raises:
            DaemonGone: the connection broke.
        """
        connection = self._connect()
        try:
            headers = self._headers(is_owner=True)
            if after is not None:
                headers["Last-Event-ID"] = str(after)
            connection.request("GET", "/events", headers=headers)
            kind = "message"
            for raw in connection.getresponse():
                name, _, value = raw.decode().rstrip("\r\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield kind, json.loads(value)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise DaemonGone from error
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        """Connect; a daemon that does not accept within `_CONNECT_S` counts as gone."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_CONNECT_S)
        try:
            connection.connect()
        except OSError as error:
            raise DaemonGone from error
        connection.sock.settimeout(_ANSWER_S)
        return connection

    def _headers(self, is_owner: bool) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {self.token}"}
        # Not a proof: a program with the token can read the vault anyway.
        return {**headers, "X-Obsidian-Rag-Caller": "owner"} if is_owner else headers


def find_daemon(home: Path) -> RunningDaemon | None:
    """The daemon that serves this data folder, if one does."""
    found = daemon_facts(home)
    if found is None:
        return None
    try:
        return RunningDaemon(
            int(found["port"]),
            str(found["token"]),
            int(found["pid"]),
            str(found["version"]),
            str(found["config"]),
            dict(found["overrides"]),
            dict(found["started_with"]),
            bool(found.get("while_used")),
        )
    except (ValueError, KeyError, TypeError):
        return None


_log = logging.getLogger(__name__)
T = TypeVar("T")


def daemon_or_here(
    daemon: RunningDaemon | None, there: Callable[[RunningDaemon], T], here: Callable[[], T]
) -> T:
    """Ask the daemon, or do the work in this process if there is none or it went away."""
    if daemon is not None:
        try:
            return there(daemon)
        except DaemonGone:
            _log.info("the daemon (process %d) is gone; answering here", daemon.pid)
    return here()


def usable_daemon(config: Config) -> tuple[RunningDaemon | None, str]:
    """The daemon to ask instead of working here, or why a running one cannot be used.

    A daemon follows the config file, so a command that reads the same file has the same settings,
    unless the environment of one of them overrides some.
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
