"""Who answers a call: the daemon while one runs, else an engine of this process.

Calls come from several threads at once. The engine is made by the first call that needs it and
stays warm; a daemon that appears later is asked from then on, and one that goes is not missed.

Threat: a client keeps this process for days, and a user who makes the settings stricter meanwhile
counts on them. So settings that changed on disk are taken up before the next answer, here by the
engine and in the daemon by its own.
"""

import logging
import threading
from collections.abc import Mapping

from obsidian_rag import tools
from obsidian_rag.config import Config
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
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._own = Engine(config)
        bus = Bus()
        self._jobs = Jobs(config, bus)
        self._own.live = Live(bus, self._jobs, Health(bus), look_soon=self._look_soon)
        self._is_closed = False
        self._told = ""

    def call(self, tool: str, arguments: Mapping[str, object]) -> Envelope:
        """Ask a tool, as an agent; whatever happens, the answer is an envelope."""
        try:
            # A name that is no tool's never becomes part of an address.
            asked = self._ask_daemon(tool, arguments) if tool in tools.TOOLS else None
            return asked or self._ask_here(self.engine, tool, arguments)
        except ObsidianRagError as error:
            return tools.for_agents(tools.failure(error))

    @property
    def engine(self) -> Engine:
        """The engine of this process, with the settings of now.

        Raises:
            Busy: we are about to end.
        """
        with self._lock:
            if self._is_closed:
                raise Busy("The server is stopping.", "Connect again.")
            self._own.follow_settings()
            return self._own

    def close(self) -> None:
        """End what was started here; an index run is ended tidily and goes on next time."""
        with self._lock:
            self._is_closed = True
            self._jobs.stop(_GRACE_S)
            self._own.close()

    def _ask_daemon(self, tool: str, arguments: Mapping[str, object]) -> Envelope | None:
        daemon, reason = usable_daemon(self.engine.config)
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
