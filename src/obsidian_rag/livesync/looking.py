"""The database as we see it: the state of documents, and their content when it is needed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from obsidian_rag.errors import LivesyncPassphrase, LivesyncUnreadable
from obsidian_rag.livesync.couch import Couch, Document
from obsidian_rag.livesync.decision import (
    Conflicted,
    Deleted,
    Live,
    NoDocument,
    RemoteState,
    Tombstone,
)
from obsidian_rag.livesync.documents import Codec, MissingChunks
from obsidian_rag.livesync.entries import Entry
from obsidian_rag.livesync.path_ids import takes_part
from obsidian_rag.store import SyncedFile

_TYPES = ("plain", "newnote", "notes", None)


@dataclass(frozen=True, slots=True)
class View:
    """One document; `trouble` says why it must be left alone."""

    state: RemoteState
    document: Document | None = None
    entry: Entry | None = None
    trouble: LivesyncUnreadable | None = None


class Looker:
    """Reads documents and puts files together."""

    def __init__(self, couch: Couch, codec: Codec) -> None:
        self._couch = couch
        self._codec = codec

    def look(self, ids: Sequence[str], known: Mapping[str, SyncedFile]) -> dict[str, View]:
        """The present state of documents; one that is no file of a vault is left out."""
        views = {doc_id: View(NoDocument()) for doc_id in ids}
        for document in self._couch.bulk_get([(doc_id, None) for doc_id in ids]):
            doc_id = str(document.get("_id"))
            if doc_id in views:
                views[doc_id] = self._view(document, known.get(doc_id))
        return views

    def contents(self, entries: Iterable[Entry]) -> dict[str, bytes | LivesyncUnreadable]:
        """The files of these entries, by id; or why one cannot be had.

        Raises:
            LivesyncPassphrase: nothing of it can be decrypted.
        """
        wanted = list(entries)
        chunks = self._couch.all_docs(
            list(dict.fromkeys(child for entry in wanted for child in entry.children))
        )
        found: dict[str, bytes | LivesyncUnreadable] = {}
        failure: LivesyncPassphrase | None = None
        for entry in wanted:
            try:
                found[entry.id] = self._codec.assemble(entry, chunks)
            except LivesyncUnreadable as error:
                found[entry.id] = error
            except LivesyncPassphrase as error:
                failure = error
                found[entry.id] = LivesyncUnreadable(error.message, error.suggestion)
        if failure is not None and not any(isinstance(one, bytes) for one in found.values()):
            raise failure
        return found

    def revision(self, doc_id: str, rev: str) -> tuple[Entry, bytes] | None:
        """An older or rival revision with its content; None if it cannot be had any more."""
        document = self._couch.get(doc_id, rev=rev, conflicts=False)
        if document is None:
            return None
        try:
            entry = self._codec.open_entry(document)
            content = self.contents([entry])[doc_id]
        except (LivesyncUnreadable, LivesyncPassphrase):
            return None
        return (entry, content) if isinstance(content, bytes) else None

    def _view(self, document: Document, known: SyncedFile | None) -> View:
        rev = str(document.get("_rev"))
        if document.get("_deleted") is True:
            was_deleted = document.get("deleted") is True or (
                known is not None and known.content_hash is None
            )
            return View(Tombstone(rev, was_deleted), document)
        if document.get("type") not in _TYPES:
            return View(NoDocument(), document, trouble=_foreign(document))
        try:
            entry = self._codec.open_entry(document)
            reason = takes_part(entry.path)
            if reason is not None:
                raise LivesyncUnreadable(
                    f"The path {entry.path!r} {reason}.", "Rename the file on another device."
                )
        except (LivesyncUnreadable, LivesyncPassphrase) as error:
            trouble = LivesyncUnreadable(error.message, error.suggestion)
            return View(Live(rev, "", None), document, trouble=trouble)
        if entry.conflicts:
            return View(Conflicted(rev, (rev, *entry.conflicts)), document, entry)
        if entry.is_deleted:
            return View(Deleted(rev), document, entry)
        return View(Live(rev, entry.path), document, entry)


def is_missing(trouble: LivesyncUnreadable | None) -> bool:
    """Whether only chunks are missing, which may still come."""
    return isinstance(trouble, MissingChunks)


def _foreign(document: Document) -> LivesyncUnreadable:
    kind = str(document.get("type"))[:40]
    return LivesyncUnreadable(f"The document is of another kind ({kind!r}).", "")
