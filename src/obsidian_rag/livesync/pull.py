"""What the database says goes into the vault: write, rename, and move to the trash."""

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from obsidian_rag.errors import (
    IndexerFailed,
    LivesyncUnreadable,
    NoteChanged,
    ObsidianRagError,
    SecurityViolation,
)
from obsidian_rag.livesync.codec.path_ids import normalise
from obsidian_rag.livesync.decision import Conflicted, Present
from obsidian_rag.store import SyncedFile
from obsidian_rag.vault import (
    FileEntry,
    content_hash,
    in_the_way,
    rename_file,
    replace_file,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from obsidian_rag.livesync.case import Case
    from obsidian_rag.livesync.reconcile import Reconciler

_log = logging.getLogger(__name__)
_WRITERS = 4


class _Blocked(LivesyncUnreadable):
    """A file has the place of a folder that another one needs, or the other way round."""

    def __init__(self, path: str, obstacle: str) -> None:
        kind = "a folder" if obstacle == path else "a file"
        super().__init__(
            f"'{path}' cannot be written, because '{obstacle}' is {kind} here.",
            f"Rename or remove '{obstacle}'.",
        )


class Puller:
    """Changes files for one reconciler; never one whose content is not what was decided on."""

    def __init__(self, reconciler: "Reconciler") -> None:
        self._reconciler = reconciler

    def write(self, cases: "Sequence[Case]") -> list[str]:
        """Write files; the documents that must be looked at again."""
        if not cases:
            return []
        with ThreadPoolExecutor(_WRITERS) as pool:
            outcomes = list(pool.map(self._write, cases))
        written: list[SyncedFile] = []
        again: list[str] = []
        for case, outcome in zip(cases, outcomes, strict=True):
            if isinstance(outcome, FileEntry):
                written.append(self._written(case, outcome))
                # A spelling that was changed here is still to be sent, rivals to be reported.
                is_spelled = normalise(outcome.rel_path) == written[-1].path
                if not is_spelled or isinstance(case.view.state, Conflicted):
                    again.append(case.doc_id)
            elif isinstance(outcome, _Blocked):
                self._reconciler.wait_for_place(case, outcome)
            elif isinstance(outcome, NoteChanged):
                self._reconciler.disk.doubt(case.doc_id)
                again.append(case.doc_id)
            else:
                self._reconciler.fail(case, outcome)
        self._reconciler.records.put(*written)
        for file in written:
            self._reconciler.release(file.doc_id)
        self._reconciler.stats.add(pulled=len(written))
        return again

    def trash(self, case: "Case") -> None:
        """Take a file out of the vault, since it was deleted elsewhere."""
        reconciler, local, entry = self._reconciler, case.file.local, case.file.entry
        assert isinstance(local, Present) and entry is not None
        reason = reconciler.deletions.reason(case)
        reconciler.trash.remove(entry.rel_path, local.content_hash, entry.size_bytes, reason)
        reconciler.disk.drop(case.doc_id)
        reconciler.records.put(reconciler.deleted_at(case, case.rev))
        reconciler.stats.add(deleted_here=1)
        _log.info("Deleted here: %s (`livesync restore` brings it back)", case.path)

    def respell(self, case: "Case") -> bool:
        """Spell a file's path as the document does; whether to look again."""
        reconciler, local, entry = self._reconciler, case.file.local, case.file.entry
        assert isinstance(local, Present) and entry is not None and case.view.entry is not None
        wanted = case.view.entry.path
        try:
            moved = rename_file(reconciler.disk.root, entry.rel_path, wanted, local.content_hash)
        except NoteChanged:
            if wanted not in reconciler.disk.left_out:
                raise
            raise LivesyncUnreadable(
                f"'{wanted}' and '{entry.rel_path}' differ only in case, and both are here.",
                "Rename or remove one of them.",
            ) from None
        except IndexerFailed:
            # The disk knows one spelling only: what is in the file matters more.
            reconciler.disk.case_locked.add(case.doc_id)
            return True
        reconciler.disk.put(case.doc_id, moved)
        reconciler.stats.add(renamed=1)
        return True

    def _write(self, case: "Case") -> FileEntry | ObsidianRagError:
        assert case.content is not None and case.view.entry is not None
        local, entry = case.file.local, case.file.entry
        expected = local.content_hash if isinstance(local, Present) else None
        path = entry.rel_path if entry is not None else case.view.entry.path
        mtime_ns = case.view.entry.mtime_ms * 1_000_000
        root = self._reconciler.disk.root
        try:
            return replace_file(root, path, expected, case.content, mtime_ns)
        except ObsidianRagError as error:
            if expected is not None or isinstance(error, SecurityViolation):
                return error
            if (obstacle := in_the_way(root, path)) is not None:
                return _Blocked(path, obstacle)
            twin = self._reconciler.disk.owner_of(path) if isinstance(error, NoteChanged) else None
            return error if twin in (None, case.doc_id) else _twin_error(path)

    def _written(self, case: "Case", entry: FileEntry) -> SyncedFile:
        assert case.content is not None
        reconciler, content = self._reconciler, content_hash(case.content)
        reconciler.disk.put(case.doc_id, entry)
        if case.known is None or case.known.content_hash is None:
            reconciler.deletions.arrived(content)
        _log.info("Pulled: %s", case.path)
        return reconciler.synced(case, content, entry)


def _twin_error(path: str) -> LivesyncUnreadable:
    return LivesyncUnreadable(
        f"The database has '{path}' twice, in two Unicode forms, and this disk has one file of it.",
        "Rename one of the two on another device.",
    )
