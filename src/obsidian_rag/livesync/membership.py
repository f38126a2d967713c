"""Join a network: read what the database says of itself, check it, and only then register.

Threat: a wrong passphrase, salt or setting makes notes unreadable for every device. So nothing is
written before that is read, understood and found to fit, and never over what others wrote.
"""

import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from obsidian_rag.errors import (
    LivesyncIncompatible,
    LivesyncLocked,
    LivesyncRefused,
    LivesyncUnreachable,
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
# What `join` looks up about us, to tell a stranger from a device that is known.
_FACTS = (_NODE, _CREATED, _REGISTERED)
_SINCE = "since"
_TRIES = 4


class Rebuilt(LivesyncLocked):
    """The database is not the one that we joined: the next start begins anew with it."""


@dataclass(frozen=True, slots=True)
class Membership:
    """What a node that joined works with."""

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
    """Check that we may take part, and how; join the list of devices if we are to write at all.

    A dry run writes nothing, but is not read-only: it plans what would be sent.

    Raises:
        LivesyncIncompatible: the database is none we can work with.
        LivesyncLocked: it is locked for this device.
        LivesyncPassphrase: the passphrase does not open it, or it needs none.
        LivesyncUnreachable, LivesyncRefused: the server does not answer, or refuses.
    """
    may_write = not (is_read_only or is_dry)
    is_empty = _open(couch, site, may_write)
    version = _check_version(couch, site, is_empty)
    is_read_only = version is VersionVerdict.READ_ONLY or is_read_only
    may_write = may_write and not is_read_only
    node_id = _node_id(records)
    milestone = couch.get_local(MILESTONE_NAME)
    tweaks = _accepted(milestone, node_id, site)
    if may_write and version is VersionVerdict.CREATE:
        couch.bulk_docs([version_document()])
    if may_write and milestone is None and is_empty and site.tweaks is not None:
        milestone = _put_first(couch, MILESTONE_NAME, fresh(_now_ms(), node_id, site.tweaks))
        tweaks = _accepted(milestone, node_id, site)
    codec, salt = _codec(couch, tweaks, site, may_write)
    # Not before all is understood: what we knew is forgotten here if the database is another.
    is_rebuilt = _note_incarnation(records, milestone)
    if milestone is not None and may_write:
        _register(couch, records, node_id, site)
    if salt is not None and may_write:
        _check_salt(couch, salt)
    return Membership(codec, tweaks, node_id, is_read_only, is_rebuilt)


def rehearse(couch: Couch, site: Site, records: LivesyncRecords | None = None) -> Membership:
    """Join for show: all is checked and nothing is signed or remembered.

    Raises:
        LivesyncLocked: the database is locked for this device.
        ObsidianRagError: as for `join`.
    """
    database = Database(Path(":memory:"))
    try:
        scratch = LivesyncRecords(database, site.key)
        for fact in _FACTS if records is not None else ():
            scratch.put_fact(fact, records.get_fact(fact) if records is not None else None)
        return join(couch, scratch, site, is_read_only=True)
    finally:
        database.close()


def check(couch: Couch, records: LivesyncRecords, member: Membership) -> None:
    """Look whether the database is still the one we joined, and still open for us.

    Raises:
        Rebuilt: another device made it anew, or is about to.
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
    """Check the database info again, and say in the list of devices that we are here.

    Raises:
        LivesyncLocked: the database was locked, or made anew, or has us no longer.
        LivesyncIncompatible: its settings have changed.
    """
    version = couch.get(VERSION_ID)
    if version is not None and version_verdict(version, is_empty=False) is VersionVerdict.NEWER:
        raise _newer()
    check(couch, records, member)
    if not member.is_read_only:
        _register(couch, records, member.node_id, site)


def unlock(couch: Couch, records: LivesyncRecords) -> None:
    """Have us accepted by a locked database; what we knew of another one before it is forgotten.

    Raises:
        LivesyncIncompatible: the database has no list of devices.
    """
    milestone = couch.get_local(MILESTONE_NAME)
    if milestone is None:
        raise LivesyncIncompatible(
            "The database has no list of devices.", "Set it up with LiveSync on another device."
        )
    made = created(milestone)
    if made is not None and records.get_fact(_CREATED) == str(made):
        # It was only locked: what we last synced still tells an edit from a conflict.
        records.put_fact(_SINCE, None)
    else:
        records.clear()
    records.put_fact(_CREATED, str(made))
    records.put_fact(_REGISTERED, None)
    couch.put_local(MILESTONE_NAME, accepting(milestone, _node_id(records)))


def _open(couch: Couch, site: Site, may_write: bool) -> bool:
    """Whether the database is empty; one that is not there is made if its settings are given."""
    info = couch.info()
    if info is None:
        if site.tweaks is None or not may_write:
            raise LivesyncIncompatible(
                f"There is no database '{site.remote.database}' on the server.",
                _make_it(site),
            )
        site.tweaks.check_supported(site.passphrase)
        couch.create()
        info = couch.info()
    return not (info or {}).get("doc_count")


def _make_it(site: Site) -> str:
    remote = site.remote
    return (
        "Set it up with LiveSync in Obsidian first, or fill it from here: `obsidian-rag livesync"
        f" push --once --init --url {remote.url} --db {remote.database} --user … --vault …`."
    )


def _check_version(couch: Couch, site: Site, is_empty: bool) -> VersionVerdict:
    verdict = version_verdict(couch.get(VERSION_ID), is_empty=is_empty)
    if verdict is VersionVerdict.NEWER:
        raise _newer()
    if verdict is VersionVerdict.CREATE and site.tweaks is None:
        raise LivesyncIncompatible(
            f"The database '{site.remote.database}' is empty.",
            _make_it(site),
        )
    if verdict is VersionVerdict.UNKNOWN and site.tweaks is None:
        raise LivesyncIncompatible(
            f"'{site.remote.database}' is not a LiveSync database, or an unknown one.",
            "Check its name. If it is one, say how it is made: see `livesync pull --help`.",
        )
    return verdict


def _newer() -> LivesyncIncompatible:
    return LivesyncIncompatible(
        "The database has a newer format than we know.", "Look for a newer obsidian-rag."
    )


def _accepted(milestone: Document | None, node_id: str, site: Site) -> Tweaks:
    """The settings to follow, if the database takes us and we can follow them."""
    shared = preferred(milestone) if milestone is not None else None
    tweaks = shared or site.tweaks
    if tweaks is None:
        raise LivesyncIncompatible(
            "The database does not say how its notes are kept.",
            "Connect LiveSync in Obsidian to it once, or give the settings yourself:"
            " see `livesync pull --help`.",
        )
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


def _note_incarnation(records: LivesyncRecords, milestone: Document | None) -> bool:
    """Forget what we knew when the database was made anew; its gaps are no deletions."""
    if milestone is None or created(milestone) is None:
        return False
    before, now = records.get_fact(_CREATED), str(created(milestone))
    is_rebuilt = before is not None and before != now
    if is_rebuilt:
        records.clear()
        records.put_fact(_REGISTERED, None)
    records.put_fact(_CREATED, now)
    return is_rebuilt


def _codec(couch: Couch, tweaks: Tweaks, site: Site, may_write: bool) -> tuple[Codec, bytes | None]:
    """The codec of this database, tried on what it holds, and the salt if there is one."""
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
    """What is there after we put a document where none was: ours, or that of a faster device."""
    try:
        couch.put_local(name, document)
    except LivesyncRefused:
        if couch.get_local(name) is None:
            raise
    return couch.get_local(name)


def _check_salt(couch: Couch, ours: bytes) -> None:
    """Look once more before anything is encrypted: two devices may have made a salt at once."""
    if salt_of(couch.get_local(SYNC_PARAMETERS_NAME)) != ours:
        raise LivesyncUnreachable(
            "Another device is just setting up the encryption.", "Try again in a moment."
        )


def _register(couch: Couch, records: LivesyncRecords, node_id: str, site: Site) -> None:
    """Write our lines into the list of devices; some servers refuse when two do so at once."""
    for _ in range(_TRIES - 1):
        try:
            _update_registration(couch, records, node_id, site)
        except LivesyncRefused:
            continue
        return
    _update_registration(couch, records, node_id, site)


def _update_registration(couch: Couch, records: LivesyncRecords, node_id: str, site: Site) -> None:
    # Last writer wins there: read at the last moment, and change only our own lines.
    milestone = couch.get_local(MILESTONE_NAME)
    if milestone is None:
        return
    is_listed = is_registered(milestone, node_id)
    if records.get_fact(_REGISTERED) and not is_listed:
        raise LivesyncLocked(
            "This device was removed from the list of devices.",
            "If it shall sync again, run `obsidian-rag livesync unlock`.",
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
        # Another device may have written over our first lines; that is no removal.
        records.put_fact(_REGISTERED, "1")


def _node_id(records: LivesyncRecords) -> str:
    known = records.get_fact(_NODE)
    if known is None:
        known = make_node_id()
        records.put_fact(_NODE, known)
    return known


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
