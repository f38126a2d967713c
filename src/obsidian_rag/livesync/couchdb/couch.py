"""A CouchDB database as LiveSync uses it: documents, local documents, batches and changes."""

import json
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from obsidian_rag.errors import LivesyncRefused
from obsidian_rag.livesync.couchdb.answers import (
    Answer,
    AnswerTooLarge,
    Change,
    ChangePage,
    is_missing_database,
    is_missing_document,
    odd_answer,
    page_from,
    refusal,
)
from obsidian_rag.livesync.couchdb.bulk import BulkRow, write_documents
from obsidian_rag.livesync.couchdb.feed import Feed, Report
from obsidian_rag.livesync.couchdb.http import CouchServer
from obsidian_rag.livesync.couchdb.remote import Remote, escaped, is_unicode

Document = dict[str, object]
T = TypeVar("T")

_HEARTBEAT_S = 20.0
_DOCUMENTS_PER_READ = 100
_NO_BULK_GET = (404, 405, 501)
# Longer than any file path with a prefix; URLs have a limit too.
_MAX_ID_BYTES = 5000


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
        self._has_bulk_get = True

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
        rows = self._in_batches([key for key in keys if _can_exist(key)], self._all_docs_rows)
        documents = (row.get("doc") for row in rows)
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

    def bulk_get(self, ids: Sequence[tuple[str, str | None]]) -> list[Document]:
        """The documents that exist, deleted ones too: a given revision, or the winner.

        Winners with conflicting revisions have `_conflicts`.
        """
        asked = [(doc_id, rev) for doc_id, rev in ids if _can_exist(doc_id)]
        winners = self._in_batches([doc_id for doc_id, rev in asked if rev is None], self._winners)
        given = self._in_batches([(doc_id, rev) for doc_id, rev in asked if rev], self._revisions)
        return [*winners, *given]

    def bulk_docs(
        self, documents: Sequence[Mapping[str, object]], *, new_edits: bool = True
    ) -> list[BulkRow]:
        """Write documents in order; return each one's outcome, in the same order.

        A conflict is a row with the error `conflict`; a document that the server refuses even
        on its own has the error `too_large`, or the server's error name.
        """
        return write_documents(self._server, documents, new_edits=new_edits)

    def changes(self, since: str, *, limit: int) -> ChangePage:
        """Up to `limit` changes after `since`, without those of chunks."""
        query = {"since": since or "0", "limit": str(limit), "style": "all_docs"}
        page = page_from(self._server.ask("GET", "/_changes", query=query).json(), limit)
        if page is None:
            raise odd_answer(self.remote)
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
            raise odd_answer(self.remote)
        return document

    def _rows(self, answer: Answer, key: str) -> list[Document]:
        rows = self._document(answer, key)[key]
        if not isinstance(rows, list):
            raise odd_answer(self.remote)
        return [row for row in rows if isinstance(row, dict)]

    def _post(self, path: str, body: object, **query: str) -> Answer:
        return self._server.ask(
            "POST", path, query=query, body=json.dumps(body).encode(), is_reading=True
        )

    def _all_docs_rows(self, keys: Sequence[str]) -> list[Document]:
        asked = {"keys": list(keys)}
        answer = self._post("/_all_docs", asked, include_docs="true", conflicts="true")
        return self._rows(answer, "rows")

    def _winners(self, ids: Sequence[str]) -> list[Document]:
        # Not _bulk_get: without a revision, CouchDB returns every leaf, and no winner.
        found = []
        for row in self._all_docs_rows(ids):
            document = row.get("doc")
            if document is None and "id" in row and (rev := _rev_of(row)):
                document = self.get(str(row["id"]), rev=rev)
            if isinstance(document, dict):
                found.append(document)
        return found

    def _revisions(self, ids: Sequence[tuple[str, str]]) -> list[Document]:
        if self._has_bulk_get:
            docs = [{"id": doc_id, "rev": rev} for doc_id, rev in ids]
            body = json.dumps({"docs": docs}).encode()
            answer = self._server.ask(
                "POST", "/_bulk_get", body=body, also=(400, *_NO_BULK_GET), is_reading=True
            )
            if answer.is_success:
                return list(_bulk_documents(self._rows(answer, "results")))
            self._has_bulk_get = answer.status not in _NO_BULK_GET
        found = [self.get(doc_id, rev=rev) for doc_id, rev in ids]
        return [document for document in found if document is not None]

    def _in_batches(
        self, items: Sequence[T], ask: Callable[[Sequence[T]], list[Document]]
    ) -> list[Document]:
        """Ask for a batch at a time, and split batches whose answer is too large."""
        found: list[Document] = []
        waiting = [
            items[at : at + _DOCUMENTS_PER_READ] for at in range(0, len(items), _DOCUMENTS_PER_READ)
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


def _bulk_documents(results: Iterable[Mapping[str, object]]) -> Iterator[Document]:
    for result in results:
        docs = result.get("docs")
        for one in docs if isinstance(docs, list) else ():
            document = one.get("ok") if isinstance(one, dict) else None
            if isinstance(document, dict):
                yield document
