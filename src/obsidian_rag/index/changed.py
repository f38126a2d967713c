"""How far vaults have moved on from the index: a short walk compared with the manifest."""

import time
from collections.abc import Iterable

from obsidian_rag.index.plan import UNSETTLED, compare
from obsidian_rag.store import Database, Manifest
from obsidian_rag.vault import Vault


def changed_files(vaults: Iterable[Vault], database: Database, seconds: float) -> tuple[int, bool]:
    """How many files differ from the index, and whether the walk got through in time.

    Vaults that are paused are left alone.

    A walk that was cut off says nothing about vanished files. A file whose timestamp is merely too
    young to be trusted does not count as changed.

    Raises:
        NotFound: the vault's folder is not there.
    """
    deadline = time.monotonic() + seconds
    changed, is_complete = 0, True
    for vault in vaults:
        if not vault.is_paused:
            differing, is_whole = _changed_in(vault, database, deadline)
            changed, is_complete = changed + differing, is_complete and is_whole
    return changed, is_complete


def _changed_in(vault: Vault, database: Database, deadline: float) -> tuple[int, bool]:
    known = Manifest(database).known(vault.link_id)
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
