"""Restore files that sync removed from the vault, or refuse removals that it holds."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from obsidian_rag.config import Config
from obsidian_rag.errors import InvalidArgument, NotFound, ObsidianRagError
from obsidian_rag.livesync.deletions import MOVED, HeldAnswer, answer_held, held_deletions
from obsidian_rag.livesync.session import is_node_running, open_records, trash_of
from obsidian_rag.livesync.site import Options, place_of
from obsidian_rag.store import LivesyncRecords, TrashedFile

_AGO = re.compile(r"(\d{1,6})\s*([smhdw])", re.IGNORECASE)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
# Copies of versions: these notes were not removed from the vault.
_COPY_REASONS = ("merged", "conflict settled", MOVED)


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
    """The time for `2h`, `2026-11-16` or `2026-11-16T08:30`; without a zone it is local.

    Raises:
        InvalidArgument: it is not a time.
    """
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
