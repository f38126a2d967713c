"""Opens the one node that may run per database, and runs a whole sync."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from obsidian_rag.config import Config
from obsidian_rag.errors import Busy, IndexerFailed, NotFound, ObsidianRagError, ReadOnly
from obsidian_rag.livesync.codec import Tweaks
from obsidian_rag.livesync.couchdb import Couch
from obsidian_rag.livesync.disk import Direction, Policy
from obsidian_rag.livesync.left_out import LeftOut
from obsidian_rag.livesync.membership import find_records
from obsidian_rag.livesync.node import Listener, Node, Plan
from obsidian_rag.livesync.site import Options, Site, filters_of, place_of, site_of
from obsidian_rag.livesync.state import LivesyncState, Stats, save_state
from obsidian_rag.livesync.trash import Trash
from obsidian_rag.store import Conflict, Database, Links, LivesyncRecords, Quarantined
from obsidian_rag.vault import VaultMode, make_root, sweep_data_folder, sweep_folder

_TRASH = "livesync-trash"
_TWEAKS = "tweaks"
_ROOT = "root"
# `is_node_running` holds the lock for a moment.
_LOCK_TIMEOUT_S = 1.0
_REOPEN_DELAY_S = 0.5


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What one sync did, and what it left undone."""

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
        """Whether everything that takes part was synced."""
        return not (self.owed or self.quarantined)


def trash_folder(config: Config) -> Path:
    """Where files that sync removed are kept for restoring."""
    return config.home / _TRASH


@contextlib.contextmanager
def node_lock(config: Config, remote: str) -> Iterator[None]:
    """Hold the lock of a database's one node; `remote` is the name of its records.

    Raises:
        Busy: another process holds it.
    """
    lock = _lock(config, remote)
    try:
        lock.acquire(timeout=_LOCK_TIMEOUT_S)
    except Timeout:
        raise Busy(
            "Another obsidian-rag process syncs with this database already.",
            "Let it do so, or stop it: `obsidian-rag serve --stop` ends the daemon.",
        ) from None
    try:
        yield
    finally:
        lock.release()


def is_node_running(config: Config, remote: str) -> bool:
    """Whether any process runs the database's node; `remote` is as for `node_lock`."""
    if not config.home.is_dir():
        return False
    try:
        with _lock(config, remote).acquire(timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return False


@contextlib.contextmanager
def open_node(config: Config, options: Options | None = None) -> Iterator[Node]:
    """Open a node for the settings and a command's options, and hold its lock.

    Raises:
        Busy: another process is that node.
        NotFound: there is no such folder.
        ReadOnly: the folder is a linked vault that may only be read.
        ObsidianRagError: as for `site_of`.
    """
    options = options or Options()
    site = site_of(config, options)
    with contextlib.closing(open_database(config)) as database:
        _refuse_read_only(database, site.root)
    with (
        contextlib.closing(open_database(config)) as database,
        contextlib.closing(Couch(site.remote)) as couch,
        lock_records(config, database, couch, site) as records,
    ):
        if options.vault is not None and options.direction is Direction.PULL:
            make_root(site.root)  # pulling a vault into a new folder is a normal use
        _store_root(site, records)
        drop_old_trash(config, site, records)
        sweep_folder(trash_folder(config))
        sweep_data_folder(config.home)
        site = replace(site, tweaks=_choose_tweaks(site, options, records))
        yield Node(_build_plan(config, site, options), couch, records)


@contextlib.contextmanager
def lock_records(
    config: Config, database: Database, couch: Couch, site: Site
) -> Iterator[LivesyncRecords]:
    """The records of a site's database, with its node's lock held.

    Raises:
        Busy: another process syncs with it, by this address or another.
    """
    records = find_records(couch, database, site)
    with node_lock(config, records.remote):
        records.use_address(site.key)
        yield records


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
    """The trash of the files that sync removed from the vault."""
    return Trash(trash_folder(config), site.root, records)


def drop_old_trash(config: Config, site: Site, records: LivesyncRecords) -> None:
    """Delete what has been in the trash for longer than `trash_days`."""
    trash_of(config, site, records).drop_older_than(config.settings.livesync.trash_days)


@contextlib.contextmanager
def open_records(
    config: Config, options: Options | None = None
) -> Iterator[tuple[Site, LivesyncRecords]]:
    """The records of the database in the settings, whether or not a node is running.

    Raises:
        ConfigInvalid: LiveSync is not set up.
        ReadOnly: the folder is a linked vault that may only be read.
    """
    site = place_of(config, options)
    with contextlib.closing(open_database(config)) as database:
        _refuse_read_only(database, site.root)
        yield site, LivesyncRecords.at_address(database, site.key)


def keep_tweaks(records: LivesyncRecords, tweaks: Tweaks) -> None:
    """Store the settings a setup URI gives for a new database."""
    records.put_fact(_TWEAKS, json.dumps(tweaks.to_settings()))


def _choose_tweaks(site: Site, options: Options, records: LivesyncRecords) -> Tweaks | None:
    """Settings for a database that has none of its own; None if they are unknown."""
    if options.tweaks is not None:
        tweaks = options.tweaks
    elif not options.is_init:
        return None
    elif stored := records.get_fact(_TWEAKS):
        return Tweaks.from_settings(json.loads(stored))
    else:
        tweaks = Tweaks.for_new_database()
    # A passphrase implies encryption, unless the options say otherwise.
    encrypts = site.passphrase is not None if options.encrypts is None else options.encrypts
    return replace(tweaks, encrypt=encrypts)


def open_database(config: Config) -> Database:
    """Open the SQLite file on a new connection."""
    try:
        return Database(config.database)
    except IndexerFailed:
        # Two processes may create the file at once: the second finds it half made, then complete.
        time.sleep(_REOPEN_DELAY_S)
        return Database(config.database)


def _build_plan(config: Config, site: Site, options: Options) -> Plan:
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


def _lock(config: Config, remote: str) -> FileLock:
    digest, _, made = remote.partition("-")
    return FileLock(config.home / f"livesync-{digest[:16]}{made}.lock")


def _refuse_read_only(database: Database, root: Path) -> None:
    """Refuse a folder that overlaps a read-only linked vault."""
    real = root.resolve()
    for link in Links(database).all():
        linked = link.root_path.resolve()
        overlaps = real.is_relative_to(linked) or linked.is_relative_to(real)
        if overlaps and not link.is_primary and link.mode == VaultMode.READ_ONLY:
            raise ReadOnly(
                f"LiveSync would write into '{link.name}', a linked vault (read-only).",
                "Set livesync.vaultPath to another folder.",
            )


def _store_root(site: Site, records: LivesyncRecords) -> None:
    """Store which folder is synced, and clear the records if it is another one.

    A missing folder that never had a synced file may be a typo; the brake covers the others.
    """
    root = str(site.root)
    is_new = records.get_fact(_ROOT) != root
    if not site.root.is_dir() and (is_new or not records.count()):
        raise NotFound(
            f"There is no folder {root}.",
            "Make it, or name another one with --vault or livesync.vaultPath.",
        )
    if is_new:
        # Otherwise files that this folder lacks would count as deleted.
        records.clear()
        records.put_fact(_ROOT, root)
