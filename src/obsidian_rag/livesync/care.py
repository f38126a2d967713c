"""What a user does by hand: check, resolve conflicts, unlock."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from obsidian_rag.config import Config
from obsidian_rag.errors import InvalidArgument, NotFound, ObsidianRagError
from obsidian_rag.livesync.codec import Codec, Tweaks
from obsidian_rag.livesync.couchdb import Couch
from obsidian_rag.livesync.disk import Disk
from obsidian_rag.livesync.filters import Filters
from obsidian_rag.livesync.membership import Membership, rehearse, unlock
from obsidian_rag.livesync.resolution import Resolved, Resolver, Version
from obsidian_rag.livesync.session import (
    is_node_running,
    lock_records,
    open_database,
    open_records,
    sync_once,
    trash_of,
)
from obsidian_rag.livesync.site import Options, Site, filters_of, site_of
from obsidian_rag.store import Conflict, Quarantined


@dataclass(frozen=True, slots=True)
class LivesyncCheck:
    """What is not synced, or not as it should be; `trouble` is why the database is unusable."""

    quarantined: tuple[Quarantined, ...]
    conflicts: tuple[Conflict, ...]
    left_out: tuple[tuple[str, str], ...]
    warnings: tuple[tuple[str, str], ...]
    filtered: tuple[tuple[str, str], ...]
    files: int
    trouble: ObsidianRagError | None

    @property
    def is_clean(self) -> bool:
        """Whether nothing needs attention; warnings and filters do not count."""
        return not (self.quarantined or self.conflicts or self.left_out or self.trouble)


@dataclass(frozen=True, slots=True)
class WaitingConflict:
    """A conflict that waits for the user; `ours` is the revision last synced with this vault."""

    conflict: Conflict
    ours: str | None


def check_livesync(config: Config, options: Options | None = None) -> LivesyncCheck:
    """Look at the vault, the records and the database; nothing is changed.

    Raises:
        ConfigInvalid: LiveSync is not set up.
    """
    with open_records(config, options) as (place, records):
        member: Membership | None = None
        trouble: ObsidianRagError | None = None
        try:
            with _couch(config, options) as (site, couch):
                member = rehearse(couch, site, records)
        except ObsidianRagError as error:
            trouble = error
        # Without the database, assume the default settings.
        tweaks = member.tweaks if member else Tweaks()
        codec = member.codec if member else Codec(tweaks, None, None)
        filters = Filters(filters_of(config), tweaks, place.root)
        disk = Disk(place.root, codec, tweaks.max_bytes, filters, records)
        disk.look()
        return LivesyncCheck(
            quarantined=tuple(records.quarantined()),
            conflicts=tuple(records.conflicts()),
            left_out=tuple(sorted(disk.left_out.items())),
            warnings=tuple(sorted(disk.unwelcome.items())),
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
    with open_records(config, options) as (_, records):
        return tuple(
            WaitingConflict(one, known.rev if (known := records.file(one.doc_id)) else None)
            for one in records.conflicts()
        )


def resolve_conflict(
    config: Config, note: str, keep: str, options: Options | None = None
) -> Resolved:
    """Resolve the conflict of one note; `keep` is ours, theirs, both or a revision.

    Raises:
        NotFound: the note has no conflict.
        ObsidianRagError: as for `Resolver.resolve`, or the database cannot be reached or used.
    """
    with _resolver(config, note, options) as (resolver, conflict):
        return resolver.resolve(conflict, keep)


def merge_conflict(config: Config, note: str, content: bytes) -> Resolved:
    """Resolve the conflict of one note with the user's own text.

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
    with open_records(config, options) as (_, records):
        conflict = _find_conflict(records.conflicts(), note)
        with _couch(config, options) as (site, couch):
            member = rehearse(couch, site, records)
            yield (
                Resolver(
                    trash=trash_of(config, site, records),
                    couch=couch,
                    codec=member.codec,
                    is_read_only=config.settings.livesync.read_only,
                ),
                conflict,
            )


def finish_resolving(config: Config, options: Options | None = None) -> None:
    """Sync the resolution to both sides; a running node does so by itself.

    Raises:
        ObsidianRagError: as for `sync_once`.
    """
    with open_records(config, options) as (_, records):
        is_running = is_node_running(config, records.remote)
    if not is_running:
        sync_once(config, options)


def unlock_database(config: Config, options: Options | None = None) -> None:
    """Get this device accepted by a locked or rebuilt database; files stay as they are.

    Raises:
        Busy: a node is running.
        ObsidianRagError: the database cannot be reached or used.
    """
    with (
        contextlib.closing(open_database(config)) as database,
        _couch(config, options) as (site, couch),
        lock_records(config, database, couch, site) as records,
    ):
        unlock(couch, records)


@contextlib.contextmanager
def _couch(config: Config, options: Options | None) -> Iterator[tuple[Site, Couch]]:
    site = site_of(config, options)
    with contextlib.closing(Couch(site.remote)) as couch:
        yield site, couch


def _find_conflict(conflicts: list[Conflict], note: str) -> Conflict:
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
