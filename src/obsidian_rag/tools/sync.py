"""LiveSync conflicts and trash, as the page shows them: only for the owner, never for agents."""

from collections.abc import Iterator, Mapping

from obsidian_rag.engine import Engine
from obsidian_rag.errors import InvalidArgument, ObsidianRagError
from obsidian_rag.livesync import (
    conflict_versions,
    find_hunks,
    finish_resolving,
    livesync_state,
    merge_conflict,
    resolve_conflict,
    restore_trashed,
    status_fields,
    synced_link,
    trashed_files,
    waiting_conflicts,
)
from obsidian_rag.tools.dispatch import Found, NoParams, tool
from obsidian_rag.tools.envelope import Envelope, success
from obsidian_rag.tools.guard import Caller

_MAX_SHOWN_BYTES = 500_000


def sync_conflicts(engine: Engine) -> Envelope:
    """Unresolved conflicts, the oldest first.

    Raises:
        ConfigInvalid: LiveSync is not set up.
    """
    waiting = (one.conflict for one in waiting_conflicts(engine.config))
    listed = [{"path": one.path, "since": one.since, "revs": list(one.revs)} for one in waiting]
    return _answer(engine, {"conflicts": listed})


def sync_conflict(engine: Engine, path: str) -> Envelope:
    """Both sides of a conflict, and the lines in which they differ.

    Raises:
        NotFound: the note has no conflict.
        ObsidianRagError: the database cannot be reached or used.
    """
    conflict, versions = conflict_versions(engine.config, path)
    sides = [
        {
            "is_ours": one.is_ours,
            "rev": one.rev,
            "mtime_ms": one.mtime_ms,
            "is_deleted": one.content is None,
            "text": _text(one.content),
        }
        for one in versions
    ]
    texts = [_text(one.content) for one in versions]
    rows = None
    if len(texts) == 2 and texts[0] is not None and texts[1] is not None:
        rows = list(_rows(texts[0], texts[1]))
    data = {"path": conflict.path, "since": conflict.since, "sides": sides, "rows": rows}
    return _answer(engine, data)


def sync_resolve(engine: Engine, path: str, keep: str, text: str | None = None) -> Envelope:
    """Resolve a conflict: keep ours, theirs, both or a revision, or `merge` with this text.

    Raises:
        InvalidArgument: the text of a merge is missing.
        ObsidianRagError: as for `sync_conflict`.
    """
    config = engine.config
    if keep == "merge":
        if text is None:
            raise InvalidArgument("A merge needs its text.", "Send the merged text.")
        done = merge_conflict(config, path, text.encode("utf-8"))
    else:
        done = resolve_conflict(config, path, keep)
    trouble = None
    try:
        finish_resolving(config)
    except ObsidianRagError as error:  # the next sync sends it
        trouble = error
    data = {"path": done.path, "kept": done.kept, "kept_as": list(done.kept_as)}
    return _answer(engine, data, trouble)


def sync_trash(engine: Engine) -> Envelope:
    """Files that sync removed from the vault and that can be restored, the latest first.

    Raises:
        ConfigInvalid: LiveSync is not set up.
    """
    return _answer(engine, {"files": [one.fields() for one in trashed_files(engine.config)]})


def sync_restore(engine: Engine, trash_id: int) -> Envelope:
    """Restore a file from the trash; under another name if its name is taken.

    Raises:
        NotFound: there is no such file in the trash.
        ObsidianRagError: it cannot be written.
    """
    done = restore_trashed(engine.config, str(trash_id))
    return _answer(engine, {"path": done.path, "was": done.file.path})


def _answer(
    engine: Engine, data: Mapping[str, object], trouble: ObsidianRagError | None = None
) -> Envelope:
    """An answer with paths below the synced folder, and the link id of that vault, if any."""
    return success({"link_id": synced_link(engine.config), **data}, trouble=trouble)


def _text(content: bytes | None) -> str | None:
    if content is None or len(content) > _MAX_SHOWN_BYTES:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _rows(ours: str, theirs: str) -> Iterator[dict[str, object]]:
    """Both texts side by side, in runs of equal or different lines."""
    old, new = tuple(ours.splitlines()), tuple(theirs.splitlines())
    at = 0
    for hunk in find_hunks(old, new):
        if at < hunk.start:
            yield {"is_same": True, "ours": list(old[at : hunk.start]), "theirs": []}
        changed = list(old[hunk.start : hunk.end])
        yield {"is_same": False, "ours": changed, "theirs": list(hunk.lines)}
        at = hunk.end
    if at < len(old):
        yield {"is_same": True, "ours": list(old[at:]), "theirs": []}


@tool(
    "obsidian_sync_status",
    "Is the vault in sync with the user's other devices (Self-hosted LiveSync)? Reports whether"
    " it runs, what was pulled and pushed, what waits and what is not synced. Call it when a"
    " note seems old or missing, or before relying on an edit reaching other devices.",
    NoParams,
    is_read_only=True,
    reports_health=True,
    is_of_installation=True,
)
def sync_status(engine: Engine, _: NoParams, caller: Caller) -> Found:
    """Report whether LiveSync runs, what it did, and what blocks it.

    Only the owner sees which files are not synced; agents get the number.
    """
    config, database = engine.config, engine.database
    state = livesync_state(config, database, engine.live.livesync())
    if state.trouble is not None:
        engine.live.probe_soon()  # the caller may have just fixed it
    fields = status_fields(config, database, state, has_paths=caller.is_owner)
    return Found(fields, state.trouble, state.health)
