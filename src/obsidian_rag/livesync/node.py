"""A node of a LiveSync network: joins, catches up, and then follows both sides until stopped.

Threads: `run` and `sync_once` do all the work in their caller's thread; `changed` and the feed's
thread only queue messages. The position in the feed is saved once everything before it is durable.
"""

import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from obsidian_rag.errors import LivesyncUnreachable, ObsidianRagError
from obsidian_rag.livesync.codec.path_ids import is_file_id
from obsidian_rag.livesync.couchdb import Change, Couch
from obsidian_rag.livesync.couchdb.feed import Backoff
from obsidian_rag.livesync.disk import Disk, Trash
from obsidian_rag.livesync.filters import Filters, FilterSettings
from obsidian_rag.livesync.membership import Rebuilt, check, join, refresh
from obsidian_rag.livesync.milestone import VERSION_ID
from obsidian_rag.livesync.reconcile import Reconciler
from obsidian_rag.livesync.remote_view import RemoteReader
from obsidian_rag.livesync.site import Direction, Site
from obsidian_rag.livesync.status import Kind, LivesyncState
from obsidian_rag.livesync.sync import Policy, Sync
from obsidian_rag.store import LivesyncRecords

_log = logging.getLogger(__name__)
_SINCE = "since"
_OWED = "owed"
_CHANGES_PER_PAGE = 1000
_MAX_CHANGES_PER_TURN = 500
_INBOX_WAIT_S = 0.5

Listener = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a running node checks without being asked, in seconds."""

    refresh_s: float = 60.0
    owed_s: float = 15.0
    rescan_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What a node syncs, and how carefully."""

    site: Site
    policy: Policy
    is_read_only: bool = False
    pace: Pace = Pace()
    filters: FilterSettings = FilterSettings()


class Node:
    """Syncs one vault with one database; `state` holds its counts and current trouble."""

    def __init__(self, plan: Plan, couch: Couch, records: LivesyncRecords) -> None:
        self.plan = plan
        self.state = LivesyncState()
        self._couch = couch
        self.records = records
        self._inbox: queue.SimpleQueue[Change | None | ObsidianRagError] = queue.SimpleQueue()
        self._lock = threading.Lock()
        # Changed paths of the vault; None means that any may have changed.
        self._changed: set[str] | None = set()
        self._database_info_is_due = threading.Event()

    def changed(self, paths: Iterable[str] | None = None) -> None:
        """Report that these paths of the vault changed; None means that any may have."""
        with self._lock:
            if paths is None:
                self._changed = None
            elif self._changed is not None:
                self._changed.update(paths)
        self._inbox.put(None)

    @property
    def queued(self) -> int:
        """How many messages are waiting."""
        return self._inbox.qsize()

    def sync_once(
        self,
        listener: Listener = lambda _what, _done, _total: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Reconciler:
        """Join, make both sides agree once, and return.

        Raises:
            LivesyncBrake: so many files are gone, here or elsewhere, that the user must decide.
            ObsidianRagError: this device may not take part, or the server went away; nothing is
                lost, and what was synced so far stays synced.
        """
        reconciler = self._join()
        self._catch_up(reconciler, listener, stop)
        if self.state.brake is not None:
            raise self.state.brake
        return reconciler

    def run(
        self, stop: threading.Event, listener: Listener = lambda _what, _done, _total: None
    ) -> None:
        """Sync until `stop`; wait for a server that went away, and rejoin a rebuilt database.

        Raises:
            LivesyncBrake, LivesyncLocked, LivesyncIncompatible, LivesyncPassphrase,
            LivesyncRefused: only the user can help.
        """
        backoff = Backoff()
        try:
            while not stop.is_set():
                try:
                    reconciler = self._join()
                    position = self._catch_up(reconciler, listener, stop.is_set)
                    if not stop.is_set():
                        self._set_connected(True)
                        backoff.reset()
                        self._follow(reconciler, position, stop)
                except (LivesyncUnreachable, Rebuilt) as error:
                    self._set_connected(False, error)
                    stop.wait(backoff.pause_s())
        except ObsidianRagError as error:
            self.state.trouble = error
            raise
        finally:
            self.state.is_connected = False

    def _join(self) -> Reconciler:
        plan, records = self.plan, self.records
        member = join(
            self._couch,
            records,
            plan.site,
            is_read_only=plan.is_read_only or plan.policy.direction is Direction.PULL,
            is_dry=plan.policy.is_dry,
        )
        root, max_bytes = plan.site.root, member.tweaks.max_bytes
        filters = Filters(plan.filters, member.tweaks, root)
        return Reconciler(
            Sync(
                couch=self._couch,
                member=member,
                reader=RemoteReader(self._couch, member.codec, max_bytes),
                disk=Disk(root, member.codec, max_bytes, filters, records),
                trash=Trash(plan.policy.trash, root, records),
                records=records,
                policy=plan.policy,
                state=self.state,
            )
        )

    def _catch_up(
        self, reconciler: Reconciler, listener: Listener, stop: Callable[[], bool]
    ) -> str:
        """Sync what changed on either side since the last run; return the position in the feed."""
        is_first = not self.records.count()
        wanted = dict.fromkeys(reconciler.scan())
        position = "now"
        if self.plan.policy.direction is not Direction.PUSH:
            position = self._read_changes(wanted, listener, stop)
        wanted.update((one.doc_id, None) for one in self.records.quarantined())
        wanted.update((one.doc_id, None) for one in self.records.conflicts())
        wanted.update(dict.fromkeys(json.loads(self.records.get_fact(_OWED) or "[]")))
        reconciler.reconcile(wanted, lambda done, total: listener("files", done, total), stop)
        if reconciler.owed and not stop() and not self.plan.policy.is_dry:
            reconciler.reconcile(sorted(reconciler.owed))
        if not stop():
            self._save_progress(position, reconciler)
            if is_first and not self.plan.policy.is_dry:
                not_synced = self.state.not_synced
                skipped = sum(one.count for one in not_synced if one.kind is not Kind.ELSEWHERE)
                _log.info(
                    "Initial sync complete: %d synced, %d skipped", self.records.count(), skipped
                )
        return position

    def _read_changes(
        self, wanted: dict[str, None], listener: Listener, stop: Callable[[], bool]
    ) -> str:
        """Add documents changed since the last run to `wanted`; return the position in the feed."""
        known = {file.doc_id: file.rev for file in self.records.files()}
        position = self.records.get_fact(_SINCE) or "0"
        while not stop():
            page = self._couch.changes(position, limit=_CHANGES_PER_PAGE)
            for row in page.rows:
                if is_file_id(row.id) and not _is_recorded(row, known.get(row.id)):
                    wanted[row.id] = None
            position = page.last_seq
            listener("changes", len(wanted), 0)
            if page.is_last:
                break
        return position

    def _follow(self, reconciler: Reconciler, since: str, stop: threading.Event) -> None:
        """Sync changes as they arrive, from both sides, until `stop`."""
        # Messages left by an earlier feed may be about another database.
        self._inbox = queue.SimpleQueue()
        ended = threading.Event()
        feed = threading.Thread(
            target=self._listen,
            args=(since, ended, self._inbox),
            name="livesync feed",
            daemon=True,
        )
        feed.start()
        clock = _Clock(self.plan.pace)
        try:
            while not stop.is_set():
                rows = self._take_inbox()
                if not feed.is_alive() and not rows:
                    raise LivesyncUnreachable("The feed of changes has ended.", "Try again.")
                self._take_turn(reconciler, rows, clock)
        finally:
            ended.set()
            feed.join()

    def _take_turn(self, reconciler: Reconciler, rows: list[Change], clock: "_Clock") -> None:
        ids = self._new_changes(rows)
        if clock.restart_if_due("refresh") or any(row.id == VERSION_ID for row in rows):
            self._database_info_is_due.set()
        with self._lock:
            paths, self._changed = self._changed, set()
        if paths is None or reconciler.sync.disk.is_stale or clock.restart_if_due("rescan"):
            ids += reconciler.scan()
        elif paths:
            ids += reconciler.scan_paths(sorted(paths))
        if clock.restart_if_due("owed"):
            ids += sorted(reconciler.owed)
        is_answered = self.state.brake is not None and reconciler.deletions.is_answered
        if self._database_info_is_due.is_set():
            self._database_info_is_due.clear()
            refresh(self._couch, self.records, self.plan.site, reconciler.sync.member)
        elif ids or is_answered:
            # Syncing by our old records would do harm in a database that was rebuilt.
            check(self._couch, self.records, reconciler.sync.member)
        if ids or is_answered:
            reconciler.reconcile(ids)
        if rows or ids:
            self._save_progress(rows[-1].seq if rows else None, reconciler)

    def _new_changes(self, rows: list[Change]) -> list[str]:
        """The documents that others changed; rows about our own writes are dropped."""
        files = [row for row in rows if is_file_id(row.id)]
        known = self.records.files_of(row.id for row in files)
        revs = {doc_id: file.rev for doc_id, file in known.items()}
        return [row.id for row in files if not _is_recorded(row, revs.get(row.id))]

    def _take_inbox(self) -> list[Change]:
        """Wait briefly for a first message, then take all that are queued."""
        rows: list[Change] = []
        try:
            item = self._inbox.get(timeout=_INBOX_WAIT_S)
            while True:
                if isinstance(item, ObsidianRagError):
                    raise item
                if item is not None:
                    rows.append(item)
                if len(rows) >= _MAX_CHANGES_PER_TURN:
                    break
                item = self._inbox.get_nowait()
        except queue.Empty:
            pass
        return rows

    def _listen(
        self,
        since: str,
        ended: threading.Event,
        inbox: "queue.SimpleQueue[Change | None | ObsidianRagError]",
    ) -> None:
        was_lost = False

        def report(trouble: LivesyncUnreachable | None) -> None:
            nonlocal was_lost
            self._set_connected(trouble is None, trouble)
            if was_lost and trouble is None:
                # The database may have been replaced during the gap.
                self._database_info_is_due.set()
                inbox.put(None)
            was_lost = trouble is not None

        try:
            for row in self._couch.follow(since, ended, report):
                if row is not None:
                    inbox.put(row)
        except ObsidianRagError as error:
            inbox.put(error)

    def _save_progress(self, seq: str | None, reconciler: Reconciler) -> None:
        """Save the position in the feed and the documents to retry; update the counts."""
        self.state.waiting = len(reconciler.owed)
        self.state.not_synced = reconciler.report().not_synced
        if self.plan.policy.is_dry:
            return
        reconciler.ignored.save()
        self.records.put_fact(
            _OWED, json.dumps(sorted(reconciler.owed)) if reconciler.owed else None
        )
        # A node that only sends has not applied the changes it read.
        if seq is not None and self.plan.policy.direction is not Direction.PUSH:
            self.records.put_fact(_SINCE, seq)
            self.state.last_seq = seq

    def _set_connected(self, is_connected: bool, trouble: ObsidianRagError | None = None) -> None:
        if trouble is not None and self.state.trouble is None:
            _log.warning("%s", trouble.message)
        self.state.is_connected = is_connected
        self.state.trouble = trouble


class _Clock:
    """Timers for periodic tasks."""

    def __init__(self, pace: Pace) -> None:
        self._intervals_s = {
            "refresh": pace.refresh_s,
            "owed": pace.owed_s,
            "rescan": pace.rescan_s,
        }
        self._started_at = dict.fromkeys(self._intervals_s, time.monotonic())

    def restart_if_due(self, what: str) -> bool:
        now = time.monotonic()
        if now - self._started_at[what] < self._intervals_s[what]:
            return False
        self._started_at[what] = now
        return True


def _is_recorded(row: Change, rev: str | None) -> bool:
    """Whether a row holds only the revision that we wrote or applied ourselves."""
    return row.revs == (rev,) and not row.is_deleted
