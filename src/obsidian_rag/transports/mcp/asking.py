"""Who answers a call: the daemon while one runs, else an engine of this process.

Calls come from several threads at once. The engine stays warm; a daemon that appears later is asked
from then on, and one that goes is not missed.
"""

import logging
from collections.abc import Mapping

from obsidian_rag import tools
from obsidian_rag.config import Config
from obsidian_rag.engine import Engine, ResidentEngine
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.tools import Envelope
from obsidian_rag.transports.running import DaemonGone, usable_daemon

_log = logging.getLogger(__name__)


class Asking:
    """The tools of one installation, wherever they run."""

    def __init__(self, config: Config) -> None:
        self._resident = ResidentEngine(config)
        self._told = ""

    def call(self, tool: str, arguments: Mapping[str, object]) -> Envelope:
        """Ask a tool, as an agent; whatever happens, the answer is an envelope."""
        try:
            # A name that is no tool's never becomes part of an address.
            asked = self._ask_daemon(tool, arguments) if tool in tools.TOOLS else None
            return asked or self._ask_here(tool, arguments)
        except ObsidianRagError as error:
            return tools.for_agents(tools.failure(error))

    @property
    def engine(self) -> Engine:
        """The engine of this process, with the settings of now.

        Raises:
            Busy: we are about to end.
        """
        return self._resident.now

    def close(self) -> None:
        """End what was started here; an index run is ended tidily and goes on next time."""
        self._resident.close()

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

    def _ask_here(self, tool: str, arguments: Mapping[str, object]) -> Envelope:
        envelope = tools.call(self.engine, tool, arguments)
        self._resident.follow_up()
        return envelope
