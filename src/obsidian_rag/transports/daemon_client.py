"""A client of the running daemon; light, so that a command answers at once.

The daemon holds a lock for as long as it lives, so a `daemon.json` left behind by a crash is
never believed, and neither a reused process id nor a reused port can mislead us.
"""

import http.client
import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from obsidian_rag.config import DAEMON_FILE, DAEMON_LOCK
from obsidian_rag.errors import Busy, IndexerFailed
from obsidian_rag.transports.limits import LIMITS_HEADER

_ANSWER_S = 120.0
_CONNECT_S = 3.0
# What the door says itself, before any tool is asked: too many requests or connections.
_JSON = "application/json"
_OVERLOADED = {429, 503}


class DaemonGone(Exception):
    """The daemon does not answer, or has no time to: the caller goes on by itself."""


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
        """Ask a tool; the envelope as it came. `limits` are those of an agent, as its header.

        Raises:
            DaemonGone: it stopped before it answered.
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
        """The JSON that a path answers."""
        headers = {**self._headers(is_owner), "Content-Type": _JSON, "Accept": _JSON}
        if limits is not None:
            headers[LIMITS_HEADER] = limits
        connection = self._connected()
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
        """What happens there, as (kind, data), until it ends; the first one is ("ready", {}).

        With `after`, the remembered events with a higher number come next.

        Raises:
            DaemonGone: the connection broke.
        """
        connection = self._connected()
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

    def _connected(self) -> http.client.HTTPConnection:
        """A connection; a daemon that takes none within a moment is as good as gone."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_CONNECT_S)
        try:
            connection.connect()
        except OSError as error:
            raise DaemonGone from error
        connection.sock.settimeout(_ANSWER_S)
        return connection

    def _headers(self, is_owner: bool) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {self.token}"}
        # Names the caller and proves nothing: a program with the token can read the vault anyway.
        return {**headers, "X-Obsidian-Rag-Caller": "owner"} if is_owner else headers


def find_daemon(home: Path) -> RunningDaemon | None:
    """The daemon that serves this data folder, if one does."""
    try:
        found = json.loads((home / DAEMON_FILE).read_text(encoding="utf-8"))
        daemon = RunningDaemon(
            int(found["port"]),
            str(found["token"]),
            int(found["pid"]),
            str(found["version"]),
            str(found["config"]),
            dict(found["overrides"]),
            dict(found["started_with"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return daemon if is_locked(home) else None


def is_locked(home: Path) -> bool:
    """Whether a daemon holds this data folder, ready or not."""
    lock = FileLock(home / DAEMON_LOCK)
    try:
        with lock.acquire(timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return False
