"""A CouchDB database as LiveSync uses it: documents, local documents, batches and changes."""

import json
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from obsidian_rag.errors import LivesyncRefused
from obsidian_rag.livesync.couchdb.answers import (
    Answer,
    AnswerTooLarge,
    Change,
    ChangePage,
    is_missing_database,
    is_missing_document,
    parse_page,
    refusal,
    unexpected_answer,
)
from obsidian_rag.livesync.couchdb.feed import Feed, Report
from obsidian_rag.livesync.couchdb.http import CouchServer
from obsidian_rag.livesync.couchdb.remote import Remote, escaped, is_unicode

Document = dict[str, object]

_HEARTBEAT_S = 20.0
_DOCUMENTS_PER_READ = 100
_MAX_DOCUMENTS_PER_WRITE = 200
# As much as official clients send; small servers and proxies accept no more.
_MAX_BYTES_PER_WRITE = 1024 * 1024
_TOO_LARGE = 413
_REJECTED = (400, _TOO_LARGE)
# Longer than any file path with a prefix; URLs have a limit too.
_MAX_ID_BYTES = 5000


@dataclass(frozen=True, slots=True)
class BulkRow:
    """The outcome for one document: its new revision, or CouchDB's error name."""

    id: str
    rev: str | None = None
    error: str | None = None

    @property
    def is_refused(self) -> bool:
        """Whether the server refuses the document; a conflict is not a refusal."""
        return self.rev is None and self.error != "conflict"


class Couch:
    """One database; every method may raise LivesyncUnreachable and LivesyncRefused.

    Several threads may use it at once. A missing document is None; a missing database is a
    refusal, so that its notes are not taken for deleted.
    """

    def __init__(
        self, remote: Remote, *, timeout_s: float = 60, heartbeat_s: float = _HEARTBEAT_S
    ) -> None:
        self.remote = remote
        self._server = CouchServer(remote, timeout_s)
        self._heartbeat_s = heartbeat_s

    def info(self) -> Document | None:
        """The server's information about the database; None if there is no such database."""
        answer = self._server.ask("GET", "", also=(404,))
        if is_missing_database(answer):
            return None
        return self._document(answer, "db_name")

    def create(self) -> None:
        """Create the database; an existing one stays as it is."""
        self._server.ask("PUT", "", also=(412,))

    def get(
        self,
        doc_id: str,
        *,
        rev: str | None = None,
        conflicts: bool = True,
        history: bool = False,
    ) -> Document | None:
        """A document: the winner, or one revision of it. None if it is missing or deleted.

        With `history`, `_revisions` lists its ancestors.
        """
        if not _can_exist(doc_id):
            return None
        wanted = {"conflicts": conflicts, "revs": history}
        query = {name: "true" for name, is_wanted in wanted.items() if is_wanted}
        return self._get(f"/{escaped(doc_id)}", query | ({"rev": rev} if rev else {}))

    def get_local(self, name: str) -> Document | None:
        """A document that is not replicated; `name` is without `_local/`."""
        return self._get(f"/_local/{escaped(name)}", {})

    def put_local(self, name: str, document: Mapping[str, object]) -> None:
        """Replace a document that is not replicated.

        CouchDB lets the last writer win, whatever `_rev` says; other servers may refuse.
        """
        body = json.dumps({**document, "_id": f"_local/{name}"}).encode()
        answer = self._server.ask("PUT", f"/_local/{escaped(name)}", body=body, also=(409,))
        if answer.status == 409:
            raise LivesyncRefused(
                f"Another device changed '_local/{name}' at the same moment.", "Try again."
            )

    def all_docs(self, keys: Sequence[str]) -> dict[str, Document]:
        """The documents that exist and are not deleted, by id."""
        documents = (row.get("doc") for row in self._in_batches(keys, self._all_docs_rows))
        return {
            str(document["_id"]): document
            for document in documents
            if isinstance(document, dict) and "_id" in document and "_deleted" not in document
        }

    def list_ids(self, *, start: str, end: str, limit: int) -> list[tuple[str, str]]:
        """Ids from `start` to `end`, both included, with the winners' revisions."""
        query = {"startkey": json.dumps(start), "endkey": json.dumps(end), "limit": str(limit)}
        rows = self._rows(self._server.ask("GET", "/_all_docs", query=query), "rows")
        return [(str(row["id"]), _rev_of(row)) for row in rows if "id" in row]

    def winners(self, ids: Sequence[str]) -> list[Document]:
        """The winning revisions of the documents that exist, deleted ones too.

        Those with conflicting revisions have `_conflicts`.
        """
        return self._in_batches(ids, self._winners)

    def bulk_docs(
        self, documents: Sequence[Mapping[str, object]], *, new_edits: bool = True
    ) -> list[BulkRow]:
        """Write documents in order; return each one's outcome, in the same order.

        A conflict is a row with the error `conflict`; a document that the server refuses even
        on its own has the error `too_large`, or the server's error name.
        """
        drafts = [_Draft.of(document) for document in documents]
        waiting = list(_batches(draft for draft in drafts if draft.row is None))[::-1]
        while waiting:
            batch = waiting.pop()
            body = _bulk_body(batch, new_edits)
            answer = self._server.ask("POST", "/_bulk_docs", body=body, also=_REJECTED)
            if answer.is_success:
                take = _take_rows if new_edits else _take_failures
                if not take(batch, answer.json()):
                    raise unexpected_answer(self.remote)
            elif len(batch) == 1:
                batch[0].fail(_rejection(answer))
            else:
                # One document breaks the request for all: bisect to find it.
                middle = len(batch) // 2
                waiting += [batch[middle:], batch[:middle]]
        return [draft.row for draft in drafts if draft.row is not None]

    def changes(self, since: str, *, limit: int) -> ChangePage:
        """Up to `limit` changes after `since`, without those of chunks."""
        query = {"since": since or "0", "limit": str(limit), "style": "all_docs"}
        page = parse_page(self._server.ask("GET", "/_changes", query=query).json(), limit)
        if page is None:
            raise unexpected_answer(self.remote)
        return page

    def follow(
        self, since: str, stop: threading.Event, report: Report | None = None
    ) -> Generator[Change | None, None, None]:
        """Changes as they arrive, without those of chunks, until `stop`.

        Yields None about once a second while idle. A broken connection is reopened; `report`
        is called with the error, and with None once it is back.
        """
        return Feed(self._server, since, stop, self._heartbeat_s, report).rows()

    def close(self) -> None:
        """Close the connections; feeds end."""
        self._server.close()

    def _get(self, path: str, query: Mapping[str, str]) -> Document | None:
        answer = self._server.ask("GET", path, query=query, also=(404,))
        if is_missing_document(answer):
            return None
        return self._document(answer, "_id")

    def _document(self, answer: Answer, key: str) -> Document:
        if not answer.is_success:
            raise refusal(self.remote, answer)
        document = answer.json()
        if not isinstance(document, dict) or key not in document:
            raise unexpected_answer(self.remote)
        return document

    def _rows(self, answer: Answer, key: str) -> list[Document]:
        rows = self._document(answer, key)[key]
        if not isinstance(rows, list):
            raise unexpected_answer(self.remote)
        return [row for row in rows if isinstance(row, dict)]

    def _all_docs_rows(self, keys: Sequence[str]) -> list[Document]:
        query = {"include_docs": "true", "conflicts": "true"}
        body = json.dumps({"keys": list(keys)}).encode()
        answer = self._server.ask("POST", "/_all_docs", query=query, body=body, is_reading=True)
        return self._rows(answer, "rows")

    def _winners(self, ids: Sequence[str]) -> list[Document]:
        # Not by _bulk_get: without a revision, it returns every leaf, and does not say which wins.
        found = []
        for row in self._all_docs_rows(ids):
            document = row.get("doc")
            if document is None and "id" in row and (rev := _rev_of(row)):
                document = self.get(str(row["id"]), rev=rev)
            if isinstance(document, dict):
                found.append(document)
        return found

    def _in_batches(
        self, ids: Sequence[str], ask: Callable[[Sequence[str]], list[Document]]
    ) -> list[Document]:
        """Ask for a batch at a time, and split batches whose answer is too large."""
        found: list[Document] = []
        ids = [doc_id for doc_id in ids if _can_exist(doc_id)]
        waiting = [
            ids[at : at + _DOCUMENTS_PER_READ] for at in range(0, len(ids), _DOCUMENTS_PER_READ)
        ]
        waiting.reverse()
        while waiting:
            batch = waiting.pop()
            try:
                found += ask(batch)
            except AnswerTooLarge:
                # No client writes such a document, so treat it as missing.
                if len(batch) > 1:
                    waiting += [batch[len(batch) // 2 :], batch[: len(batch) // 2]]
        return found


def _can_exist(doc_id: str) -> bool:
    """Whether a document can have this id; crafted documents may name others."""
    if not doc_id or not is_unicode(doc_id) or len(doc_id.encode()) > _MAX_ID_BYTES:
        return False
    return not doc_id.startswith("_") or doc_id.startswith("_design/")


def _rev_of(row: Mapping[str, object]) -> str:
    value = row.get("value")
    rev = value.get("rev") if isinstance(value, dict) else None
    return rev if isinstance(rev, str) else ""


@dataclass(slots=True)
class _Draft:
    """A document to write, and its outcome once there is one."""

    id: str
    rev: str | None
    text: bytes
    row: BulkRow | None = None

    @classmethod
    def of(cls, document: Mapping[str, object]) -> "_Draft":
        rev = document.get("_rev")
        draft = cls(str(document["_id"]), rev if isinstance(rev, str) else None, b"")
        try:
            draft.text = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:
            draft.fail("not_unicode")
        return draft

    def fail(self, error: str) -> None:
        self.row = BulkRow(self.id, error=error)


def _batches(drafts: Iterable[_Draft]) -> Iterator[list[_Draft]]:
    batch: list[_Draft] = []
    size = 0
    for draft in drafts:
        is_full = len(batch) == _MAX_DOCUMENTS_PER_WRITE
        if batch and (is_full or size + len(draft.text) > _MAX_BYTES_PER_WRITE):
            yield batch
            batch, size = [], 0
        batch.append(draft)
        size += len(draft.text)
    if batch:
        yield batch


def _bulk_body(batch: Sequence[_Draft], new_edits: bool) -> bytes:
    end = b"]}" if new_edits else b'],"new_edits":false}'
    return b'{"docs":[' + b",".join(draft.text for draft in batch) + end


def _take_rows(batch: Sequence[_Draft], rows: object) -> bool:
    """Set each document's outcome; return whether there is one for each."""
    if not isinstance(rows, list) or len(rows) != len(batch):
        return False
    for draft, row in zip(batch, rows, strict=True):
        rev, error = _outcome(row)
        draft.row = BulkRow(draft.id, rev, error)
    return True


def _take_failures(batch: Sequence[_Draft], rows: object) -> bool:
    """The same for revisions that we name ourselves: the server lists only what it refused."""
    if not isinstance(rows, list):
        return False
    errors = {row.get("id"): _outcome(row)[1] for row in rows if isinstance(row, dict)}
    for draft in batch:
        error = errors.get(draft.id)
        draft.row = BulkRow(draft.id, None if error else draft.rev, error)
    return True


def _outcome(row: object) -> tuple[str | None, str | None]:
    if not isinstance(row, dict):
        return None, "unknown"
    if isinstance(row.get("rev"), str) and not row.get("error"):
        return row["rev"], None
    name = row.get("error")
    return None, name if isinstance(name, str) else "unknown"


def _rejection(answer: Answer) -> str:
    return "too_large" if answer.status == _TOO_LARGE else answer.error or "bad_request"
