"""What a user does by hand: check, resolve conflicts, restore files, unlock."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from obsidian_rag.config import Config
from obsidian_rag.errors import InvalidArgument, NotFound, ObsidianRagError
from obsidian_rag.livesync.codec import Codec, Tweaks
from obsidian_rag.livesync.couchdb import Couch
from obsidian_rag.livesync.deletions import MOVED, HeldAnswer, answer_held, held_deletions
from obsidian_rag.livesync.disk import Disk
from obsidian_rag.livesync.filters import Filters
from obsidian_rag.livesync.membership import Membership, rehearse, unlock
from obsidian_rag.livesync.resolution import Resolved, Resolver, Version
from obsidian_rag.livesync.session import lock_records, sync_once, trash_of
from obsidian_rag.livesync.site import (
    Options,
    Site,
    filters_of,
    is_node_running,
    open_database,
    open_records,
    place_of,
    site_of,
)
from obsidian_rag.livesync.status import SyncReport, report_on
from obsidian_rag.store import Conflict, LivesyncRecords, TrashedFile

_AGO = re.compile(r"(\d{1,6})\s*([smhdw])", re.IGNORECASE)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
# Copies of versions: these notes were not removed from the vault.
_COPY_REASONS = ("merged", "conflict settled", MOVED)


@dataclass(frozen=True, slots=True)
class WaitingConflict:
    """A conflict that waits for the user; `ours` is the revision last synced with this vault."""

    conflict: Conflict
    ours: str | None


def check_livesync(config: Config, options: Options | None = None) -> SyncReport:
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
        disk.scan()
        return replace(report_on(disk, records), files=records.count(), trouble=trouble)


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


# -- restore


@dataclass(frozen=True, slots=True)
class Restored:
    """A restored file and its new path."""

    file: TrashedFile
    path: str


@dataclass(frozen=True, slots=True)
class RestoredMany:
    """What was or would be restored; `held` are files whose deletion elsewhere is refused."""

    restored: tuple[Restored, ...]
    failed: tuple[tuple[TrashedFile, ObsidianRagError], ...]
    held: tuple[str, ...]
    left: int


def trashed_files(config: Config, options: Options | None = None) -> tuple[TrashedFile, ...]:
    """What can be restored, the latest first.

    Raises:
        ConfigInvalid: LiveSync is not set up.
    """
    with open_records(config, options) as (_, records):
        return tuple(records.trash())


def restore_trashed(config: Config, wanted: str, options: Options | None = None) -> Restored:
    """Put a file back into the vault, by its number or path; for a path, the latest one.

    Raises:
        NotFound: the trash has no such file.
        ObsidianRagError: it cannot be written.
    """
    with open_records(config, options) as (site, records):
        for file in records.trash():
            if wanted in (str(file.trash_id), file.path):
                return Restored(file, trash_of(config, site, records).put_back(file))
    raise NotFound(
        f"The trash has no file '{wanted[:200]}'.", "`obsidian-rag livesync restore` lists them."
    )


def restore_many(
    config: Config,
    since: str | None = None,
    options: Options | None = None,
    *,
    is_dry: bool = False,
) -> RestoredMany:
    """Put back every file that was deleted on other devices, or those deleted since then.

    The latest version of each path is restored. Without `since`, deletions that wait for the user
    are refused as well: the next sync sends those files to the other devices again.

    Raises:
        InvalidArgument: `since` is not a time.
        ConfigInvalid: LiveSync is not set up.
    """
    begin = moment_of(since) if since is not None else None
    restored: list[Restored] = []
    failed: list[tuple[TrashedFile, ObsidianRagError]] = []
    with open_records(config, options) as (site, records):
        trash, listed = trash_of(config, site, records), records.trash()
        chosen = _latest_of_each_path(listed, begin)
        for file in chosen:
            try:
                restored.append(Restored(file, file.path if is_dry else trash.put_back(file)))
            except ObsidianRagError as error:
                failed.append((file, error))
        held = _held_paths(records) if begin is None else ()
        if held and not is_dry:
            answer_held(records, HeldAnswer.REFUSE)
    return RestoredMany(tuple(restored), tuple(failed), held, len(listed) - len(chosen))


def take_held_deletions(config: Config, options: Options) -> int:
    """Confirm the deletions that another process's node holds; return how many."""
    with open_records(config) as (site, records):
        held = held_deletions(records)
        is_meant = place_of(config, options).key == site.key
        if not held or not is_meant or not is_node_running(config, records.remote):
            return 0
        answer_held(records, HeldAnswer.TAKE)
        return len(held)


def moment_of(text: str) -> datetime:
    """The time for `2h`, `2026-11-16` or `2026-11-16T08:30`; without a zone it is local."""
    wanted = text.strip()
    if ago := _AGO.fullmatch(wanted):
        return datetime.now(UTC) - timedelta(**{_UNITS[ago[2].lower()]: int(ago[1])})
    try:
        return datetime.fromisoformat(wanted).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidArgument(
            f"'{text[:60]}' is not a time.",
            "Write how long ago (30m, 2h, 3d, 1w), a date (2026-11-16) or a time"
            " (2026-11-16T08:30).",
        ) from None


def _latest_of_each_path(listed: list[TrashedFile], begin: datetime | None) -> list[TrashedFile]:
    """The file removed last for each path, the oldest removal first."""
    found: dict[str, TrashedFile] = {}
    for file in listed:  # the latest first
        is_asked_for = begin is None or datetime.fromisoformat(file.removed_at) >= begin
        if is_asked_for and file.reason not in _COPY_REASONS:
            found.setdefault(file.path, file)
    return list(reversed(found.values()))


def _held_paths(records: LivesyncRecords) -> tuple[str, ...]:
    known = (records.file(doc_id) for doc_id in held_deletions(records))
    return tuple(sorted(file.path for file in known if file is not None))
