"""An engine that stays in a process without a daemon, such as an MCP server alone.

Threat: a client keeps this process for days, and a user who makes the settings stricter meanwhile
counts on them. So settings that changed on disk are taken up before every answer.
"""

import logging
import threading

from obsidian_rag.config import Config
from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.events import Bus
from obsidian_rag.engine.health import Health, look
from obsidian_rag.engine.jobs import Jobs
from obsidian_rag.engine.live import Live
from obsidian_rag.errors import Busy, ObsidianRagError

# A client that has closed our stdin waits two seconds before it ends us by force.
_GRACE_S = 1.0
_log = logging.getLogger(__name__)


class ResidentEngine:
    """The engine of this process, for answers in several threads at once; it stays warm."""

    def __init__(self, config: Config) -> None:
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._own = Engine(config)
        bus = Bus()
        self._jobs = Jobs(config, bus)
        self._health = Health(bus)
        self._own.live = Live(bus, self._jobs, self._health, look_soon=self._look_soon)
        self._is_closed = False

    @property
    def now(self) -> Engine:
        """The engine with the settings of now.

        Raises:
            Busy: we are about to end.
        """
        with self._lock:
            if self._is_closed:
                raise Busy("The server is stopping.", "Connect again.")
            self._own.follow_settings()
            return self._own

    def follow_up(self) -> None:
        """After an answer: start the job that it asked for, look again at what was in trouble."""
        # Most clients only ask: the worker, a process of its own, starts with the first job.
        if self._jobs.active is not None:
            self._jobs.start()
        # No scheduler looks at health here, so trouble stays known until somebody does.
        if self._health.trouble is not None:
            self._look_soon()

    def close(self) -> None:
        """End what was started here; an index run is ended tidily and goes on next time."""
        with self._lock:
            self._is_closed = True
            self._jobs.stop(_GRACE_S)
            self._own.close()

    def _look_soon(self) -> None:
        """Look again whether what was down is back; nobody waits for it."""
        if self._looking.acquire(blocking=False):
            threading.Thread(target=self._look, name="look", daemon=True).start()

    def _look(self) -> None:
        try:
            look(self.now)
        except ObsidianRagError as error:
            _log.info("a look at the index failed: %s", error.code)
        finally:
            self._looking.release()
