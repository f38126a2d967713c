"""Who answers a call: the daemon while one runs, else an engine of this process.

Calls come from several threads at once. The engine is made by the first call that needs it and
stays warm; a daemon that appears later is asked from then on, and one that goes is not missed.

Threat: a client keeps this process for days, and a user who makes the settings stricter meanwhile
counts on them. So settings that changed on disk are taken up before the next answer.
"""

import logging
import threading
from collections.abc import Mapping

from obsidian_rag import tools
from obsidian_rag.config import Config, load
from obsidian_rag.engine import Bus, Engine, Health, Jobs, Live, look
from obsidian_rag.errors import Busy, ObsidianRagError
from obsidian_rag.tools import Envelope
from obsidian_rag.transports.running import DaemonGone, usable_daemon

# A client that has closed our stdin waits two seconds before it ends us by force.
_GRACE_S = 1.0
_log = logging.getLogger(__name__)


class Asking:
    """The tools of one installation, wherever they run."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._seen = _stamp(config)
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._own: Engine | None = None
        self._retired: list[Engine] = []
        self._is_closed = False
        self._told = ""

    def call(self, tool: str, arguments: Mapping[str, object]) -> Envelope:
        """Ask a tool, as an agent; whatever happens, the answer is an envelope."""
        try:
            # A name that is no tool's never becomes part of an address.
            asked = self._ask_daemon(tool, arguments) if tool in tools.TOOLS else None
            return asked or self._ask_here(self.engine, tool, arguments)
        except ObsidianRagError as error:
            return tools.failure(error)

    @property
    def engine(self) -> Engine:
        """The engine of this process, made when it is first needed.

        Raises:
            ConfigInvalid: the settings have changed and cannot be used.
            Busy: we are about to end.
        """
        with self._lock:
            self._take_up_settings()
            if self._is_closed:
                raise Busy("The server is stopping.", "Connect again.")
            if self._own is None:
                self._own = self._make()
            return self._own

    def close(self) -> None:
        """End what was started here; an index run is ended tidily and goes on next time."""
        with self._lock:
            self._retire()
            self._is_closed = True
            for engine in self._retired:
                engine.close()

    def _ask_daemon(self, tool: str, arguments: Mapping[str, object]) -> Envelope | None:
        with self._lock:
            self._take_up_settings()
        daemon, reason = usable_daemon(self._config)
        if reason and reason != self._told:
            _log.warning(reason)
        self._told = reason
        if daemon is not None:
            try:
                envelope: Envelope = daemon.call(tool, arguments)
                return envelope
            except DaemonGone:
                _log.info("the daemon (process %d) is gone; answering here", daemon.pid)
        return None

    def _take_up_settings(self) -> None:
        if (stamp := _stamp(self._config)) == self._seen:
            return
        config = load()
        self._seen = stamp
        if config.digest != self._config.digest:
            _log.info("the settings have changed")
            self._retire()
            self._config = config

    def _retire(self) -> None:
        """Stop the engine's jobs. Calls may still be using it, so it stays open until the end."""
        if self._own is not None:
            if self._own.live is not None:
                self._own.live.jobs.stop(_GRACE_S)
            self._retired.append(self._own)
            self._own = None

    def _make(self) -> Engine:
        engine = Engine(self._config)
        bus = Bus()
        jobs = Jobs(self._config, bus)
        engine.live = Live(bus, jobs, Health(bus), look_soon=self._look_soon)
        return engine

    def _ask_here(self, engine: Engine, tool: str, arguments: Mapping[str, object]) -> Envelope:
        envelope = tools.call(engine, tool, arguments)
        live = engine.live
        assert live is not None
        # Most clients only ask: the worker, a process of its own, starts with the first job.
        if live.jobs.active is not None:
            live.jobs.start()
        # No scheduler looks at health here, so trouble stays known until somebody does.
        if live.health.trouble() is not None:
            self._look_soon()
        return envelope

    def _look_soon(self) -> None:
        """Look again whether what was down is back; nobody waits for it."""
        if self._looking.acquire(blocking=False):
            threading.Thread(target=self._look, name="look", daemon=True).start()

    def _look(self) -> None:
        try:
            look(self.engine)
        except ObsidianRagError as error:
            _log.info("a look at the index failed: %s", error.code)
        finally:
            self._looking.release()


def _stamp(config: Config) -> tuple[int, int] | None:
    try:
        found = config.file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
