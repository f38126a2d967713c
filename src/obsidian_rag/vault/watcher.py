"""Watches a vault and tells which paths have changed, once they are quiet.

A vault may go away: its disk is pulled out, its folder is renamed or replaced. Then nothing is
told, least of all that its notes are gone; when it is back, everything is to be looked at.
"""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from obsidian_rag.vault.changeset import Collector
from obsidian_rag.vault.fs_events import Changed, FsEvents
from obsidian_rag.vault.rules import Rules
from obsidian_rag.vault.scan import RootIdentity, root_identity

_log = logging.getLogger(__name__)
# How often it looks for events, each time at some cost: often enough beside what listeners wait.
_SHORTEST_STEP_S = 0.05
_LONGEST_STEP_S = 0.25
_STEPS_PER_WAIT = 20
_ROOT_EVERY_S = 1.0
# After a failure the next try waits, each time twice as long; a good while forgives them all.
_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_GOOD_WHILE_S = 300.0
_JOIN_S = 5.0
_WATCHES = (
    "There are more folders than the system may watch. On Linux this raises the limit: "
    "`sudo sysctl fs.inotify.max_user_watches=524288`; then start again."
)
_INSTANCES = (
    "Too many files are open or watched by programs of this user. On Linux this raises the limit: "
    "`sudo sysctl fs.inotify.max_user_instances=512`, or `ulimit -n 4096`; then start again."
)

# Paths that changed and are quiet now; None means "look at everything".
OnChange = Callable[[frozenset[str] | None], None]
_ALL_FILES = Rules(file_patterns=("*",))


@dataclass(frozen=True, slots=True)
class Listener:
    """A part that is told of changes: of which files, and how long after the last of them."""

    changed: OnChange
    rules: Rules = _ALL_FILES
    debounce_s: float = 0.0
    collect_s: float = 0.0

    def hears_of(self, path: str, *, is_folder: bool) -> bool:
        """Whether a path matters to it."""
        return self.rules.admits_dir(path) if is_folder else self.rules.admits_file(path)


class Watcher:
    """Runs until told to stop, and tells its listeners what has changed.

    `ready` is set while events are received: a change after that will be told. To miss nothing,
    wait for it and then look at everything once. `trouble` says in words what keeps the vault from
    being watched, or from being watched well.
    """

    def __init__(self, root: Path, *listeners: Listener) -> None:
        self.ready = threading.Event()
        self.trouble: str | None = None
        self._root = root
        self._listeners = listeners
        # Wide enough for all of them.
        distinct = {listener.rules for listener in listeners}
        self._rules = distinct.pop() if len(distinct) == 1 else _ALL_FILES
        soonest = min((listener.debounce_s for listener in listeners), default=0.0)
        self._step_s = min(_LONGEST_STEP_S, max(_SHORTEST_STEP_S, soonest / _STEPS_PER_WAIT))
        self._pause_s = _PAUSE_S
        self._unreadable: set[str] = set()

    @property
    def is_watching(self) -> bool:
        """Whether events are being received right now."""
        return self.ready.is_set()

    def run(self, stop: threading.Event, *, is_behind: bool = False) -> None:
        """Watch until `stop` is set; survives a vault that goes away and comes back.

        The starter looks at everything once; with `is_behind` the listeners are told when to.
        """
        while not stop.is_set():
            identity = root_identity(self._root)
            events = self._open() if identity else None
            if identity is None:
                self._tell(f"The vault {self._root} is not there; it is watched when it is back.")
                stop.wait(_ROOT_EVERY_S)
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
                self._tell(f"The vault was not watched for a moment ({error}).")
                self.ready.clear()
                if time.monotonic() - began > _GOOD_WHILE_S:
                    self._pause_s = _PAUSE_S
                stop.wait(self._next_pause())
            finally:
                self.ready.clear()

    def _follow(self, events: FsEvents, identity: RootIdentity, stop: threading.Event) -> None:
        """Tell changes until the events, or the folder they come from, are no good any more."""
        waiting = [(one, Collector(one.debounce_s, one.collect_s)) for one in self._listeners]
        look_at_root = 0.0
        now = time.monotonic()
        while not stop.wait(self._until(now, (collector.next_due() for _, collector in waiting))):
            now = time.monotonic()
            _collect(events.take(), waiting, now)
            due = [(one, found) for one, collector in waiting if (found := collector.due(now))]
            # Before anything is told: without its disk a vault looks like one without notes.
            if due or events.is_root_gone or now >= look_at_root:
                if events.is_root_gone or root_identity(self._root) != identity:
                    return
                look_at_root = now + _ROOT_EVERY_S
            for listener, changeset in due:
                listener.changed(changeset.paths)
            # Not in the middle of a burst, which would wear out the next one just as fast.
            is_quiet = all(collector.next_due() is None for _, collector in waiting)
            if events.is_worn and (due or is_quiet):
                return

    def _until(self, now: float, due: Iterable[float | None]) -> float:
        return min([self._step_s, *(max(0.0, at - now) for at in due if at is not None)])

    def _open(self) -> FsEvents | None:
        root = os.path.realpath(self._root)
        events: FsEvents | None = None
        try:
            events = FsEvents(root, self._rules)
            self._tell(None)
        except (OSError, RuntimeError) as error:
            if isinstance(error, FileNotFoundError):
                self._tell(f"The vault {self._root} cannot be watched ({error}).")
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
            self._tell(f"The vault {self._root} cannot be watched. {why} ({error})")
            return None
        every = round((events.poll_ms or 0) / 1000)
        self._tell(f"Changes are looked for every {every} s instead of being reported. {why}")
        return events

    def _tell(self, trouble: str | None) -> None:
        is_news = trouble != self.trouble
        self.trouble = trouble
        if trouble and is_news:
            _log.warning("%s", trouble)

    def _next_pause(self) -> float:
        pause, self._pause_s = self._pause_s, min(2 * self._pause_s, _LONGEST_PAUSE_S)
        return pause


@contextlib.contextmanager
def watch_files(
    root: Path, debounce_s: float, changed: OnChange
) -> Iterator[Callable[[float], bool]]:
    """Watch every file below a folder, in a thread of its own, while the context is open.

    What it gives waits so many seconds for events to be received, and tells whether they are.
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


def _collect(changed: Changed, waiting: list[tuple[Listener, Collector]], now: float) -> None:
    for listener, collector in waiting:
        for path in changed.files:
            if listener.hears_of(path, is_folder=False):
                collector.add(path, now)
        for path in changed.folders:
            if listener.hears_of(path, is_folder=True):
                collector.add(path, now)


def _advice(error: Exception) -> str:
    text = str(error)
    if "watch limit" in text or "No space left" in text:
        return _WATCHES
    if "Too many open files" in text:
        return _INSTANCES
    return f"The reason: {text}."
