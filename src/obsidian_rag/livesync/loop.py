"""A running node: fed by the vault's watcher, monitored by a heartbeat, restarted after errors.

Threads: the node works in the thread that calls `run`; the watcher of the vault only queues
messages; the heartbeat has its own thread, reads the node's counts, and does all the reporting.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from obsidian_rag.config import Config
from obsidian_rag.errors import Busy, IndexerFailed, LivesyncBrake, ObsidianRagError
from obsidian_rag.livesync.node import Listener, Node
from obsidian_rag.livesync.session import drop_old_trash, open_node
from obsidian_rag.livesync.site import Direction, Options
from obsidian_rag.livesync.status import Kind, LeftOut, LivesyncState, save_state
from obsidian_rag.store import file_identity
from obsidian_rag.vault import watch_files

# Under the room's name, so that the node and its loop write to one log.
_log = logging.getLogger("obsidian_rag.livesync")
_HEARTBEAT_INTERVAL_S = 0.25
_STATUS_INTERVAL_S = 5.0
_TRASH_INTERVAL_S = 3600.0
_WATCHER_START_TIMEOUT_S = 10.0
_HEARTBEAT_JOIN_TIMEOUT_S = 5.0
_RETRY_S = 300.0
# These may end without notice: a disk is back, another process has ended.
_RETRY_SOON_S = 60.0
_TRANSIENT = (Busy, IndexerFailed, LivesyncBrake)
# However often a retry is requested.
_MIN_RETRY_INTERVAL_S = 5.0

# Called with each trouble, and with None once the node is connected again.
OnTrouble = Callable[[ObsidianRagError | None], None]
# Waits up to so many seconds until the vault is watched; returns whether it is.
IsWatched = Callable[[float], bool]
# Calls back on changes below a folder while the context is open.
Watch = Callable[
    [Path, float, Callable[[frozenset[str] | None], None]],
    contextlib.AbstractContextManager[IsWatched],
]


class RunningNode:
    """One run of a node, with its watcher and heartbeat."""

    def __init__(
        self,
        config: Config,
        watch: Watch,
        options: Options | None = None,
        listener: Listener = lambda _what, _done, _total: None,
        report: OnTrouble = lambda _trouble: None,
    ) -> None:
        self._config = config
        self._watch = watch
        self._options = options or Options()
        self._listener = listener
        self._report = report
        self._node: Node | None = None
        self._is_watched: IsWatched | None = None
        self._progress: tuple[str, int, int] | None = None
        self._trouble: ObsidianRagError | None = None

    def run(self, stop: threading.Event) -> None:
        """Sync until `stop`; ends early, without a failure, when state.db was replaced.

        Raises:
            ObsidianRagError: only the user can help, or the node cannot be opened.
        """
        with open_node(self._config, self._options) as node:
            self._node = node
            ended = threading.Event()
            try:
                with self._run_heartbeat(node, stop, ended), self._watch_vault(node):
                    node.run(ended, self._record_progress)
            except ObsidianRagError as error:
                self._trouble = error
                raise
            finally:
                self._node = None
                save_state(node.records, self._state_of(node, is_running=False))

    @property
    def state(self) -> LivesyncState:
        """The node's current state."""
        node = self._node
        return self._state_of(node, is_running=True) if node else LivesyncState()

    def _state_of(self, node: Node, *, is_running: bool) -> LivesyncState:
        state, is_watched = node.state, self._is_watched
        return replace(
            state,
            is_running=is_running,
            is_watching=is_running and is_watched is not None and is_watched(0),
            is_connected=is_running and state.is_connected,
            lag=self._lag(node) if is_running else None,
            progress=self._progress if is_running else None,
            trouble=state.trouble or state.brake or self._trouble,
        )

    def _lag(self, node: Node) -> int | None:
        if self._progress is not None:
            _, done, total = self._progress
            return max(0, total - done) if total else None
        return node.queued if node.state.is_connected else None

    def _record_progress(self, what: str, done: int, total: int) -> None:
        self._progress = (what, done, total)
        self._listener(what, done, total)

    @contextlib.contextmanager
    def _run_heartbeat(
        self, node: Node, stop: threading.Event, ended: threading.Event
    ) -> Iterator[None]:
        over = threading.Event()
        heartbeat = threading.Thread(
            target=self._heartbeat,
            args=(node, stop, ended, over),
            name="livesync heartbeat",
            daemon=True,
        )
        heartbeat.start()
        try:
            yield
        finally:
            over.set()
            heartbeat.join(_HEARTBEAT_JOIN_TIMEOUT_S)

    def _heartbeat(
        self,
        node: Node,
        stop: threading.Event,
        ended: threading.Event,
        over: threading.Event,
    ) -> None:
        identity = file_identity(self._config.database)
        status_at, trash_check_at = 0.0, time.monotonic() + _TRASH_INTERVAL_S
        saved = LivesyncState()
        left_out: tuple[LeftOut, ...] = ()
        while not over.wait(_HEARTBEAT_INTERVAL_S):
            if stop.is_set() or file_identity(self._config.database) != identity:
                ended.set()
            if node.state.is_connected and self._progress is not None:
                self._progress = None
                _log.info("In sync: %d files, following changes", node.records.count())
            state, now = self._state_of(node, is_running=True), time.monotonic()
            if state.is_connected and state.not_synced != left_out:
                _log_not_synced(state.not_synced, left_out)
                left_out = state.not_synced
            if node.state.trouble is not None or state.is_connected:
                self._report(state.trouble)
            is_due = now >= status_at or state.is_connected != saved.is_connected
            if is_due and state != saved:
                status_at, saved = now + _STATUS_INTERVAL_S, state
                save_state(node.records, state)
            if now >= trash_check_at:
                trash_check_at = now + _TRASH_INTERVAL_S
                drop_old_trash(self._config, node.plan.site, node.records)

    @contextlib.contextmanager
    def _watch_vault(self, node: Node) -> Iterator[None]:
        """Pass changes of the vault to the node, unless it only pulls."""
        if self._options.direction is Direction.PULL:
            yield
            return
        root, debounce_s = node.plan.site.root, self._config.settings.livesync.debounce_s
        with self._watch(root, debounce_s, node.changed) as is_watched:
            self._is_watched = is_watched
            # Earlier changes are found by the node's first scan.
            if is_watched(_WATCHER_START_TIMEOUT_S):
                _log.info("Watching %s", root)
            yield


def _log_not_synced(now: tuple[LeftOut, ...], before: tuple[LeftOut, ...]) -> None:
    for one in now:
        if one not in before:
            more = f" and {one.count - len(one.paths)} more" if one.count > len(one.paths) else ""
            what = "Synced, but" if one.kind is Kind.ELSEWHERE else "Not synced"
            _log.warning("%s: %s: %s%s", what, one.reason, ", ".join(one.paths), more)


def run_until_stopped(
    config: Config,
    stop: threading.Event,
    options: Options | None = None,
    listener: Listener = lambda _what, _done, _total: None,
) -> None:
    """Run a node in the foreground, with its own watcher.

    Raises:
        ObsidianRagError: only the user can help, or the node cannot be opened.
    """
    while not stop.is_set():
        RunningNode(config, watch_files, options, listener).run(stop)


class LivesyncLoop:
    """The daemon's node: reports what stops it, and retries later or on request."""

    def __init__(self, config: Config, watch: Watch, report: OnTrouble) -> None:
        self._config = config
        self._watch = watch
        self._publish = report
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._node: RunningNode | None = None
        self._trouble: ObsidianRagError | None = None
        self._tried_at = 0.0

    def run(self, stop: threading.Event) -> None:
        """Sync until `stop` is set and `wake` was called; never raises."""
        logging.getLogger("obsidian_rag.livesync").setLevel(
            self._config.settings.livesync.logLevel.upper()
        )
        while not stop.is_set():
            self._woken.clear()
            self._tried_at = time.monotonic()
            self._try(stop)
            if not stop.is_set() and self._trouble is not None:
                is_passing = isinstance(self._trouble, _TRANSIENT)
                self._woken.wait(_RETRY_SOON_S if is_passing else _RETRY_S)
                stop.wait(max(0.0, self._tried_at + _MIN_RETRY_INTERVAL_S - time.monotonic()))

    def look_soon(self) -> None:
        """Retry soon if the node has stopped: the cause may be gone."""
        if self._node is None and self._trouble is not None:
            self._woken.set()

    def wake(self) -> None:
        """Make `run` check its `stop` event now."""
        self._woken.set()

    @property
    def state(self) -> LivesyncState:
        """The node's current state, with the last trouble until it connects again."""
        node = self._node
        state = node.state if node is not None else LivesyncState()
        # A retry that has not connected yet does not clear the trouble.
        is_well = state.is_connected or state.trouble is not None
        return state if is_well else replace(state, trouble=self._trouble)

    def _try(self, stop: threading.Event) -> None:
        self._node = node = RunningNode(self._config, self._watch, report=self._report)
        trouble: ObsidianRagError | None = None
        try:
            node.run(stop)
        except ObsidianRagError as error:
            _log.warning("LiveSync has stopped: %s", error.message)
            trouble = error
        except Exception as error:  # noqa: BLE001  (a background loop: the next try may succeed)
            _log.exception("LiveSync failed")
            trouble = IndexerFailed(
                f"LiveSync stopped unexpectedly ({type(error).__name__}).",
                "It is retried automatically; logs/daemon.log has the details to report.",
            )
        finally:
            self._node = None
        if trouble is not None:
            self._report(trouble)

    def _report(self, trouble: ObsidianRagError | None) -> None:
        with self._lock:
            is_news = (trouble and trouble.body) != (self._trouble and self._trouble.body)
            self._trouble = trouble
        if is_news:
            self._publish(trouble)
