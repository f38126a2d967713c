"""How far the vault has moved on from the index: a short walk compared with the manifest."""

import time
from datetime import UTC, datetime

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.indexing import read_result
from obsidian_rag.errors import IndexStale, NotFound
from obsidian_rag.index import UNSETTLED, compare
from obsidian_rag.store import Manifest

_STALE_AFTER_S = 3600.0
_LOOK_AGAIN_S = 300.0
_WALK_S = 0.3


def changed_files(engine: Engine, seconds: float) -> tuple[int, bool]:
    """How many files differ from the index, and whether the walk got through in time.

    A walk that was cut off says nothing about vanished files. A file whose timestamp is merely too
    young to be trusted does not count as changed.

    Raises:
        NotFound: the vault's folder is not there.
    """
    vault = engine.vaults.one()
    known = Manifest(engine.database).known(vault.link_id) if vault.link_id else {}
    deadline = time.monotonic() + seconds
    found = vault.scan(stop=lambda: time.monotonic() > deadline)
    difference = compare(found.files, known, found.unreadable_folders)
    updated = sum(
        1
        for entry in difference.updated
        if known[entry.rel_path].mtime_ns != UNSETTLED
        or known[entry.rel_path].size_bytes != entry.size_bytes
    )
    vanished = len(difference.vanished) if found.is_complete else 0
    return len(difference.created) + updated + vanished, found.is_complete


def staleness(engine: Engine) -> IndexStale | None:
    """The index is old and the vault has moved on; looked up now and then, not each time."""
    last = str((read_result(engine) or {}).get("last_sync") or "")
    try:
        age = time.time() - datetime.fromisoformat(last).astimezone(UTC).timestamp()
    except ValueError:
        return None
    if age <= _STALE_AFTER_S:
        return None
    now = time.monotonic()
    if engine.looked_for_changes is None or now - engine.looked_for_changes[0] > _LOOK_AGAIN_S:
        engine.looked_for_changes = now, _has_changed(engine)
    if not engine.looked_for_changes[1]:
        return None
    return IndexStale(
        f"The vault has changed since the last sync, {age / 3600:.0f} h ago.",
        "Run `obsidian-rag sync`.",
    )


def _has_changed(engine: Engine) -> bool:
    try:
        return changed_files(engine, _WALK_S)[0] > 0
    except NotFound:
        return False
