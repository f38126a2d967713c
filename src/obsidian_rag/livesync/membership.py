"""Join a network: read the database's own description, check it, and only then register.

Threat: a wrong passphrase, salt or setting makes notes unreadable for every device. So nothing is
written before these are read and checked, and never over what other devices wrote.
"""

import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from obsidian_rag.errors import (
    Busy,
    LivesyncIncompatible,
    LivesyncLocked,
    LivesyncRefused,
    LivesyncUnreachable,
    ObsidianRagError,
)
from obsidian_rag.livesync.codec import Codec, Tweaks
from obsidian_rag.livesync.codec.document_encryption import needs_salt
from obsidian_rag.livesync.codec.tweaks import V2
from obsidian_rag.livesync.couchdb import Couch, Document
from obsidian_rag.livesync.milestone import (
    MILESTONE_NAME,
    SYNC_PARAMETERS_NAME,
    VERSION_ID,
    NodeInfo,
    SaltVerdict,
    Verdict,
    VersionVerdict,
    accepting,
    created,
    fresh,
    is_registered,
    make_node_id,
    make_salt,
    preferred,
    registered,
    salt_of,
    salt_verdict,
    sync_parameters,
    verdict_of,
    version_document,
    version_verdict,
)
from obsidian_rag.livesync.remote_view import encrypted_sample
from obsidian_rag.livesync.site import Site
from obsidian_rag.store import Database, LivesyncRecords

_NODE = "node_id"
_CREATED = "created"
_REGISTERED = "registered"
# What `join` reads to distinguish a new device from a known one.
_FACTS = (_NODE, _CREATED, _REGISTERED)
_ROOT = "root"
_SINCE = "since"
_MAX_TRIES = 4


class Rebuilt(LivesyncLocked):
    """The database is not the one that we joined: the next start treats it as new."""


@dataclass(frozen=True, slots=True)
class Membership:
    """What a node gets by joining."""

    codec: Codec
    tweaks: Tweaks
    node_id: str
    is_read_only: bool
    is_rebuilt: bool


def join(
    couch: Couch,
    records: LivesyncRecords,
    site: Site,
    *,
    is_read_only: bool,
    is_dry: bool = False,
) -> Membership:
    """Check whether and how we may take part; register as a device if we may write.

    A dry run writes nothing, but is not read-only: it plans what would be sent.

    Raises:
        LivesyncIncompatible: we cannot work with this database.
        LivesyncLocked: it is locked for this device.
        LivesyncPassphrase: the passphrase does not open it, or it is not encrypted.
        LivesyncUnreachable, LivesyncRefused: the server does not answer, or refuses.
    """
    may_write = not (is_read_only or is_dry)
    is_empty = _open_database(couch, site, may_write)
    version = _check_version(couch, site, is_empty)
    is_read_only = version is VersionVerdict.READ_ONLY or is_read_only
    may_write = may_write and not is_read_only
    node_id = _node_id(records)
    milestone = couch.get_local(MILESTONE_NAME)
    tweaks = _check_settings(milestone, node_id, site)
    if may_write and version is VersionVerdict.CREATE:
        couch.bulk_docs([version_document()])
    if may_write and milestone is None and is_empty and site.tweaks is not None:
        milestone = _put_first(couch, MILESTONE_NAME, fresh(_now_ms(), node_id, site.tweaks))
        tweaks = _check_settings(milestone, node_id, site)
    codec, salt = _codec(couch, tweaks, site, may_write)
    # Only once everything is checked: this clears our records if the database is another one.
    is_rebuilt = _clear_if_rebuilt(records, milestone, site)
    if milestone is not None and may_write:
        _register(couch, records, node_id, site)
    if salt is not None and may_write:
        _check_salt(couch, salt)
    return Membership(codec, tweaks, node_id, is_read_only, is_rebuilt)


def find_records(couch: Couch, database: Database, site: Site) -> LivesyncRecords:
    """The records of the database at this address, even if we know it by another address.

    A database is a known one if it was created at the same moment and is synced with the same
    folder. While the server does not answer, the last one at this address is assumed.
    """
    records = LivesyncRecords.at_address(database, site.key)
    try:
        milestone = couch.get_local(MILESTONE_NAME)
    except ObsidianRagError:
        return records  # `join` asks again, and reports it
    made = created(milestone) if milestone is not None else None
    if made is None or records.get_fact(_CREATED) == str(made):
        return records
    if (known := _find_by_creation(records, made, site)) is not None:
        return known
    # Records in use for another address are not about this database.
    has_moved = records.address not in (None, site.key)
    return records.separate(str(made)) if has_moved else records


def _find_by_creation(records: LivesyncRecords, made: int, site: Site) -> LivesyncRecords | None:
    return records.with_facts({_CREATED: str(made), _ROOT: str(site.root)})


def rehearse(couch: Couch, site: Site, records: LivesyncRecords | None = None) -> Membership:
    """Do the checks of `join`, but register and record nothing."""
    database = Database(Path(":memory:"))
    try:
        scratch = LivesyncRecords(database, site.key)
        for fact in _FACTS if records is not None else ():
            scratch.put_fact(fact, records.get_fact(fact) if records is not None else None)
        return join(couch, scratch, site, is_read_only=True)
    finally:
        database.close()


def check(couch: Couch, records: LivesyncRecords, member: Membership) -> None:
    """Check that the database is still the one we joined, and still accepts us.

    Raises:
        Rebuilt: another device rebuilt it, or is about to.
        LivesyncLocked: it was locked.
        LivesyncIncompatible: its settings have changed.
    """
    milestone = couch.get_local(MILESTONE_NAME)
    known = records.get_fact(_CREATED)
    if milestone is not None:
        _check_lock(milestone, member.node_id, member.tweaks)
    if known is not None and (milestone is None or str(created(milestone)) != known):
        raise Rebuilt("The database was rebuilt by another device.", "Start the sync again.")


def refresh(couch: Couch, records: LivesyncRecords, site: Site, member: Membership) -> None:
    """Check the database again, and refresh our lines in its list of devices."""
    version = couch.get(VERSION_ID)
    if version is not None and version_verdict(version, is_empty=False) is VersionVerdict.NEWER:
        raise _newer_error()
    check(couch, records, member)
    if not member.is_read_only:
        _register(couch, records, member.node_id, site)


def unlock(couch: Couch, records: LivesyncRecords) -> None:
    """Get accepted by a locked database; if it was rebuilt, clear our records."""
    milestone = couch.get_local(MILESTONE_NAME)
    if milestone is None:
        raise LivesyncIncompatible(
            "The database has no list of devices.", "Set it up with LiveSync on another device."
        )
    made = created(milestone)
    if made is not None and records.get_fact(_CREATED) == str(made):
        # It was only locked: the records still distinguish an edit from a conflict.
        records.put_fact(_SINCE, None)
    else:
        records.clear()
    records.put_fact(_CREATED, str(made))
    records.put_fact(_REGISTERED, None)
    couch.put_local(MILESTONE_NAME, accepting(milestone, _node_id(records)))


def _open_database(couch: Couch, site: Site, may_write: bool) -> bool:
    """Create a missing database if its settings are given; return whether it is empty."""
    info = couch.info()
    if info is None:
        if site.tweaks is None or not may_write:
            raise LivesyncIncompatible(
                f"There is no database '{site.remote.database}' on the server.",
                _creation_hint(site),
            )
        site.tweaks.check_supported(site.passphrase)
        couch.create()
        info = couch.info()
    return not (info or {}).get("doc_count")


def _creation_hint(site: Site) -> str:
    remote = site.remote
    return (
        "Set it up with LiveSync in Obsidian first, or fill it from here: `obsidian-rag livesync"
        f" push --once --init --url {remote.url} --db {remote.database} --user … --vault …`."
    )


def _check_version(couch: Couch, site: Site, is_empty: bool) -> VersionVerdict:
    verdict = version_verdict(couch.get(VERSION_ID), is_empty=is_empty)
    if verdict is VersionVerdict.NEWER:
        raise _newer_error()
    if verdict is VersionVerdict.CREATE and site.tweaks is None:
        raise LivesyncIncompatible(
            f"The database '{site.remote.database}' is empty.",
            _creation_hint(site),
        )
    if verdict is VersionVerdict.UNKNOWN and site.tweaks is None:
        raise LivesyncIncompatible(
            f"'{site.remote.database}' is not a LiveSync database, or an unknown one.",
            "Check its name. If it is one, say how it is made: see `livesync pull --help`.",
        )
    return verdict


def _newer_error() -> LivesyncIncompatible:
    return LivesyncIncompatible(
        "The database has a newer format than we know.", "Look for a newer obsidian-rag."
    )


def shared_tweaks(milestone: Document | None, site: Site) -> Tweaks:
    """The settings that the devices agreed on, else those for a new database."""
    shared = preferred(milestone) if milestone is not None else None
    tweaks = shared or site.tweaks
    if tweaks is None:
        raise LivesyncIncompatible(
            "The database does not say how its notes are stored.",
            "Connect LiveSync in Obsidian to it once, or give the settings yourself:"
            " see `livesync pull --help`.",
        )
    return tweaks


def _check_settings(milestone: Document | None, node_id: str, site: Site) -> Tweaks:
    """The settings to follow, after checking that we are accepted and support them."""
    tweaks = shared_tweaks(milestone, site)
    if milestone is not None:
        _check_lock(milestone, node_id, tweaks)
    tweaks.check_encrypted(site.passphrase)
    tweaks.check_supported(site.passphrase)
    return tweaks


def _check_lock(milestone: Document, node_id: str, tweaks: Tweaks) -> None:
    verdict = verdict_of(milestone, node_id, tweaks)
    if verdict in (Verdict.NODE_LOCKED, Verdict.NODE_CLEANED):
        raise LivesyncLocked(
            "The database is locked: another device rebuilt or cleaned it.",
            "If that was you, run `obsidian-rag livesync unlock`; local files stay as they are.",
        )
    if verdict in (Verdict.INCOMPATIBLE, Verdict.MISMATCHED):
        raise LivesyncIncompatible(
            "The devices of this database have agreed on settings that we cannot follow.",
            "Look for a newer obsidian-rag.",
        )


def _clear_if_rebuilt(records: LivesyncRecords, milestone: Document | None, site: Site) -> bool:
    """Clear the records if the database was rebuilt: what it lacks was not deleted."""
    made = created(milestone) if milestone is not None else None
    if made is None:
        return False
    before, now = records.get_fact(_CREATED), str(made)
    if before != now and _find_by_creation(records, made, site) is not None:
        # The server did not answer when the records were chosen.
        raise Busy("The database was last reached by another address.", "Start the sync again.")
    is_rebuilt = before is not None and before != now
    if is_rebuilt:
        records.clear()
        records.put_fact(_REGISTERED, None)
    records.put_fact(_CREATED, now)
    return is_rebuilt


def _codec(couch: Couch, tweaks: Tweaks, site: Site, may_write: bool) -> tuple[Codec, bytes | None]:
    """The database's codec, tested on its documents, and the salt if there is one."""
    if not tweaks.encrypt:
        return Codec(tweaks, None, None), None
    sample = encrypted_sample(couch)
    salt = None
    if tweaks.e2ee_algorithm == V2 or any(map(needs_salt, sample)):
        salt = _salt(couch, bool(sample), may_write)
    codec = Codec(tweaks, site.passphrase, salt)
    codec.check_passphrase(sample)
    return codec, salt


def _salt(couch: Couch, has_encrypted: bool, may_write: bool) -> bytes:
    parameters = couch.get_local(SYNC_PARAMETERS_NAME)
    match salt_verdict(parameters, has_encrypted=has_encrypted):
        case SaltVerdict.USE:
            found = salt_of(parameters)
            assert found is not None
            return found
        case SaltVerdict.WAIT:
            raise LivesyncUnreachable(
                "Another device is just setting up the encryption.", "Try again in a moment."
            )
        case SaltVerdict.REFUSE:
            raise LivesyncIncompatible(
                "The database is encrypted, but its salt is gone.",
                "Rebuild the database from a device that has all notes.",
            )
    if not may_write:
        return make_salt()  # there is nothing to decrypt, and nothing will be encrypted
    # Read back: the last writer made the salt, and `_check_salt` looks again.
    found = salt_of(_put_first(couch, SYNC_PARAMETERS_NAME, sync_parameters(make_salt())))
    if found is None:
        raise LivesyncUnreachable("The server did not keep the salt.", "Try again.")
    return found


def _put_first(couch: Couch, name: str, document: Mapping[str, object]) -> Document | None:
    """Create a document and read it back: ours, or that of a faster device."""
    try:
        couch.put_local(name, document)
    except LivesyncRefused:
        if couch.get_local(name) is None:
            raise
    return couch.get_local(name)


def _check_salt(couch: Couch, ours: bytes) -> None:
    """Check the salt again before encrypting: two devices may have made one at once."""
    if salt_of(couch.get_local(SYNC_PARAMETERS_NAME)) != ours:
        raise LivesyncUnreachable(
            "Another device is just setting up the encryption.", "Try again in a moment."
        )


def _register(couch: Couch, records: LivesyncRecords, node_id: str, site: Site) -> None:
    """Write our lines into the list of devices; retry, as some servers refuse concurrent writes."""
    for _ in range(_MAX_TRIES - 1):
        try:
            _update_registration(couch, records, node_id, site)
        except LivesyncRefused:
            continue
        return
    _update_registration(couch, records, node_id, site)


def _update_registration(couch: Couch, records: LivesyncRecords, node_id: str, site: Site) -> None:
    # The last writer wins: read at the last moment, and change only our own lines.
    milestone = couch.get_local(MILESTONE_NAME)
    if milestone is None:
        return
    is_listed = is_registered(milestone, node_id)
    if records.get_fact(_REGISTERED) and not is_listed:
        raise LivesyncLocked(
            "This device was removed from the list of devices.",
            "If it should sync again, run `obsidian-rag livesync unlock`.",
        )
    info = couch.info() or {}
    updated = registered(
        milestone,
        node_id,
        NodeInfo(
            device_name=f"{platform.node() or 'node'} (headless)",
            vault_name=site.root.name,
            app_version="obsidian-rag",
            plugin_version="obsidian-rag",
            progress=str(info.get("update_seq", "")),
            last_connected_ms=_now_ms(),
        ),
    )
    if updated != milestone:
        couch.put_local(MILESTONE_NAME, updated)
    if is_listed and not records.get_fact(_REGISTERED):
        # Set only once we are listed: another device may have overwritten our first lines.
        records.put_fact(_REGISTERED, "1")


def _node_id(records: LivesyncRecords) -> str:
    known = records.get_fact(_NODE)
    if known is None:
        known = make_node_id()
        records.put_fact(_NODE, known)
    return known


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
