"""What the rows of the feed of changes say."""

import json
from dataclasses import dataclass

from obsidian_rag.livesync.remote import is_unicode

_CHUNK_PREFIX = "h:"


@dataclass(frozen=True, slots=True)
class Change:
    """A document that changed, and its leaves in any order; what it says now is to be fetched."""

    id: str
    seq: str
    revs: tuple[str, ...]
    is_deleted: bool


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Some changes in order, without those of chunks, and where the next page begins."""

    rows: tuple[Change, ...]
    last_seq: str
    is_last: bool


def page_from(answer: object, limit: int) -> ChangePage | None:
    """The page that an answer holds; None if it holds none."""
    if not isinstance(answer, dict) or "last_seq" not in answer:
        return None
    results = answer.get("results")
    if not isinstance(results, list):
        return None
    rows = [row for row in map(change_from, results) if row is not None]
    pending = answer.get("pending")
    is_last = pending == 0 if isinstance(pending, int) else len(results) < limit
    return ChangePage(tuple(rows), seq_text(answer["last_seq"]), is_last)


def seq_text(seq: object) -> str:
    """A place in the feed as text: opaque in CouchDB, a number elsewhere."""
    return seq if isinstance(seq, str) and is_unicode(seq) else json.dumps(seq)


def change_from(row: object) -> Change | None:
    """What a row says; None for chunks, and for what no server that we know would say."""
    if not isinstance(row, dict) or not isinstance(row.get("id"), str):
        return None
    if row["id"].startswith(_CHUNK_PREFIX) or not row["id"] or not is_unicode(row["id"]):
        return None
    changes = row.get("changes")
    leaves = changes if isinstance(changes, list) else []
    revs = [leaf.get("rev") for leaf in leaves if isinstance(leaf, dict)]
    return Change(
        id=row["id"],
        seq=seq_text(row.get("seq")),
        revs=tuple(rev for rev in revs if isinstance(rev, str) and is_unicode(rev)),
        is_deleted=row.get("deleted") is True,
    )


def parsed(text: bytes) -> object:
    """The JSON in a text; None if it is none."""
    try:
        return json.loads(text)
    except (RecursionError, ValueError):
        return None
