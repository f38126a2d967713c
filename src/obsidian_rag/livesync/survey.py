"""A look at a database before we take part in it: nothing is written, here or there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from obsidian_rag.errors import LivesyncIncompatible, LivesyncLocked, LivesyncPassphrase
from obsidian_rag.livesync.couch import Couch, Document
from obsidian_rag.livesync.membership import Access, Membership, join, remote_key
from obsidian_rag.livesync.milestone import MILESTONE_NAME, preferred
from obsidian_rag.livesync.path_ids import is_file_id
from obsidian_rag.livesync.tweaks import Tweaks
from obsidian_rag.store import Database, LivesyncRecords

# What `join` looks up about us, to tell a stranger from a device that is known.
_FACTS = ("node_id", "created", "registered")
_MOST_READ = 5000
# Chunks have ids from here to there; entries have all others.
_CHUNKS = ("h:", "h:\U0010ffff")
_LAST = "\U0010ffff"
_FILES = ("plain", "newnote", "notes")


@dataclass(frozen=True, slots=True)
class Survey:
    """What a database says about itself; `notes` is None where that takes too long to count."""

    devices: tuple[str, ...]
    is_encrypted: bool
    hides_paths: bool
    is_locked: bool
    is_empty: bool
    notes: int | None


def survey(couch: Couch, access: Access, records: LivesyncRecords | None = None) -> Survey:
    """Check that we could take part, passphrase included, and tell what is there.

    Raises:
        LivesyncIncompatible: the database is none we can work with.
        LivesyncPassphrase: the passphrase does not open it.
        LivesyncUnreachable, LivesyncRefused: the server does not answer, or refuses.
    """
    is_locked = False
    try:
        tweaks = rehearse(couch, access, records).tweaks
    except LivesyncLocked:
        is_locked = True
        tweaks = _published(couch, access)
    return Survey(
        devices=tuple(_devices(couch.get_local(MILESTONE_NAME) or {})),
        is_encrypted=tweaks.encrypt,
        hides_paths=tweaks.use_path_obfuscation,
        is_locked=is_locked,
        is_empty=not (couch.info() or {}).get("doc_count"),
        notes=_count(couch),
    )


def rehearse(couch: Couch, access: Access, records: LivesyncRecords | None = None) -> Membership:
    """Join for show: all is checked and nothing is signed or remembered.

    Raises:
        LivesyncLocked: the database is locked for this device.
        ObsidianRagError: as for `join`.
    """
    database = Database(Path(":memory:"))
    try:
        scratch = LivesyncRecords(database, remote_key(access.remote))
        for fact in _FACTS if records is not None else ():
            scratch.put_fact(fact, records.get_fact(fact) if records is not None else None)
        return join(couch, scratch, access, is_read_only=True)
    finally:
        database.close()


def _published(couch: Couch, access: Access) -> Tweaks:
    milestone = couch.get_local(MILESTONE_NAME)
    tweaks = preferred(milestone) if milestone is not None else access.tweaks
    if tweaks is None:
        raise LivesyncIncompatible(
            "The database does not say how its notes are kept.",
            "Connect LiveSync in Obsidian to it once.",
        )
    tweaks.check_encrypted(access.passphrase)
    if tweaks.encrypt and not access.passphrase:
        raise LivesyncPassphrase(
            "The database is encrypted, and no passphrase is given.",
            "Give the passphrase of your devices.",
        )
    return tweaks


def _devices(milestone: Document) -> Iterator[str]:
    nodes = milestone.get("node_info")
    for name, lines in nodes.items() if isinstance(nodes, Mapping) else ():
        told = lines.get("device_name") if isinstance(lines, Mapping) else None
        yield told if isinstance(told, str) and told else str(name)


def _count(couch: Couch) -> int | None:
    """How many files the database has, less those that are deleted."""
    ids = [
        doc_id
        for start, end in (("", _CHUNKS[0]), (_CHUNKS[1], _LAST))
        for doc_id, _ in couch.list_ids(start=start, end=end, limit=_MOST_READ + 1)
        if is_file_id(doc_id)
    ]
    if len(ids) > _MOST_READ:
        return None
    return sum(
        document.get("type") in _FILES and document.get("deleted") is not True
        for document in couch.all_docs(ids).values()
    )
