"""A node of a LiveSync network: joins, catches up, and then follows both sides until stopped.

Threads: `run` and `sync_once` do all the work in their caller's thread; `changed` and the feed's
thread only leave messages. The place in the feed is remembered when what came before is durable.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from obsidian_rag.errors import (
    LivesyncBrake,
    LivesyncRefused,
    LivesyncUnreachable,
    ObsidianRagError,
)
from obsidian_rag.livesync.couch import Change, Couch
from obsidian_rag.livesync.decision import brake
from obsidian_rag.livesync.disk import Disk
from obsidian_rag.livesync.feed import Backoff
from obsidian_rag.livesync.joining import Access, join, refresh
from obsidian_rag.livesync.path_ids import is_file_id
from obsidian_rag.livesync.settling import Direction, Manner, Settler
from obsidian_rag.livesync.stats import Stats
from obsidian_rag.store import LivesyncRecords

_log = logging.getLogger(__name__)
_SINCE = "since"
_PAGE = 1000
_REFRESH_S = 60.0
_OWED_S = 15.0
_RESCAN_S = 600.0
_MB = 1_000_000
_MOST_AT_ONCE = 500
_PATIENCE_S = 0.5

Listener = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a node syncs, and how carefully."""

    root: Path
    access: Access
    manner: Manner
    max_deleted_percent: float = 20.0
    is_read_only: bool = False


class Node:
    """One vault and one database; `stats` tells how it goes."""

    def __init__(self, plan: Plan, couch: Couch, records: LivesyncRecords) -> None:
        self.plan = plan
        self.stats = Stats()
        self._couch = couch
        self._records = records
        self._inbox: queue.SimpleQueue[Change | None | ObsidianRagError] = queue.SimpleQueue()
        self._look_at_disk = threading.Event()

    def changed(self) -> None:
        """Something happened in the vault."""
        self._look_at_disk.set()
        self._inbox.put(None)

    @property
    def arrived(self) -> int:
        """How many messages wait to be taken in."""
        return self._inbox.qsize()

    def sync_once(
        self,
        listener: Listener = lambda _what, _done, _total: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Settler:
        """Join, make both sides agree once, and leave.

        Raises:
            LivesyncBrake: so many files are gone that somebody must be asked.
            ObsidianRagError: we may not take part, or the server went away; all is as it was,
                or further.
        """
        settler = self._join()
        self._catch_up(settler, listener, stop)
        return settler

    def run(
        self, stop: threading.Event, listener: Listener = lambda _what, _done, _total: None
    ) -> None:
        """Sync until `stop`; a server that goes away is waited for.

        Raises:
            LivesyncBrake, LivesyncLocked, LivesyncIncompatible, LivesyncPassphrase,
            LivesyncRefused: only the user can help.
        """
        backoff = Backoff()
        self.stats.is_running = True
        try:
            while not stop.is_set():
                try:
                    settler = self._join()
                    self._catch_up(settler, listener, stop.is_set)
                    self._connected(True)
                    backoff.reset()
                    self._follow(settler, stop)
                except LivesyncUnreachable as error:
                    self._connected(False, error)
                    stop.wait(backoff.pause_s())
        except ObsidianRagError as error:
            self.stats.trouble = error
            raise
        finally:
            self.stats.is_running = self.stats.is_connected = False

    def _join(self) -> Settler:
        plan = self.plan
        is_read_only = plan.is_read_only or plan.manner.direction is Direction.PULL
        member = join(
            self._couch,
            self._records,
            plan.access,
            is_read_only=is_read_only or plan.manner.is_dry,
        )
        disk = Disk(plan.root, member.codec, member.tweaks.sync_max_size_in_mb * _MB)
        return Settler(self._couch, self._records, member, disk, plan.manner, self.stats)

    def _catch_up(self, settler: Settler, listener: Listener, stop: Callable[[], bool]) -> None:
        """Compare everything that changed on either side since the last time."""
        wanted = dict.fromkeys(self._changed_here(settler))
        since = self._records.get_fact(_SINCE) or "0"
        seen = since
        while not stop():
            page = self._couch.changes(seen, limit=_PAGE)
            wanted.update((row.id, None) for row in page.rows if is_file_id(row.id))
            seen = page.last_seq
            listener("changes", len(wanted), 0)
            if page.is_last:
                break
        wanted.update((one.doc_id, None) for one in self._records.quarantined())
        wanted.update((one.doc_id, None) for one in self._records.conflicts())
        settler.settle(wanted, lambda done, total: listener("files", done, total), stop)
        if settler.owed and not stop() and not self.plan.manner.is_dry:
            settler.settle(sorted(settler.owed))
        if not stop() and not self.plan.manner.is_dry:
            self._reached(seen, settler)

    def _changed_here(self, settler: Settler) -> list[str]:
        """Walk the vault: files that are new, changed or gone."""
        walk = settler.disk.look()
        known = {file.doc_id: file for file in self._records.files()}
        live = [file for file in known.values() if file.content_hash is not None]
        missing = [
            file
            for file in live
            if settler.disk.entry(file.doc_id) is None and not settler.disk.may_hide(file.path)
        ]
        may_delete = not (settler.member.is_read_only or self.plan.is_read_only)
        if may_delete and self.plan.manner.direction is not Direction.PULL:
            is_there = walk.has_root and not walk.is_empty
            brake(len(live), len(missing), is_there, self.plan.max_deleted_percent)
        elif live and not walk.has_root:
            brake(len(live), len(live), False, self.plan.max_deleted_percent)
        changed = [
            doc_id
            for doc_id in settler.disk.ids()
            if not settler.disk.is_as_recorded(doc_id, known.get(doc_id), with_path=True)
        ]
        return [*changed, *(file.doc_id for file in missing)]

    def _follow(self, settler: Settler, stop: threading.Event) -> None:
        """Take changes as they come, from both sides."""
        ended = threading.Event()
        feed = threading.Thread(
            target=self._listen,
            args=(self.stats.last_seq, ended),
            name="livesync feed",
            daemon=True,
        )
        feed.start()
        refresh_at = time.monotonic() + _REFRESH_S
        owed_at = time.monotonic() + _OWED_S
        rescan_at = time.monotonic() + _RESCAN_S
        try:
            while not stop.is_set():
                rows = self._gathered()
                now = time.monotonic()
                if now >= rescan_at:
                    self._look_at_disk.set()
                    rescan_at = now + _RESCAN_S
                ids = [row.id for row in rows if is_file_id(row.id)]
                if self._look_at_disk.is_set():
                    self._look_at_disk.clear()
                    ids += self._changed_here(settler)
                if now >= owed_at:
                    ids += sorted(settler.owed)
                    owed_at = now + _OWED_S
                if ids:
                    settler.settle(ids)
                if rows:
                    self._reached(rows[-1].seq, settler)
                if now >= refresh_at:
                    refresh(self._couch, self._records, self.plan.access, settler.member)
                    refresh_at = now + _REFRESH_S
        finally:
            ended.set()
            feed.join()

    def _gathered(self) -> list[Change]:
        """What has arrived: waits a moment for the first, then takes what is there."""
        rows: list[Change] = []
        try:
            item = self._inbox.get(timeout=_PATIENCE_S)
            while True:
                if isinstance(item, ObsidianRagError):
                    raise item
                if item is not None:
                    rows.append(item)
                if len(rows) >= _MOST_AT_ONCE:
                    break
                item = self._inbox.get_nowait()
        except queue.Empty:
            pass
        return rows

    def _listen(self, since: str, ended: threading.Event) -> None:
        def report(trouble: LivesyncUnreachable | None) -> None:
            self._connected(trouble is None, trouble)

        try:
            for row in self._couch.follow(since, ended, report):
                if row is not None:
                    self._inbox.put(row)
        except (LivesyncRefused, LivesyncBrake) as error:
            self._inbox.put(error)

    def _reached(self, seq: str, settler: Settler) -> None:
        """What came up to here is done, or written down as owed."""
        self._records.put_fact(_SINCE, seq)
        self.stats.last_seq = seq
        self.stats.waiting = len(settler.owed)
        self.stats.conflicts = len(self._records.conflicts())

    def _connected(self, is_connected: bool, trouble: ObsidianRagError | None = None) -> None:
        if trouble is not None and self.stats.trouble is None:
            _log.warning("%s", trouble.message)
        self.stats.is_connected = is_connected
        self.stats.trouble = trouble


def forget_place(records: LivesyncRecords) -> None:
    """Look at every document again the next time."""
    records.put_fact(_SINCE, None)
