"""Write many documents, in batches that every server accepts, and report each outcome."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from obsidian_rag.livesync.couchdb.answers import Answer, odd_answer
from obsidian_rag.livesync.couchdb.http import CouchServer

_MAX_BATCH_DOCUMENTS = 200
# As much as official clients send; small servers and proxies accept no more.
_MAX_BATCH_BYTES = 1024 * 1024
_TOO_LARGE = 413
_REJECTED = (400, _TOO_LARGE)


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


@dataclass(frozen=True, slots=True)
class _Draft:
    position: int
    id: str
    rev: str | None
    text: bytes


def write_documents(
    server: CouchServer, documents: Sequence[Mapping[str, object]], *, new_edits: bool
) -> list[BulkRow]:
    """Write the documents in order; return one row for each, in the same order."""
    rows: dict[int, BulkRow] = {}
    drafts = []
    for position, document in enumerate(documents):
        try:
            drafts.append(_draft(position, document))
        except UnicodeEncodeError:
            rows[position] = BulkRow(str(document["_id"]), error="not_unicode")
    waiting = list(_batches(drafts))[::-1]
    while waiting:
        batch = waiting.pop()
        answer = server.ask("POST", "/_bulk_docs", body=_body(batch, new_edits), also=_REJECTED)
        if answer.is_success:
            parse = _parse_rows if new_edits else _parse_failures
            if (found := parse(batch, answer)) is None:
                raise odd_answer(server.remote)
            rows |= found
        elif len(batch) == 1:
            rows[batch[0].position] = BulkRow(batch[0].id, error=_rejection(answer))
        else:
            # One document breaks the request for all: bisect to find it.
            middle = len(batch) // 2
            waiting += [batch[middle:], batch[:middle]]
    return [rows[position] for position in range(len(documents))]


def _draft(position: int, document: Mapping[str, object]) -> _Draft:
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    rev = document.get("_rev")
    return _Draft(position, str(document["_id"]), rev if isinstance(rev, str) else None, text)


def _batches(drafts: Iterable[_Draft]) -> Iterator[list[_Draft]]:
    batch: list[_Draft] = []
    size = 0
    for draft in drafts:
        if batch and (
            len(batch) == _MAX_BATCH_DOCUMENTS or size + len(draft.text) > _MAX_BATCH_BYTES
        ):
            yield batch
            batch, size = [], 0
        batch.append(draft)
        size += len(draft.text)
    if batch:
        yield batch


def _body(batch: Sequence[_Draft], new_edits: bool) -> bytes:
    end = b"]}" if new_edits else b'],"new_edits":false}'
    return b'{"docs":[' + b",".join(draft.text for draft in batch) + end


def _parse_rows(batch: Sequence[_Draft], answer: Answer) -> dict[int, BulkRow] | None:
    results = answer.json()
    if not isinstance(results, list) or len(results) != len(batch):
        return None
    return {
        draft.position: BulkRow(draft.id, *_outcome(row))
        for draft, row in zip(batch, results, strict=True)
    }


def _parse_failures(batch: Sequence[_Draft], answer: Answer) -> dict[int, BulkRow] | None:
    """The rows for revisions of our own: the server then lists only what it refused."""
    results = answer.json()
    if not isinstance(results, list):
        return None
    errors = {row.get("id"): _outcome(row)[1] for row in results if isinstance(row, dict)}
    return {
        draft.position: BulkRow(draft.id, None if errors.get(draft.id) else draft.rev, error)
        for draft in batch
        for error in (errors.get(draft.id),)
    }


def _outcome(row: object) -> tuple[str | None, str | None]:
    if not isinstance(row, dict):
        return None, "unknown"
    if isinstance(row.get("rev"), str) and not row.get("error"):
        return row["rev"], None
    word = row.get("error")
    return None, word if isinstance(word, str) else "unknown"


def _rejection(answer: Answer) -> str:
    return "too_large" if answer.status == _TOO_LARGE else answer.error or "bad_request"
