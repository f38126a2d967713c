"""Open the one node that may run per database, and run a whole sync."""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace

from obsidian_rag.config import Config
from obsidian_rag.errors import NotFound, ObsidianRagError
from obsidian_rag.livesync.codec import Tweaks
from obsidian_rag.livesync.couchdb import Couch
from obsidian_rag.livesync.disk import Trash
from obsidian_rag.livesync.membership import find_records
from obsidian_rag.livesync.node import Listener, Node, Plan
from obsidian_rag.livesync.site import (
    Direction,
    Options,
    Site,
    filters_of,
    node_lock,
    open_database,
    refuse_read_only,
    site_of,
    trash_folder,
)
from obsidian_rag.livesync.status import SyncReport, save_state
from obsidian_rag.livesync.sync import Policy
from obsidian_rag.store import Database, LivesyncRecords
from obsidian_rag.vault import make_root, sweep_data_folder, sweep_folder

_TWEAKS = "tweaks"
_ROOT = "root"


@contextlib.contextmanager
def open_node(config: Config, options: Options | None = None) -> Iterator[Node]:
    """Open a node for the settings and a command's options, and hold its lock."""
    options = options or Options()
    site = site_of(config, options)
    with contextlib.closing(open_database(config)) as database:
        refuse_read_only(database, site.root)
        with (
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
    """The records of a site's database, with its node's lock held."""
    records = find_records(couch, database, site)
    with node_lock(config, records.remote):
        records.use_address(site.key)
        yield records


def sync_once(
    config: Config,
    options: Options | None = None,
    listener: Listener = lambda _what, _done, _total: None,
    stop: Callable[[], bool] = lambda: False,
) -> SyncReport:
    """Make the vault and the database agree once.

    Raises:
        Busy: another process syncs with the database.
        ObsidianRagError: the folder or the database cannot be used, or the server went away.
    """
    with open_node(config, options) as node:
        try:
            reconciler = node.sync_once(listener, stop)
        except ObsidianRagError as error:
            save_state(node.records, replace(node.state, trouble=error))
            raise
        if not node.plan.policy.is_dry:
            save_state(node.records, node.state)
        return replace(
            reconciler.report(),
            state=node.state,
            planned=tuple(sorted(reconciler.planned)),
            owed=len(reconciler.owed),
            is_stopped=stop(),
        )


def trash_of(config: Config, site: Site, records: LivesyncRecords) -> Trash:
    """The trash of the files that sync removed from the vault."""
    return Trash(trash_folder(config), site.root, records)


def drop_old_trash(config: Config, site: Site, records: LivesyncRecords) -> None:
    """Delete what has been in the trash for longer than `trash_days`."""
    trash_of(config, site, records).drop_older_than(config.settings.livesync.trash_days)


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
            max_deleted_percent=100.0 if options.allows_deletions else settings.max_deleted_percent,
        ),
        is_read_only=options.is_read_only or settings.read_only,
        filters=filters_of(config),
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
