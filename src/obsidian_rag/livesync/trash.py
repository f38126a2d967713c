"""The trash: files that sync removed, kept and listed in the data folder for a while."""

import contextlib
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.store import LivesyncRecords, TrashedFile, now
from obsidian_rag.vault import discard_kept, keep_copy, remove_file, restore_file


@dataclass(frozen=True, slots=True)
class Trash:
    """The folder of trashed files, the vault they come from, and their list."""

    folder: Path
    root: Path
    records: LivesyncRecords

    def keep(self, path: str, content: bytes, mtime_ns: int, reason: str) -> None:
        """Put a copy of a version into the trash; the vault stays as it is."""
        _, place = self._add(path, len(content), reason)
        keep_copy(self.root, content, mtime_ns, place)

    def remove(self, path: str, content_hash: str, size: int, reason: str) -> None:
        """Move the file with this content out of the vault.

        Raises:
            ObsidianRagError: as for `remove_file`.
        """
        row, place = self._add(path, size, reason)
        try:
            remove_file(self.root, path, content_hash, place)
        except ObsidianRagError:
            if not place.exists():
                self.records.drop_trash(row)
            raise

    def put_back(self, file: TrashedFile) -> str:
        """Put a file back into the vault; return its new path.

        Raises:
            NotFound: the trash no longer has it.
            ObsidianRagError: it cannot be written.
        """
        entry = restore_file(self.root, file.path, self._place(file))
        self._drop(file)
        return entry.rel_path

    def drop_older_than(self, days: float) -> None:
        """Delete what has been in the trash for longer than this."""
        oldest = datetime.now(UTC) - timedelta(days=days)
        for file in self.records.trash():
            if datetime.fromisoformat(file.removed_at) < oldest:
                with contextlib.suppress(ObsidianRagError):  # retried next time
                    self._drop(file)

    def _add(self, path: str, size: int, reason: str) -> tuple[int, Path]:
        """List a new file and return its place; listed first, as an unlisted file is lost."""
        place = self.folder / f"{time.time_ns()}-{secrets.token_hex(4)}"
        return self.records.add_trash(path, str(place), size, now(), reason), place

    def _place(self, file: TrashedFile) -> Path:
        # The data folder may have been moved since.
        return self.folder / Path(file.stored_as).name

    def _drop(self, file: TrashedFile) -> None:
        discard_kept(self._place(file))
        self.records.drop_trash(file.trash_id)
