"""A node at work: fed by a watcher, looked at by a pulse, and started again when it can be.

Threads: the node works in the thread that calls `run`; the watcher has one and only leaves
messages; the pulse has one, reads the node's counts, and is the only one that tells how it goes.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from obsidian_rag.config import Config, WatcherSettings
from obsidian_rag.engine.livesync_site import Wish
from obsidian_rag.engine.livesync_state import LivesyncState, leave_word
from obsidian_rag.engine.livesyncing import OpenNode, drop_old_trash, open_node
from obsidian_rag.engine.watcher import Watcher
from obsidian_rag.errors import Busy, IndexerFailed, LivesyncBrake, ObsidianRagError
from obsidian_rag.livesync import Direction, LeftOut, Listener
from obsidian_rag.store import file_identity
from obsidian_rag.vault import Rules

# Under the room's own name: what the node says and what is said about it are one log.
_log = logging.getLogger("obsidian_rag.livesync")
_PULSE_S = 0.25
_WORD_EVERY_S = 5.0
_TRASH_EVERY_S = 3600.0
_WATCHER_PATIENCE_S = 10.0
_JOIN_S = 5.0
_RETRY_S = 300.0
# What may be over without anybody having said so: a disk that is back, another process that ended.
_RETRY_SOON_S = 60.0
_PASSING = (Busy, IndexerFailed, LivesyncBrake)
# Somebody who asks again and again must not make us try as often.
_TRIES_APART_S = 5.0

Tell = Callable[[ObsidianRagError | None], None]


class Session:
    """One node from its start to its end."""

    def __init__(
        self,
        config: Config,
        wish: Wish | None = None,
        listener: Listener = lambda _what, _done, _total: None,
        tell: Tell = lambda _trouble: None,
    ) -> None:
        """`tell` hears of each trouble, and None once the node is connected again."""
        self._config = config
        self._wish = wish or Wish()
        self._listener = listener
        self._tell = tell
        self._opened: OpenNode | None = None
        self._watcher: Watcher | None = None
        self._progress: tuple[str, int, int] | None = None
        self._trouble: ObsidianRagError | None = None

    def run(self, stop: threading.Event) -> None:
        """Sync until `stop`; ends early, without a failure, when state.db was replaced.

        Raises:
            ObsidianRagError: only the user can help, or there is no node to be had.
        """
        with open_node(self._config, self._wish) as opened:
            self._opened = opened
            ended = threading.Event()
            try:
                with self._beating(opened, stop, ended), self._watching(opened, ended):
                    opened.node.run(ended, self._heard)
            except ObsidianRagError as error:
                self._trouble = error
                raise
            finally:
                self._opened = None
                leave_word(opened.records, self._state_of(opened, is_running=False))

    @property
    def state(self) -> LivesyncState:
        """How it goes right now."""
        opened = self._opened
        return self._state_of(opened, is_running=True) if opened else LivesyncState()

    def _state_of(self, opened: OpenNode, *, is_running: bool) -> LivesyncState:
        stats, watcher = opened.node.stats, self._watcher
        return LivesyncState(
            is_running=is_running,
            is_watching=is_running and watcher is not None and watcher.is_watching,
            is_connected=is_running and stats.is_connected,
            counts=stats.fields(),
            lag=self._lag(opened) if is_running else None,
            progress=self._progress if is_running else None,
            trouble=stats.trouble or stats.brake or self._trouble,
        )

    def _lag(self, opened: OpenNode) -> int | None:
        if self._progress is not None:
            _, done, total = self._progress
            return max(0, total - done) if total else None
        return opened.node.arrived if opened.node.stats.is_connected else None

    def _heard(self, what: str, done: int, total: int) -> None:
        self._progress = (what, done, total)
        self._listener(what, done, total)

    @contextlib.contextmanager
    def _beating(
        self, opened: OpenNode, stop: threading.Event, ended: threading.Event
    ) -> Iterator[None]:
        over = threading.Event()
        pulse = threading.Thread(
            target=self._beat, args=(opened, stop, ended, over), name="livesync pulse", daemon=True
        )
        pulse.start()
        try:
            yield
        finally:
            over.set()
            pulse.join(_JOIN_S)

    def _beat(
        self,
        opened: OpenNode,
        stop: threading.Event,
        ended: threading.Event,
        over: threading.Event,
    ) -> None:
        identity = file_identity(self._config.database)
        word_at, trash_at = 0.0, time.monotonic() + _TRASH_EVERY_S
        told = LivesyncState()
        left_out: tuple[LeftOut, ...] = ()
        while not over.wait(_PULSE_S):
            if stop.is_set() or file_identity(self._config.database) != identity:
                ended.set()
            stats, now = opened.node.stats, time.monotonic()
            if stats.is_connected and self._progress is not None:
                self._progress = None
                _log.info("In sync: %d files, following changes", opened.records.count())
            if stats.is_connected and stats.not_synced != left_out:
                _say_not_synced(stats.not_synced, left_out)
                left_out = stats.not_synced
            if stats.trouble is not None or stats.is_connected:
                self._tell(stats.trouble or stats.brake)
            state = self._state_of(opened, is_running=True)
            is_due = now >= word_at or state.is_connected != told.is_connected
            if is_due and state != told:
                word_at, told = now + _WORD_EVERY_S, state
                leave_word(opened.records, state)
            if now >= trash_at:
                trash_at = now + _TRASH_EVERY_S
                drop_old_trash(self._config, opened.records)

    @contextlib.contextmanager
    def _watching(self, opened: OpenNode, ended: threading.Event) -> Iterator[None]:
        """Tell the node what happens in the vault; one that only takes changes need not know."""
        if self._wish.direction is Direction.PULL:
            yield
            return
        over = threading.Event()
        self._watcher = watcher = Watcher(
            opened.site.root,
            Rules(file_patterns=("*",)),
            WatcherSettings(debounce_s=self._config.settings.livesync.debounce_s, collect_s=0),
            lambda _paths: opened.node.changed(),
        )
        thread = threading.Thread(
            target=watcher.run, args=(over,), name="livesync watcher", daemon=True
        )
        thread.start()
        try:
            # What changes before it watches is found by the node's first look.
            if watcher.ready.wait(_WATCHER_PATIENCE_S):
                _log.info("Watching %s", opened.site.root)
            yield
        finally:
            over.set()
            thread.join(_JOIN_S)


def _say_not_synced(now: tuple[LeftOut, ...], before: tuple[LeftOut, ...]) -> None:
    for one in now:
        if one not in before:
            more = f" and {one.count - len(one.paths)} more" if one.count > len(one.paths) else ""
            what = "Synced, but" if one.kind == "elsewhere" else "Not synced"
            _log.warning("%s: %s: %s%s", what, one.reason, ", ".join(one.paths), more)


def run_livesync(
    config: Config,
    stop: threading.Event,
    wish: Wish | None = None,
    listener: Listener = lambda _what, _done, _total: None,
) -> None:
    """Be a node in the foreground until `stop`.

    Raises:
        ObsidianRagError: only the user can help, or there is no node to be had.
    """
    while not stop.is_set():
        Session(config, wish, listener).run(stop)


class LivesyncLoop:
    """The daemon's node: whatever stops it is told, and tried again later or when asked."""

    def __init__(self, config: Config, tell: Tell) -> None:
        self._config = config
        self._tell_health = tell
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._session: Session | None = None
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
                is_passing = isinstance(self._trouble, _PASSING)
                self._woken.wait(_RETRY_SOON_S if is_passing else _RETRY_S)
                stop.wait(max(0.0, self._tried_at + _TRIES_APART_S - time.monotonic()))

    def look_soon(self) -> None:
        """What stopped the node may be over."""
        if self._session is None and self._trouble is not None:
            self._woken.set()

    def wake(self) -> None:
        """Make `run` notice that it shall stop."""
        self._woken.set()

    @property
    def state(self) -> LivesyncState:
        """How the node is doing."""
        session = self._session
        state = session.state if session is not None else LivesyncState()
        # A new try heals nothing before it has come through.
        is_well = state.is_connected or state.trouble is not None
        return state if is_well else replace(state, trouble=self._trouble)

    def _try(self, stop: threading.Event) -> None:
        session = Session(self._config, tell=self._tell)
        self._session = session
        trouble: ObsidianRagError | None = None
        try:
            session.run(stop)
        except ObsidianRagError as error:
            _log.warning("LiveSync has stopped: %s", error.message)
            trouble = error
        except Exception as error:  # noqa: BLE001  (a background loop: the next round may do better)
            _log.exception("LiveSync stumbled")
            trouble = IndexerFailed(
                f"LiveSync stopped unexpectedly ({type(error).__name__}).",
                "It is tried again by itself; logs/daemon.log has the details to report.",
            )
        finally:
            self._session = None
        if trouble is not None:
            self._tell(trouble)

    def _tell(self, trouble: ObsidianRagError | None) -> None:
        with self._lock:
            is_news = (trouble and trouble.body) != (self._trouble and self._trouble.body)
            self._trouble = trouble
        if is_news:
            self._tell_health(trouble)
