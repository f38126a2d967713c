"""All that lives while a daemon runs: jobs, watcher, health; started and stopped in order.

Threads: the jobs' own, the watcher, the scheduler, early relations, LiveSync with its own, and
one that warms the engine up. The doors bring theirs and only ever call tools.
"""

import contextlib
import ctypes
import logging
import sys
import threading
from collections.abc import Callable

from obsidian_rag.config import Config
from obsidian_rag.engine.asking import ask
from obsidian_rag.engine.early import EarlyRelations
from obsidian_rag.engine.engine import Engine, Live
from obsidian_rag.engine.events import Bus
from obsidian_rag.engine.health import Health, Subject
from obsidian_rag.engine.jobs import Jobs
from obsidian_rag.engine.livesync_loop import LivesyncLoop
from obsidian_rag.engine.scheduler import Scheduler
from obsidian_rag.engine.watcher import Early, Watcher
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.search import Request

_JOIN_S = 5.0
_ARENA_MAX = -8  # from malloc.h
_log = logging.getLogger(__name__)


class Daemon:
    """One engine with everything alive; `start` returns at once, `stop` when all has ended.

    Raises:
        ConfigInvalid: no vault is configured.
    """

    def __init__(self, config: Config) -> None:
        self.engine = Engine(config)
        self.watcher = Watcher(
            config.vault_root,
            self.engine.rules,
            config.settings.watcher,
            lambda paths: self._scheduler.changed(paths),
            Early(
                config.settings.relations.debounce_ms / 1000,
                lambda paths: self._early.changed(paths),
            ),
        )
        bus = Bus()
        self.live = Live(
            bus,
            Jobs(config, bus),
            Health(bus),
            is_watching=lambda: self.watcher.is_watching,
            watch_trouble=lambda: self.watcher.trouble,
            look_soon=self._look_soon,
            livesync=lambda: self._livesync.state if self._livesync else None,
        )
        self.engine.live = self.live
        self._scheduler = Scheduler(self.engine, self.live)
        self._early = EarlyRelations(self.engine, self.live)
        self._livesync = (
            LivesyncLoop(config, lambda trouble: self.live.health.note({Subject.LIVESYNC: trouble}))
            if config.settings.livesync.enabled
            else None
        )
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start every thread and the worker; nothing here waits for a slow disk or model."""
        _use_few_arenas()
        self.live.jobs.start()
        if self.engine.config.settings.watcher.enabled:
            self._begin("watcher", lambda: self.watcher.run(self._stop))
            self._begin("early relations", lambda: self._early.run(self._stop))
        self._begin("scheduler", lambda: self._scheduler.run(self._stop))
        if self._livesync is not None:
            livesync = self._livesync
            self._begin("livesync", lambda: livesync.run(self._stop))
        # Not joined: it may hang on a model that takes a minute to load.
        threading.Thread(target=self._warm_up, name="warm-up", daemon=True).start()

    def stop(self) -> None:
        """Stop the watcher, let the running job finish within its limit, let go of files."""
        self._stop.set()
        self._scheduler.wake()
        self._early.wake()
        if self._livesync is not None:
            self._livesync.wake()
        for thread in self._threads:
            thread.join(_JOIN_S)
        self.live.jobs.stop(self.engine.config.settings.server.shutdown_wait_s)
        self.engine.close()

    def _look_soon(self) -> None:
        self._scheduler.look_soon()
        if self._livesync is not None:
            self._livesync.look_soon()

    def _begin(self, name: str, action: Callable[[], None]) -> None:
        thread = threading.Thread(target=action, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _warm_up(self) -> None:
        """Load what the first question would wait for."""
        with contextlib.suppress(ObsidianRagError):
            ask(self.engine, Request("warm up", limit=1))


def _use_few_arenas() -> None:
    """Keep glibc from giving each thread a heap of its own, most of which would lie idle."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError, OSError):  # another C library
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)
