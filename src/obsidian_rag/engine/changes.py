"""How far the vault has moved on from the index: a short walk compared with the manifest."""

import time

from obsidian_rag.engine.engine import Engine
from obsidian_rag.index import UNSETTLED, compare
from obsidian_rag.store import Links, Manifest
from obsidian_rag.vault import scan


def changed_files(engine: Engine, seconds: float) -> tuple[int, bool]:
    """How many files differ from the index, and whether the walk got through in time.

    A walk that was cut off says nothing about vanished files. A file whose timestamp is merely too
    young to be trusted does not count as changed.

    Raises:
        NotFound: the vault's folder is not there.
    """
    link = Links(engine.database).primary()
    known = Manifest(engine.database).known(link.link_id) if link else {}
    deadline = time.monotonic() + seconds
    found = scan(engine.config.vault_root, engine.rules, stop=lambda: time.monotonic() > deadline)
    difference = compare(found.files, known, found.unreadable_folders)
    updated = sum(
        1
        for entry in difference.updated
        if known[entry.rel_path].mtime_ns != UNSETTLED
        or known[entry.rel_path].size_bytes != entry.size_bytes
    )
    vanished = len(difference.vanished) if found.is_complete else 0
    return len(difference.created) + updated + vanished, found.is_complete
