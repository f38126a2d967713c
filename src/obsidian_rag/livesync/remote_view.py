"""Read the database: the state of documents, and their content when it is needed.

Threat: a document can be crafted to break its readers. It must not keep us from reading its
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

# Files with more chunks than this are fetched one by one, and abandoned at the first gap.
_MAX_CHUNKS_BATCHED = 2000
_CHUNKS_PER_REQUEST = 500
# Overhead of encryption and base64: factor per file, bytes per chunk.
_GROWTH_FACTOR, _CHUNK_GROWTH_BYTES = 4, 1000
# No client nests deeper; Python's JSON handles no more than about 900 levels.
_MAX_NESTING = 50
_SAMPLE_SIZE = 20


@dataclass(frozen=True, slots=True)
class View:
    """One document; `trouble` is why it must be left alone."""

    state: RemoteState
    document: Document | None = None
    entry: Entry | None = None
    trouble: LivesyncUnreadable | None = None


class RemoteReader:
    """Reads documents and assembles files."""

    def __init__(self, couch: Couch, codec: Codec, max_bytes: int = sys.maxsize) -> None:
        self._couch = couch
        self._codec = codec
        self._max_bytes = max_bytes

    def views(self, ids: Sequence[str], known: Mapping[str, SyncedFile]) -> dict[str, View]:
        """The current state of documents; those that are not files of a vault have a `trouble`."""
        views = {doc_id: View(NoDocument()) for doc_id in ids}
        documents, broken = self._fetch_bisecting(ids, self._couch.winners)
        for document in documents:
            doc_id = str(document.get("_id"))
            if doc_id in views:
                views[doc_id] = self._view(document, known.get(doc_id))
        for doc_id in broken:
            views[doc_id] = View(Live("", ""), trouble=_broken_error(doc_id))
        return views

    def contents(self, entries: Iterable[Entry]) -> dict[str, bytes | LivesyncUnreadable]:
        """The files of these entries by id, or the error that prevents reading one.

        Raises:
            LivesyncPassphrase: nothing in the database can be decrypted any more.
        """
        wanted = list(entries)
        few = [one for one in wanted if self._fits_batch(one)]
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
            # One bad document is set aside; a passphrase that opens nothing ends the run.
            if not (sample := encrypted_sample(self._couch)):
                raise failure
            self._codec.check_passphrase(sample)
        return found

    def revision(self, doc_id: str, rev: str) -> tuple[Entry, bytes] | None:
        """An older or conflicting revision with its content; None if it is no longer available."""
        try:
            document = self._couch.get(doc_id, rev=rev, conflicts=False)
        except LivesyncRefused:
            self._couch.info()  # raises if the refusal is not about this document
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
        """The ancestors of this revision, itself first, whether still stored or not."""
        document = self._couch.get(doc_id, rev=rev, conflicts=False, history=True) or {}
        line = document.get("_revisions")
        start, names = (line.get("start"), line.get("ids")) if isinstance(line, dict) else (0, [])
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
            return View(NoDocument(), document, trouble=_foreign_error(kind))
        try:
            entry = self._open_entry(document)
        except (LivesyncUnreadable, LivesyncPassphrase) as error:
            trouble = LivesyncUnreadable(error.message, error.suggestion)
            return View(Live(rev, ""), document, trouble=trouble)
        if entry.conflicts:
            return View(Conflicted(rev, (rev, *entry.conflicts)), document, entry)
        if entry.is_deleted:
            return View(Deleted(rev), document, entry)
        return View(Live(rev, normalise(entry.path)), document, entry)

    def _open_entry(self, document: Document) -> Entry:
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
        own = chunks if self._fits_batch(entry) else self._many_chunks(entry)
        return self._codec.assemble(entry, own)

    def _fits_batch(self, entry: Entry) -> bool:
        return len(entry.children) <= _MAX_CHUNKS_BATCHED and entry.size <= self._max_bytes

    def _many_chunks(self, entry: Entry) -> dict[str, Document]:
        """The chunks of a large file, up to the first gap or the size limit."""
        wanted = [child for child in dict.fromkeys(entry.children) if child not in entry.eden]
        left = (entry.size or LARGEST_UNTOLD) * _GROWTH_FACTOR + len(wanted) * _CHUNK_GROWTH_BYTES
        chunks: dict[str, Document] = {}
        for at in range(0, len(wanted), _CHUNKS_PER_REQUEST):
            some = self._chunks(wanted[at : at + _CHUNKS_PER_REQUEST])
            chunks |= some
            left -= sum(len(str(chunk.get("data", ""))) for chunk in some.values())
            if left < 0 or len(some) < len(wanted[at : at + _CHUNKS_PER_REQUEST]):
                break
        return chunks

    def _chunks(self, ids: Iterable[str]) -> dict[str, Document]:
        found, _ = self._fetch_bisecting(
            list(ids), lambda some: self._couch.all_docs(some).values()
        )
        return {str(chunk["_id"]): chunk for chunk in found}

    def _fetch_bisecting(
        self, ids: Sequence[str], ask: Callable[[Sequence[str]], Iterable[Document]]
    ) -> tuple[list[Document], list[str]]:
        """Fetch around documents that break their answer; return those documents' ids as well."""
        found: list[Document] = []
        broken: list[str] = []
        waiting = [ids] if ids else []
        while waiting:
            some = waiting.pop()
            try:
                found += ask(some)
            except LivesyncRefused:
                if not broken and len(some) == len(ids):
                    self._couch.info()  # raises if the refusal is not about a document
                if len(some) > 1:
                    waiting += [some[len(some) // 2 :], some[: len(some) // 2]]
                else:
                    broken.append(some[0])
        return found, broken


def encrypted_sample(couch: Couch) -> list[Document]:
    """A few encrypted documents, to test the passphrase on."""
    ids = [
        doc_id
        for prefix in (ENCRYPTED_CHUNK_PREFIX, OBFUSCATED_PREFIX)
        for doc_id, _ in couch.list_ids(start=prefix, end=prefix + LAST, limit=_SAMPLE_SIZE)
    ]
    return list(couch.all_docs(ids).values())


def is_missing(trouble: LivesyncUnreadable | None) -> bool:
    """Whether only chunks are missing, which may still arrive."""
    return isinstance(trouble, MissingChunks)


def _is_deep(document: Document) -> bool:
    level: list[object] = [document]
    for _ in range(_MAX_NESTING):
        level = [part for whole in level for part in _parts(whole)]
        if not level:
            return False
    return True


def _parts(whole: object) -> Iterator[object]:
    parts = whole.values() if isinstance(whole, dict) else whole
    assert isinstance(parts, Iterable)
    return (part for part in parts if isinstance(part, dict | list))


def _foreign_error(kind: str) -> LivesyncUnreadable:
    return LivesyncUnreadable(
        f"A document of another kind ({kind[:40]!r}) has the file's place in the database.",
        "Rename the file.",
    )


def _broken_error(doc_id: str) -> LivesyncUnreadable:
    return LivesyncUnreadable(
        f"The server's answer about {doc_id!r} cannot be read.",
        "Save the file again on a device that has it.",
    )
