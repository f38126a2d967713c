"""What LiveSync's own client does when it starts, as a rule written down on its own.

Told from its documentation and behaviour: it remembers the time that each file had when it last
looked, compares times in steps of two seconds, and then decides for each path.
"""

from dataclasses import dataclass, field

from tests.livesync.third import ThirdClient

_STEP_MS = 2000


@dataclass
class OfficialDevice:
    """A device with files, by their lower-case paths: content and time."""

    third: ThirdClient
    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    last_seen: dict[str, int] = field(default_factory=dict)

    def receive(self) -> None:
        """Be online: whatever is in the database is applied, whatever its time."""
        for doc_id, entry in self.third.entries().items():
            if entry.get("deleted"):
                self.files.pop(doc_id, None)
            else:
                self.files[doc_id] = (self.third.leaf(entry).content, entry["mtime"])

    def scan(self) -> dict[str, str]:
        """Start: what it decides for each path; what it would do to its own files is done."""
        entries = self.third.entries()
        done = {
            doc_id: self._pair(doc_id, entries.get(doc_id)) for doc_id in {*self.files, *entries}
        }
        return {doc_id: what for doc_id, what in done.items() if what != "skip"}

    def _pair(self, doc_id: str, entry: dict[str, object] | None) -> str:
        file = self.files.get(doc_id)
        if file is not None:
            self.last_seen[doc_id] = file[1]
        if entry is None:
            return "store"
        if entry.get("deleted"):
            return "skip"
        mtime = entry["mtime"]
        assert isinstance(mtime, int)
        if file is None:
            if self.last_seen.get(doc_id, -1) // _STEP_MS >= mtime // _STEP_MS:
                return "delete in the database"
        elif file[1] // _STEP_MS == mtime // _STEP_MS:
            return "skip"
        elif file[1] // _STEP_MS > mtime // _STEP_MS:
            return "store"
        self.files[doc_id] = (self.third.leaf(entry).content, mtime)
        self.last_seen[doc_id] = mtime
        return "take"
