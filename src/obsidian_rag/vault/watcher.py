"""Watches a vault and reports changed paths after a debounce time.

A vault may disappear: its disk is removed, its folder is renamed or replaced. Then nothing is
reported, least of all that its notes are gone; when it is back, a full scan is requested.
"""

import contextlib
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from obsidian_rag.vault.fs_events import Changed, FsEvents
from obsidian_rag.vault.rules import EVERY_FILE, Rules
from obsidian_rag.vault.scan import RootIdentity, root_identity

# A path that keeps changing, such as a log, is reported after this many debounce times.
PATIENCE = 15
# Above this, one walk is cheaper, and the system may have dropped some events.
MOST_PATHS = 1000
_log = logging.getLogger(__name__)
# How often events are polled: at some cost, but often compared to the debounce of the listeners.
_MIN_STEP_S = 0.05
_MAX_STEP_S = 0.25
_STEPS_PER_DEBOUNCE = 20
_ROOT_CHECK_INTERVAL_S = 1.0
# After a failure the pause before the next try doubles, and is reset after watching this long.
_FIRST_PAUSE_S = 1.0
_MAX_PAUSE_S = 60.0
_PAUSE_RESET_S = 300.0
_JOIN_S = 5.0
_RAISE_WATCH_LIMIT = (
    "There are more folders than the system can watch. On Linux this raises the limit: "
    "`sudo sysctl fs.inotify.max_user_watches=524288`; then restart obsidian-rag."
)
_RAISE_INSTANCE_LIMIT = (
    "Too many files are open or watched by programs of this user. On Linux this raises the limit: "
    "`sudo sysctl fs.inotify.max_user_instances=512`, or `ulimit -n 4096`; then restart"
    " obsidian-rag."
)
# Paths that changed and are quiet now; None means "scan everything".
OnChange = Callable[[frozenset[str] | None], None]


@dataclass(frozen=True, slots=True)
class Changeset:
    """Paths that changed; None means too many to list: scan everything."""

    paths: frozenset[str] | None


class _Burst(NamedTuple):
    first: float
    last: float


class Collector:
    """Debounces changed paths; times are monotonic seconds."""

    def __init__(self, debounce_s: float, collect_s: float) -> None:
        self._debounce = debounce_s
        self._collect = collect_s
        # The key None stands for everything; once it is there, no other path is added.
        self._pending: dict[str | None, _Burst] = {}
        self._closes_at: float | None = None
        self._quiet_not_before = -math.inf

    def add(self, path: str, now: float) -> None:
        """Record a change of `path`."""
        self._open_window(now)
        key = None if None in self._pending else path
        before = self._pending.get(key)
        self._pending[key] = _Burst(before.first if before else now, now)
        if len(self._pending) > MOST_PATHS:
            first = min(burst.first for burst in self._pending.values())
            self._pending = {None: _Burst(first, now)}

    def due(self, now: float) -> Changeset | None:
        """Remove and return the changes that are due now, if any."""
        self._open_window(now)
        if self._closes_at is None or now < self._closes_at:
            return None
        self._closes_at = None
        self._quiet_not_before = now
        quiet = {key for key, burst in self._pending.items() if self._quiet_at(burst) <= now}
        for key in quiet:
            del self._pending[key]
        if not quiet:
            return None
        return Changeset(
            None if None in quiet else frozenset(key for key in quiet if key is not None)
        )

    def next_due(self) -> float | None:
        """When the next change will be due if none is added; None if nothing is pending."""
        if not self._pending:
            return None
        if self._closes_at is not None:
            return self._closes_at
        return self._first_quiet() + self._collect

    def _open_window(self, now: float) -> None:
        # Adding paths can only delay the moment when the first is quiet, so most calls need not
        # check all of them.
        if self._closes_at is None and self._pending and now >= self._quiet_not_before:
            first_quiet = self._first_quiet()
            self._quiet_not_before = first_quiet
            if first_quiet <= now:
                self._closes_at = first_quiet + self._collect

    def _first_quiet(self) -> float:
        return min(self._quiet_at(burst) for burst in self._pending.values())

    def _quiet_at(self, burst: _Burst) -> float:
        return min(burst.last + self._debounce, burst.first + PATIENCE * self._debounce)


@dataclass(frozen=True, slots=True)
class Listener:
    """A callback for changes, with the files it covers and its debounce times."""

    changed: OnChange
    rules: Rules = EVERY_FILE
    debounce_s: float = 0.0
    collect_s: float = 0.0

    def covers(self, path: str, *, is_folder: bool) -> bool:
        """Whether this listener covers a path."""
        return self.rules.admits_dir(path) if is_folder else self.rules.admits_file(path)


class Watcher:
    """Watches a vault until stopped, and calls its listeners with what has changed.

    `ready` is set while events are received: a later change will be reported. To miss nothing, wait
    for it and then scan everything once. `trouble` is a message if the vault cannot be watched, or
    only by polling.
    """

    def __init__(self, root: Path, *listeners: Listener) -> None:
        self.ready = threading.Event()
        self.trouble: str | None = None
        self._root = root
        self._listeners = listeners
        # Wide enough for all listeners.
        distinct = {listener.rules for listener in listeners}
        self._rules = distinct.pop() if len(distinct) == 1 else EVERY_FILE
        soonest = min((listener.debounce_s for listener in listeners), default=0.0)
        self._step_s = min(_MAX_STEP_S, max(_MIN_STEP_S, soonest / _STEPS_PER_DEBOUNCE))
        self._pause_s = _FIRST_PAUSE_S
        self._unreadable: set[str] = set()

    @property
    def is_watching(self) -> bool:
        """Whether events are being received right now."""
        return self.ready.is_set()

    def run(self, stop: threading.Event, *, is_behind: bool = False) -> None:
        """Watch until `stop` is set, also if the vault disappears and comes back.

        The caller scans everything once; with `is_behind` the listeners are called with None for
        that.
        """
        while not stop.is_set():
            identity = root_identity(self._root)
            events = self._open() if identity else None
            if identity is None:
                self._set_trouble(
                    f"The vault {self._root} is not there; watching resumes when it is back."
                )
                stop.wait(_ROOT_CHECK_INTERVAL_S)
            elif events is None:
                stop.wait(self._next_pause())
            else:
                self._watch(events, identity, stop, is_behind=is_behind)
            is_behind = True

    def _watch(
        self, events: FsEvents, identity: RootIdentity, stop: threading.Event, *, is_behind: bool
    ) -> None:
        began = time.monotonic()
        with contextlib.closing(events):
            self.ready.set()
            try:
                if is_behind:
                    for listener in self._listeners:
                        listener.changed(None)
                self._follow(events, identity, stop)
            except (OSError, RuntimeError) as error:
                self._set_trouble(f"Watching the vault was interrupted ({error}).")
                self.ready.clear()
                if time.monotonic() - began > _PAUSE_RESET_S:
                    self._pause_s = _FIRST_PAUSE_S
                stop.wait(self._next_pause())
            finally:
                self.ready.clear()

    def _follow(self, events: FsEvents, identity: RootIdentity, stop: threading.Event) -> None:
        """Report changes until the events or their folder have to be opened again."""
        waiting = [(one, Collector(one.debounce_s, one.collect_s)) for one in self._listeners]
        look_at_root = 0.0
        now = time.monotonic()
        while not stop.wait(
            self._step_until(now, (collector.next_due() for _, collector in waiting))
        ):
            now = time.monotonic()
            _collect_changes(events.take(), waiting, now)
            due = [(one, found) for one, collector in waiting if (found := collector.due(now))]
            # Check before reporting: without its disk a vault looks like one without notes.
            if due or events.is_root_gone or now >= look_at_root:
                if events.is_root_gone or root_identity(self._root) != identity:
                    return
                look_at_root = now + _ROOT_CHECK_INTERVAL_S
            for listener, changeset in due:
                listener.changed(changeset.paths)
            # Not during a burst, which would use up the new events just as fast.
            is_quiet = all(collector.next_due() is None for _, collector in waiting)
            if events.is_worn and (due or is_quiet):
                return

    def _step_until(self, now: float, due: Iterable[float | None]) -> float:
        return min([self._step_s, *(max(0.0, at - now) for at in due if at is not None)])

    def _open(self) -> FsEvents | None:
        root = os.path.realpath(self._root)
        events: FsEvents | None = None
        try:
            events = FsEvents(root, self._rules)
            self._set_trouble(None)
        except (OSError, RuntimeError) as error:
            if isinstance(error, FileNotFoundError):
                self._set_trouble(f"The vault {self._root} cannot be watched ({error}).")
                return None
            events = self._open_polling(root, _advice(error))
        if events and events.unreadable - self._unreadable:
            self._unreadable |= events.unreadable
            _log.warning(
                "%d folders cannot be read and are not watched, such as %s",
                len(events.unreadable),
                min(events.unreadable),
            )
        return events

    def _open_polling(self, root: str, why: str) -> FsEvents | None:
        try:
            events = FsEvents(root, self._rules, is_polling=True)
        except (OSError, RuntimeError) as error:
            self._set_trouble(f"The vault {self._root} cannot be watched. {why} ({error})")
            return None
        every = round((events.poll_ms or 0) / 1000)
        self._set_trouble(f"The vault is polled for changes every {every} s. {why}")
        return events

    def _set_trouble(self, trouble: str | None) -> None:
        is_news = trouble != self.trouble
        self.trouble = trouble
        if trouble and is_news:
            _log.warning("%s", trouble)

    def _next_pause(self) -> float:
        pause, self._pause_s = self._pause_s, min(2 * self._pause_s, _MAX_PAUSE_S)
        return pause


@contextlib.contextmanager
def watch_files(
    root: Path, debounce_s: float, changed: OnChange
) -> Iterator[Callable[[float], bool]]:
    """Watch every file below a folder, in a separate thread, while the context is open.

    Yields a function that waits up to the given seconds for the watcher to be ready, and returns
    whether it is.
    """
    watcher = Watcher(root, Listener(changed, debounce_s=debounce_s))
    over = threading.Event()
    thread = threading.Thread(target=watcher.run, args=(over,), name="file watcher", daemon=True)
    thread.start()
    try:
        yield watcher.ready.wait
    finally:
        over.set()
        thread.join(_JOIN_S)


def _collect_changes(
    changed: Changed, waiting: list[tuple[Listener, Collector]], now: float
) -> None:
    for listener, collector in waiting:
        for path in changed.files:
            if listener.covers(path, is_folder=False):
                collector.add(path, now)
        for path in changed.folders:
            if listener.covers(path, is_folder=True):
                collector.add(path, now)


def _advice(error: Exception) -> str:
    text = str(error)
    if "watch limit" in text or "No space left" in text:
        return _RAISE_WATCH_LIMIT
    if "Too many open files" in text:
        return _RAISE_INSTANCE_LIMIT
    return f"The reason: {text}."
