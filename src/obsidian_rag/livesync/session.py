"""LiveSync as an engine offers it: one node per database at a time, and a sync from end to end."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from obsidian_rag.config import Config
from obsidian_rag.errors import Busy, IndexerFailed, NotFound, ObsidianRagError
from obsidian_rag.livesync.case import Direction, Policy
from obsidian_rag.livesync.codec import Tweaks
from obsidian_rag.livesync.couchdb import Couch
from obsidian_rag.livesync.left_out import LeftOut
from obsidian_rag.livesync.node import Listener, Node, Plan
from obsidian_rag.livesync.options import Options
from obsidian_rag.livesync.site import Site, filters_of, place_of, site_of
from obsidian_rag.livesync.state import LivesyncState, Stats, save_state
from obsidian_rag.livesync.trash import Trash
from obsidian_rag.store import Conflict, Database, LivesyncRecords, Quarantined
from obsidian_rag.vault import make_root, sweep_data_folder, sweep_folder

_TRASH = "livesync-trash"
_TWEAKS = "tweaks"
_ROOT = "root"
# Asking whether a node runs takes its lock for a moment.
_PATIENCE_S = 1.0
_HALF_MADE_S = 0.5


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What one sync did, and what it could not do."""

    stats: Stats
    planned: tuple[str, ...]
    owed: int
    quarantined: tuple[Quarantined, ...]
    conflicts: tuple[Conflict, ...]
    left_out: Mapping[str, str]
    not_synced: tuple[LeftOut, ...]
    is_stopped: bool

    @property
    def is_complete(self) -> bool:
        """Whether nothing was left behind that should be synced."""
        return not (self.owed or self.quarantined)


def trash_folder(config: Config) -> Path:
    """Where files that sync removed wait to be restored."""
    return config.home / _TRASH


@contextlib.contextmanager
def node_lock(config: Config, key: str) -> Iterator[None]:
    """Be the one node of a database for a while.

    Raises:
        Busy: there is one already.
    """
    lock = _lock(config, key)
    try:
        lock.acquire(timeout=_PATIENCE_S)
    except Timeout:
        raise Busy(
            "Another obsidian-rag process syncs with this database already.",
            "Let it do so, or stop it: `obsidian-rag serve --stop` ends the daemon.",
        ) from None
    try:
        yield
    finally:
        lock.release()


def is_node_running(config: Config, key: str) -> bool:
    """Whether some process is the node of a database now."""
    if not config.home.is_dir():
        return False
    try:
        with _lock(config, key).acquire(timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return False


@contextlib.contextmanager
def open_node(config: Config, options: Options | None = None) -> Iterator[Node]:
    """A node, its lock held, for the settings and what a command asks for besides.

    Raises:
        Busy: another process is that node.
        NotFound: there is no such folder.
        ObsidianRagError: as for `site_of`.
    """
    options = options or Options()
    site = site_of(config, options)
    with contextlib.closing(open_database(config)) as database, node_lock(config, site.key):
        records = LivesyncRecords(database, site.key)
        if options.vault is not None and options.direction is Direction.PULL:
            make_root(site.root)  # to take a vault into a new folder is what it is for
        _note_root(site, records)
        drop_old_trash(config, site, records)
        sweep_folder(trash_folder(config))
        sweep_data_folder(config.home)
        with contextlib.closing(Couch(site.remote)) as couch:
            site = replace(site, tweaks=_tweaks(site, options, records))
            yield Node(_plan(config, site, options), couch, records)


def sync_once(
    config: Config,
    options: Options | None = None,
    listener: Listener = lambda _what, _done, _total: None,
    stop: Callable[[], bool] = lambda: False,
) -> SyncResult:
    """Make the vault and the database agree once.

    Raises:
        ObsidianRagError: as for `open_node` and `Node.sync_once`.
    """
    with open_node(config, options) as node:
        stats, records = node.stats, node.records
        try:
            reconciler = node.sync_once(listener, stop)
        except ObsidianRagError as error:
            save_state(records, LivesyncState(counts=stats.fields(), trouble=error))
            raise
        if not node.plan.policy.is_dry:
            save_state(records, LivesyncState(counts=stats.fields()))
        return SyncResult(
            stats=stats,
            planned=tuple(sorted(stats.planned)),
            owed=len(reconciler.owed),
            quarantined=tuple(records.quarantined()),
            conflicts=tuple(records.conflicts()),
            left_out=dict(reconciler.disk.left_out),
            not_synced=reconciler.not_synced(),
            is_stopped=stop(),
        )


def trash_of(config: Config, site: Site, records: LivesyncRecords) -> Trash:
    """The files that sync took out of the vault."""
    return Trash(trash_folder(config), site.root, records)


def drop_old_trash(config: Config, site: Site, records: LivesyncRecords) -> None:
    """Remove for good what has been in the trash for longer than the user wants."""
    trash_of(config, site, records).drop_older_than(config.settings.livesync.trash_days)


@contextlib.contextmanager
def open_records(
    config: Config, options: Options | None = None
) -> Iterator[tuple[Site, LivesyncRecords]]:
    """What we remember of the database of the settings; whether a node works with it or not.

    Raises:
        ConfigInvalid: LiveSync is not set up.
    """
    site = place_of(config, options)
    with contextlib.closing(open_database(config)) as database:
        yield site, LivesyncRecords(database, site.key)


def keep_tweaks(records: LivesyncRecords, tweaks: Tweaks) -> None:
    """Remember how a setup URI wants its database to be, should that be new."""
    records.put_fact(_TWEAKS, json.dumps(tweaks.to_settings()))


def _tweaks(site: Site, options: Options, records: LivesyncRecords) -> Tweaks | None:
    """How to keep notes in a database that does not say so; None if that is unknown."""
    if options.tweaks is not None:
        tweaks = options.tweaks
    elif not options.is_init:
        return None
    elif told := records.get_fact(_TWEAKS):
        return Tweaks.from_settings(json.loads(told))
    else:
        tweaks = Tweaks.for_new_database()
    # A passphrase is there to be used, unless the options say otherwise.
    encrypts = site.passphrase is not None if options.encrypts is None else options.encrypts
    return replace(tweaks, encrypt=encrypts)


def open_database(config: Config) -> Database:
    """The SQLite file, on a connection of our own."""
    try:
        return Database(config.database)
    except IndexerFailed:
        # Two processes may make the file at once: the second finds it half made, and then whole.
        time.sleep(_HALF_MADE_S)
        return Database(config.database)


def _plan(config: Config, site: Site, options: Options) -> Plan:
    settings = config.settings.livesync
    return Plan(
        site=site,
        policy=Policy(
            direction=options.direction,
            is_dry=options.is_dry,
            may_merge=settings.merge,
            keeps_conflicts_as_files=settings.conflicts == "file",
            trash=trash_folder(config),
        ),
        max_deleted_percent=100.0 if options.allows_deletions else settings.max_deleted_percent,
        is_read_only=options.is_read_only or settings.read_only,
        filters=filters_of(config),
    )


def _lock(config: Config, key: str) -> FileLock:
    return FileLock(config.home / f"livesync-{key[:16]}.lock")


def _note_root(site: Site, records: LivesyncRecords) -> None:
    """Remember which folder is synced; with another one, all that we knew of the last is void.

    A folder that never had a file may be a typo; for one that had, there is the brake.
    """
    root = str(site.root)
    is_new = records.get_fact(_ROOT) != root
    if not site.root.is_dir() and (is_new or not records.count()):
        raise NotFound(
            f"There is no folder {root}.",
            "Make it, or name another one with --vault or livesync.vaultPath.",
        )
    if is_new:
        # Or what this folder lacks would be taken for deleted.
        records.clear()
        records.put_fact(_ROOT, root)
