"""The database as we see it: the state of documents, and their content when it is needed.

Threat: a document can be made to confuse whoever reads it. It must not keep us from reading its
neighbours, nor make us fetch and hold more than a file can be.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from obsidian_rag.errors import LivesyncPassphrase, LivesyncRefused, LivesyncUnreadable
from obsidian_rag.livesync.codec import Codec, Entry, MissingChunks
from obsidian_rag.livesync.codec.contents import LARGEST_UNTOLD
from obsidian_rag.livesync.codec.entries import FILE_TYPES
from obsidian_rag.livesync.codec.path_ids import (
    ENCRYPTED_CHUNK_PREFIX,
    LAST,
    OBFUSCATED_PREFIX,
    normalise,
    takes_part,
)
from obsidian_rag.livesync.couchdb import Couch, Document
from obsidian_rag.livesync.decision import (
    Conflicted,
    Deleted,
    Live,
    NoDocument,
    RemoteState,
    Tombstone,
)
from obsidian_rag.store import SyncedFile

# Files with more chunks than this are fetched one by one, and given up at the first gap.
_MANY_CHUNKS = 2000
_CHUNKS_AT_ONCE = 500
# What encryption and base64 may add to a file, and to each of its chunks.
_GROWTH, _CHUNK_GROWTH = 4, 1000
# No client nests a document deeper; Python reads and writes no more than about 900 levels.
_DEEPEST = 50
_SAMPLE = 20


@dataclass(frozen=True, slots=True)
class View:
    """One document; `trouble` says why it must be left alone."""

    state: RemoteState
    document: Document | None = None
    entry: Entry | None = None
    trouble: LivesyncUnreadable | None = None


class RemoteReader:
    """Reads documents and puts files together."""

    def __init__(self, couch: Couch, codec: Codec, max_bytes: int = sys.maxsize) -> None:
        self._couch = couch
        self._codec = codec
        self._max_bytes = max_bytes

    def look(self, ids: Sequence[str], known: Mapping[str, SyncedFile]) -> dict[str, View]:
        """The present state of documents; one that is no file of a vault has a trouble."""
        views = {doc_id: View(NoDocument()) for doc_id in ids}
        documents, spoilt = self._carefully(
            ids, lambda some: self._couch.bulk_get([(doc_id, None) for doc_id in some])
        )
        for document in documents:
            doc_id = str(document.get("_id"))
            if doc_id in views:
                views[doc_id] = self._view(document, known.get(doc_id))
        for doc_id in spoilt:
            views[doc_id] = View(Live("", ""), trouble=_spoilt(doc_id))
        return views

    def contents(self, entries: Iterable[Entry]) -> dict[str, bytes | LivesyncUnreadable]:
        """The files of these entries, by id; or why one cannot be had.

        Raises:
            LivesyncPassphrase: nothing in the database can be decrypted any more.
        """
        wanted = list(entries)
        few = [one for one in wanted if self._is_modest(one)]
        chunks = self._chunks(dict.fromkeys(child for entry in few for child in entry.children))
        found: dict[str, bytes | LivesyncUnreadable] = {}
        failure: LivesyncPassphrase | None = None
        for entry in wanted:
            try:
                found[entry.id] = self._content(entry, chunks)
            except LivesyncUnreadable as error:
                found[entry.id] = error
            except LivesyncPassphrase as error:
                failure = error
                found[entry.id] = LivesyncUnreadable(error.message, error.suggestion)
        if failure is not None and not any(isinstance(one, bytes) for one in found.values()):
            # One bad document is set aside; a passphrase that opens nothing is the end.
            if not (sample := encrypted_sample(self._couch)):
                raise failure
            self._codec.check_passphrase(sample)
        return found

    def revision(self, doc_id: str, rev: str) -> tuple[Entry, bytes] | None:
        """An older or rival revision with its content; None if it cannot be had any more."""
        try:
            document = self._couch.get(doc_id, rev=rev, conflicts=False)
        except LivesyncRefused:
            self._couch.info()  # if it is not about the document, this is refused as well
            return None
        if document is None or _is_deep(document):
            return None
        try:
            entry = self._codec.open_entry(document)
            content = self.contents([entry])[doc_id]
        except (LivesyncUnreadable, LivesyncPassphrase):
            return None
        return (entry, content) if isinstance(content, bytes) else None

    def history(self, doc_id: str, rev: str) -> list[str]:
        """The revisions that led to this one, itself first, whether they can be had or not."""
        document = self._couch.get(doc_id, rev=rev, conflicts=False, history=True) or {}
        told = document.get("_revisions")
        start, names = (told.get("start"), told.get("ids")) if isinstance(told, dict) else (0, [])
        if not isinstance(start, int) or not isinstance(names, list):
            return []
        return [f"{start - back}-{name}" for back, name in enumerate(names[:start])]

    def _view(self, document: Document, known: SyncedFile | None) -> View:
        rev = str(document.get("_rev"))
        if document.get("_deleted") is True:
            was_deleted = document.get("deleted") is True or (
                known is not None and known.content_hash is None
            )
            return View(Tombstone(rev, was_deleted), document)
        kind = document.get("type")
        if isinstance(kind, str) and kind not in FILE_TYPES:
            return View(NoDocument(), document, trouble=_foreign(kind))
        try:
            entry = self._opened(document)
        except (LivesyncUnreadable, LivesyncPassphrase) as error:
            trouble = LivesyncUnreadable(error.message, error.suggestion)
            return View(Live(rev, ""), document, trouble=trouble)
        if entry.conflicts:
            return View(Conflicted(rev, (rev, *entry.conflicts)), document, entry)
        if entry.is_deleted:
            return View(Deleted(rev), document, entry)
        return View(Live(rev, normalise(entry.path)), document, entry)

    def _opened(self, document: Document) -> Entry:
        if _is_deep(document):
            raise LivesyncUnreadable(
                "A document of the database is nested too deeply.",
                "Save the file again on a device that has it.",
            )
        entry = self._codec.open_entry(document)
        reason = takes_part(entry.path)
        if reason is not None:
            raise LivesyncUnreadable(
                f"The path {entry.path!r} {reason}.", "Rename the file on another device."
            )
        return entry

    def _content(self, entry: Entry, chunks: Mapping[str, Document]) -> bytes:
        if entry.size > self._max_bytes:
            raise LivesyncUnreadable(
                f"{entry.path!r} is larger than the devices agreed on.",
                "Raise the largest size in LiveSync's settings, or make the file smaller.",
            )
        own = chunks if self._is_modest(entry) else self._many_chunks(entry)
        return self._codec.assemble(entry, own)

    def _is_modest(self, entry: Entry) -> bool:
        return len(entry.children) <= _MANY_CHUNKS and entry.size <= self._max_bytes

    def _many_chunks(self, entry: Entry) -> dict[str, Document]:
        """The chunks of a file with many, as long as all are there and not too much."""
        wanted = [child for child in dict.fromkeys(entry.children) if child not in entry.eden]
        left = (entry.size or LARGEST_UNTOLD) * _GROWTH + len(wanted) * _CHUNK_GROWTH
        chunks: dict[str, Document] = {}
        for at in range(0, len(wanted), _CHUNKS_AT_ONCE):
            some = self._chunks(wanted[at : at + _CHUNKS_AT_ONCE])
            chunks |= some
            left -= sum(len(str(chunk.get("data", ""))) for chunk in some.values())
            if left < 0 or len(some) < len(wanted[at : at + _CHUNKS_AT_ONCE]):
                break
        return chunks

    def _chunks(self, ids: Iterable[str]) -> dict[str, Document]:
        found, _ = self._carefully(list(ids), lambda some: self._couch.all_docs(some).values())
        return {str(chunk["_id"]): chunk for chunk in found}

    def _carefully(
        self, ids: Sequence[str], ask: Callable[[Sequence[str]], Iterable[Document]]
    ) -> tuple[list[Document], list[str]]:
        """What is found, and the ids of documents that spoil every answer they are part of."""
        found: list[Document] = []
        spoilt: list[str] = []
        waiting = [ids] if ids else []
        while waiting:
            some = waiting.pop()
            try:
                found += ask(some)
            except LivesyncRefused:
                if not spoilt and len(some) == len(ids):
                    self._couch.info()  # if it is not about a document, this is refused as well
                if len(some) > 1:
                    waiting += [some[len(some) // 2 :], some[: len(some) // 2]]
                else:
                    spoilt.append(some[0])
        return found, spoilt


def encrypted_sample(couch: Couch) -> list[Document]:
    """A few documents that only the right passphrase opens."""
    ids = [
        doc_id
        for prefix in (ENCRYPTED_CHUNK_PREFIX, OBFUSCATED_PREFIX)
        for doc_id, _ in couch.list_ids(start=prefix, end=prefix + LAST, limit=_SAMPLE)
    ]
    return list(couch.all_docs(ids).values())


def is_missing(trouble: LivesyncUnreadable | None) -> bool:
    """Whether only chunks are missing, which may still come."""
    return isinstance(trouble, MissingChunks)


def _is_deep(document: Document) -> bool:
    level: list[object] = [document]
    for _ in range(_DEEPEST):
        level = [part for whole in level for part in _parts(whole)]
        if not level:
            return False
    return True


def _parts(whole: object) -> Iterator[object]:
    parts = whole.values() if isinstance(whole, dict) else whole
    assert isinstance(parts, Iterable)
    return (part for part in parts if isinstance(part, dict | list))


def _foreign(kind: str) -> LivesyncUnreadable:
    return LivesyncUnreadable(
        f"A document of another kind ({kind[:40]!r}) has the file's place in the database.",
        "Rename the file.",
    )


def _spoilt(doc_id: str) -> LivesyncUnreadable:
    return LivesyncUnreadable(
        f"The server's answer about {doc_id!r} cannot be read.",
        "Save the file again on a device that has it.",
    )
