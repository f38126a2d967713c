"""What a user does about LiveSync by hand: check, resolve, restore, unlock."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from obsidian_rag.config import Config
from obsidian_rag.errors import InvalidArgument, NotFound, ObsidianRagError
from obsidian_rag.livesync.couch import Couch
from obsidian_rag.livesync.disk import Disk
from obsidian_rag.livesync.documents import Codec
from obsidian_rag.livesync.filters import Filters
from obsidian_rag.livesync.membership import Access, Membership, rehearse, unlock
from obsidian_rag.livesync.options import Options
from obsidian_rag.livesync.resolution import Resolved, Resolver, Version
from obsidian_rag.livesync.session import (
    is_node_running,
    kept_at,
    node_lock,
    open_database,
    sync_once,
    trash_folder,
)
from obsidian_rag.livesync.site import Site, filters_of, place_of, site_of
from obsidian_rag.livesync.tweaks import Tweaks
from obsidian_rag.store import Conflict, LivesyncRecords, Quarantined, TrashedFile
from obsidian_rag.vault import discard_kept, restore_file

_MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LivesyncCheck:
    """What is not synced, or not as it should be; `trouble` keeps us from the database."""

    quarantined: tuple[Quarantined, ...]
    conflicts: tuple[Conflict, ...]
    left_out: tuple[tuple[str, str], ...]
    warnings: tuple[tuple[str, str], ...]
    filtered: tuple[tuple[str, str], ...]
    files: int
    trouble: ObsidianRagError | None

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing to be looked at; warnings and filters are no trouble."""
        return not (self.quarantined or self.conflicts or self.left_out or self.trouble)


@dataclass(frozen=True, slots=True)
class WaitingConflict:
    """A conflict that waits for the user; `ours` is the revision that this vault's file was."""

    conflict: Conflict
    ours: str | None


@dataclass(frozen=True, slots=True)
class Restored:
    """A file that came back, and the name it has now."""

    file: TrashedFile
    path: str


@dataclass(frozen=True, slots=True)
class CareRecords:
    """The records of a database, and where it is."""

    site: Site
    records: LivesyncRecords = field(repr=False)


def check_livesync(config: Config, options: Options | None = None) -> LivesyncCheck:
    """Look at the vault, the records and the database; nothing is changed.

    Raises:
        ConfigInvalid: LiveSync is not set up.
    """
    with open_records(config, options) as kept:
        records = kept.records
        member: Membership | None = None
        trouble: ObsidianRagError | None = None
        try:
            with _couch(config, options) as (site, couch):
                member = rehearse(couch, _access(site), records)
        except ObsidianRagError as error:
            trouble = error
        disk, warnings = _looked_through(config, kept, member)
        return LivesyncCheck(
            quarantined=tuple(records.quarantined()),
            conflicts=tuple(records.conflicts()),
            left_out=tuple(sorted(disk.left_out.items())),
            warnings=warnings,
            filtered=tuple(sorted(disk.filtered.items())),
            files=records.count(),
            trouble=trouble,
        )


def waiting_conflicts(
    config: Config, options: Options | None = None
) -> tuple[WaitingConflict, ...]:
    """Every conflict that waits for the user, the oldest first.

    Raises:
        ConfigInvalid: LiveSync is not set up.
    """
    with open_records(config, options) as kept:
        return tuple(
            WaitingConflict(one, known.rev if (known := kept.records.file(one.doc_id)) else None)
            for one in kept.records.conflicts()
        )


def resolve_conflict(
    config: Config, note: str, keep: str, options: Options | None = None
) -> Resolved:
    """Settle the conflict of one note; `keep` is ours, theirs, both or a revision.

    Raises:
        NotFound: the note is in no conflict.
        ObsidianRagError: as for `Resolver.resolve`, or the database cannot be reached or used.
    """
    with _resolver(config, note, options) as (resolver, conflict):
        return resolver.resolve(conflict, keep)


def merge_conflict(config: Config, note: str, content: bytes) -> Resolved:
    """Settle the conflict of one note with a text of the user's.

    Raises:
        ObsidianRagError: as for `resolve_conflict`.
    """
    with _resolver(config, note, None) as (resolver, conflict):
        return resolver.merge(conflict, content)


def conflict_versions(config: Config, note: str) -> tuple[Conflict, tuple[Version, ...]]:
    """A conflict and every side of it, ours first; nothing is changed.

    Raises:
        ObsidianRagError: as for `resolve_conflict`.
    """
    with _resolver(config, note, None) as (resolver, conflict):
        return conflict, resolver.versions(conflict)


@contextlib.contextmanager
def _resolver(
    config: Config, note: str, options: Options | None
) -> Iterator[tuple[Resolver, Conflict]]:
    with open_records(config, options) as kept:
        conflict = _named(kept.records.conflicts(), note)
        with _couch(config, options) as (site, couch):
            member = rehearse(couch, _access(site), kept.records)
            yield (
                Resolver(
                    root=site.root,
                    trash=trash_folder(config),
                    couch=couch,
                    codec=member.codec,
                    records=kept.records,
                    is_read_only=config.settings.livesync.read_only,
                ),
                conflict,
            )


def finish_resolving(config: Config, options: Options | None = None) -> None:
    """Bring what was settled to both sides; a node that runs does so by itself.

    Raises:
        ObsidianRagError: as for `sync_once`.
    """
    if not is_node_running(config, place_of(config, options).key):
        sync_once(config, options)


def trashed_files(config: Config, options: Options | None = None) -> tuple[TrashedFile, ...]:
    """What can be restored, the latest first.

    Raises:
        ConfigInvalid: LiveSync is not set up.
    """
    with open_records(config, options) as kept:
        return tuple(kept.records.trash())


def restore_trashed(config: Config, wanted: str, options: Options | None = None) -> Restored:
    """Put a file back into the vault, by its number or path; the latest one of a path.

    Raises:
        NotFound: the trash has none.
        ObsidianRagError: it cannot be written.
    """
    with open_records(config, options) as kept:
        return put_back(config, kept, _chosen(kept.records.trash(), wanted))


def put_back(config: Config, kept: CareRecords, file: TrashedFile) -> Restored:
    """Put one file of the trash back into the vault.

    Raises:
        NotFound: the trash has it no more.
        ObsidianRagError: it cannot be written.
    """
    place = kept_at(config, file.stored_as)
    entry = restore_file(kept.site.root, file.path, place)
    discard_kept(place)
    kept.records.drop_trash(file.trash_id)
    return Restored(file, entry.rel_path)


def unlock_database(config: Config, options: Options | None = None) -> None:
    """Have this device accepted by a database that was locked or rebuilt; files stay as they are.

    Raises:
        Busy: a node is at work.
        ObsidianRagError: the database cannot be reached or used.
    """
    with (
        open_records(config, options) as kept,
        _couch(config, options) as (site, couch),
        node_lock(config, site.key),
    ):
        unlock(couch, kept.records)


@contextlib.contextmanager
def open_records(config: Config, options: Options | None = None) -> Iterator[CareRecords]:
    """What we remember of the database of the settings; whether a node works with it or not.

    Raises:
        ConfigInvalid: LiveSync is not set up.
    """
    site = place_of(config, options)
    with contextlib.closing(open_database(config)) as database:
        yield CareRecords(site, LivesyncRecords(database, site.key))


@contextlib.contextmanager
def _couch(config: Config, options: Options | None) -> Iterator[tuple[Site, Couch]]:
    site = site_of(config, options)
    with contextlib.closing(Couch(site.remote)) as couch:
        yield site, couch


def _access(site: Site) -> Access:
    return Access(site.remote, site.passphrase, site.root.name)


def _looked_through(
    config: Config, kept: CareRecords, member: Membership | None
) -> tuple[Disk, tuple[tuple[str, str], ...]]:
    """The vault as sync sees it, and the files that other systems cannot write."""
    # Without the database, its devices are taken to have agreed on what is usual.
    tweaks = member.tweaks if member else Tweaks()
    codec = member.codec if member else Codec(Tweaks(), None, None)
    most = member.max_bytes if member else int(tweaks.sync_max_size_in_mb * _MB)

    def spelling_of(doc_id: str) -> str | None:
        known = kept.records.file(doc_id)
        return known.path if known is not None and known.content_hash else None

    filters = Filters(filters_of(config), tweaks, kept.site.root)
    disk = Disk(kept.site.root, codec, most, spelling_of, filters)
    disk.look()
    return disk, tuple(sorted(disk.unwelcome.items()))


def _named(conflicts: list[Conflict], note: str) -> Conflict:
    exact = [one for one in conflicts if note in (one.path, one.doc_id)]
    wanted = note.removesuffix(".md").casefold()
    alike = [
        one for one in conflicts if wanted in (_stem(one.path), _stem(one.path).rpartition("/")[2])
    ]
    found = exact or alike
    if not found:
        raise NotFound(
            f"There is no conflict of '{note[:200]}'.",
            "`obsidian-rag livesync resolve` lists them.",
        )
    if len(found) > 1:
        raise InvalidArgument(
            f"'{note[:200]}' could be {len(found)} notes.",
            f"Give the whole path, such as '{found[0].path}'.",
        )
    return found[0]


def _stem(path: str) -> str:
    return path.removesuffix(".md").casefold()


def _chosen(files: list[TrashedFile], wanted: str) -> TrashedFile:
    for file in files:
        if wanted in (str(file.trash_id), file.path):
            return file
    raise NotFound(
        f"The trash has no file '{wanted[:200]}'.", "`obsidian-rag livesync restore` lists them."
    )
