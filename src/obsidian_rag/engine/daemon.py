"""The parts that run in a daemon: jobs, watcher, health; started and stopped in order.

Threads: the jobs', the watcher, the scheduler, the map, LiveSync with its own, one that follows the
settings, and one that warms up the engine. Transports have their own and only ever call tools.
"""

import contextlib
import functools
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from obsidian_rag.config import Config
from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.events import Bus, EventKind
from obsidian_rag.engine.health import Health
from obsidian_rag.engine.job import settings_for_runs
from obsidian_rag.engine.jobs import Jobs
from obsidian_rag.engine.live import Live
from obsidian_rag.engine.query import ask
from obsidian_rag.engine.scheduler import Scheduler
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.livesync import LivesyncLoop, settings_for_syncing, shares_vault
from obsidian_rag.process import Threads, use_few_arenas
from obsidian_rag.relations import VaultMap
from obsidian_rag.search import Request
from obsidian_rag.vault import Listener, OnChange, Vault, Watcher, configured_vault, watch_files

_SETTINGS_POLL_INTERVAL_S = 1.0
_log = logging.getLogger(__name__)


class Daemon:
    """One engine with its background parts; `start` returns at once, `stop` when all have ended.

    One thread follows the config file, even without requests, and restarts the parts that a change
    affects.

    Raises:
        ConfigInvalid: no vault is configured.
    """

    def __init__(self, config: Config) -> None:
        self.engine = Engine(config)
        self._livesync_changed: OnChange = _ignore
        self.watcher = self._make_watcher(config)
        bus = Bus()
        self._map = VaultMap(
            lambda: self.engine.relations,
            lambda version: bus.publish(EventKind.MAP, {"version": version}),
        )
        self.live = Live(
            bus,
            Jobs(config, bus),
            Health(bus),
            is_watching=lambda: self._is_indexing_edits and self.watcher.is_watching,
            watch_trouble=lambda: self.watcher.trouble if self._is_indexing_edits else None,
            probe_soon=self._probe_soon,
            links_changed=self._follow_links,
            livesync=lambda: self._livesync.state if self._livesync else None,
            vault_map=self._map,
        )
        self.engine.live = self.live
        self.engine.settings_file.started_with = config.restart_values
        self.engine.on_settings = lambda: self._settings_changed.set()
        self._scheduler = Scheduler(self.engine, self.live)
        self._livesync: LivesyncLoop | None = None
        self._livesync_code: str | None = None
        self._settings_changed = threading.Event()
        self._is_stopping = False
        # By name; the watchers of linked vaults are named by link id.
        self._threads = Threads()
        self._active_links: set[str] = set()
        self._links_lock = threading.Lock()

    def start(self) -> None:
        """Start every thread and the worker; nothing here waits for a slow disk or model."""
        use_few_arenas()
        config = self.engine.config
        self.live.jobs.start()
        self._watch(config, is_behind=False)
        self._follow_links()
        self._threads.begin("map", self._map.run, self._map.wake)
        self._threads.begin("scheduler", self._scheduler.run, self._scheduler.wake)
        self._start_syncing(config)
        follow = functools.partial(self._follow_settings, config)
        self._threads.begin("settings", follow, self._settings_changed.set)
        # Not joined: it may hang on a model that takes a minute to load.
        threading.Thread(target=self._warm_up, name="warm-up", daemon=True).start()

    def stop(self) -> None:
        """Stop the watcher, let the running job finish within its limit, close files."""
        self._is_stopping = True
        self._threads.end("settings", "scheduler", "map")
        self._threads.end("watcher", *self._active_links)
        self._end_syncing()
        self.live.jobs.stop(self.engine.config.settings.server.shutdown_wait_s)
        self.engine.close()

    def _follow_settings(self, config: Config, stop: threading.Event) -> None:
        """Poll the config file; `config` is what the parts were started with."""
        while not stop.is_set():
            self._settings_changed.wait(_SETTINGS_POLL_INTERVAL_S)
            self._settings_changed.clear()
            try:
                self.engine.follow_settings()
                self._follow_links()  # another process may have linked a vault
                if self.engine.config is not config and not stop.is_set():
                    before, config = config, self.engine.config
                    self._apply(before, config)
            except Exception:  # noqa: BLE001  (a background loop: the next round may do better)
                _log.exception("changed settings could not be taken up")

    def _apply(self, before: Config, after: Config) -> None:
        """Restart the parts that a change affects."""
        _log.info("the settings have changed")
        if _watcher_settings(before) != _watcher_settings(after):
            self._threads.end("watcher")
            self._watch(after, is_behind=True)
            self._threads.end(*self._active_links)
            self._follow_links(is_behind=True)
        if settings_for_syncing(before) != settings_for_syncing(after):
            self._end_syncing()
            self._start_syncing(after)
        self._scheduler.settings_changed()
        if settings_for_runs(before) != settings_for_runs(after):
            self._scheduler.changed(None)

    @property
    def _is_indexing_edits(self) -> bool:
        return self.engine.config.settings.watcher.enabled

    def _make_watcher(self, config: Config) -> Watcher:
        """The vault's one watcher, with a listener for each part that follows changes."""
        settings, listeners = config.settings, list[Listener]()
        if settings.watcher.enabled:
            rules = configured_vault(config).rules
            debounce_s, collect_s = settings.watcher.debounce_s, settings.watcher.collect_s
            early_s = settings.relations.debounce_ms / 1000
            listeners += [
                Listener(
                    lambda paths: self._scheduler.changed(paths), rules, debounce_s, collect_s
                ),
                Listener(lambda paths: self.live.jobs.relate(paths), rules, early_s),
            ]
        if shares_vault(config):
            sync_s = settings.livesync.debounce_s
            listeners += [Listener(lambda paths: self._livesync_changed(paths), debounce_s=sync_s)]
        return Watcher(configured_vault(config).root, *listeners)

    def _watch(self, config: Config, *, is_behind: bool) -> None:
        watcher = self.watcher = self._make_watcher(config)
        if config.settings.watcher.enabled or shares_vault(config):
            self._threads.begin("watcher", functools.partial(watcher.run, is_behind=is_behind))

    def _follow_links(self, *, is_behind: bool = False) -> None:
        """Watch exactly the linked vaults that are not paused."""
        with contextlib.suppress(ObsidianRagError), self._links_lock:
            linked = {one.link_id: one for one in self.engine.vaults if not one.is_primary}
            active = {link_id for link_id, vault in linked.items() if not vault.is_paused}
            if active == self._active_links and not is_behind:
                return
            self._threads.end(*self._active_links - active)
            self._active_links = active
            if self._is_indexing_edits and not self._is_stopping:
                for link_id in active:
                    if link_id not in self._threads:
                        self._watch_link(linked[link_id], is_behind)
            self._scheduler.links_changed(active)

    def _watch_link(self, vault: Vault, is_behind: bool) -> None:
        settings = self.engine.config.settings.watcher
        on_change = functools.partial(self._scheduler.changed, link_id=vault.link_id)
        listener = Listener(on_change, vault.rules, settings.debounce_s, settings.collect_s)
        watcher = Watcher(vault.root, listener)
        self._threads.begin(vault.link_id, functools.partial(watcher.run, is_behind=is_behind))

    def _start_syncing(self, config: Config) -> None:
        if config.settings.livesync.enabled:
            watch = functools.partial(self._watch_for_livesync, config)
            self._livesync = LivesyncLoop(config, watch, self._publish_livesync)
            self._threads.begin("livesync", self._livesync.run, self._livesync.wake)

    def _end_syncing(self) -> None:
        if self._livesync is not None:
            self._threads.end("livesync")
            self._livesync = None
            self._publish_livesync(None)

    @contextlib.contextmanager
    def _watch_for_livesync(
        self, config: Config, root: Path, debounce_s: float, changed: OnChange
    ) -> Iterator[Callable[[float], bool]]:
        """Use the vault's watcher for LiveSync if it covers everything that is synced."""
        if not shares_vault(config):
            with watch_files(root, debounce_s, changed) as is_watched:
                yield is_watched
            return
        self._livesync_changed = changed
        try:
            yield lambda wait_s: self.watcher.ready.wait(wait_s)
        finally:
            if self._livesync_changed is changed:  # the next node may be listening already
                self._livesync_changed = _ignore

    def _publish_livesync(self, trouble: ObsidianRagError | None) -> None:
        code = trouble.code if trouble is not None else None
        if code != self._livesync_code:
            self._livesync_code = code
            reason = trouble.message if trouble is not None else "Everything works."
            self.live.bus.publish(EventKind.LIVESYNC, {"code": code, "reason": reason})

    def _probe_soon(self) -> None:
        self._scheduler.probe_soon()
        if self._livesync is not None:
            self._livesync.look_soon()

    def _warm_up(self) -> None:
        """Load what the first query would wait for."""
        with contextlib.suppress(ObsidianRagError):
            ask(self.engine, Request("warm up", limit=1))


def _watcher_settings(config: Config) -> tuple[object, ...]:
    settings = config.settings
    debounce_ms = settings.relations.debounce_ms
    livesync_s = settings.livesync.debounce_s if shares_vault(config) else None
    vault = configured_vault(config)
    return vault, settings.indexing, settings.watcher, debounce_ms, livesync_s


def _ignore(_paths: frozenset[str] | None) -> None:
    """Ignore a change: LiveSync is not listening."""
