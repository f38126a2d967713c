"""Parse the server's answers: changes, and failures as errors for the user.

Messages never quote an answer: it may contain our password.
"""

import json
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from obsidian_rag.errors import LivesyncRefused, LivesyncUnreachable, ObsidianRagError
from obsidian_rag.livesync.codec.path_ids import CHUNK_PREFIX
from obsidian_rag.livesync.couchdb.remote import Remote, is_unicode

_ERROR_NAME = re.compile(r"[a-z][a-z_]{0,39}")
_INVALID_IN_HOST = re.compile(r"[^\w.:-]")
_RETRY_STATUSES = (408, 425, 429)
_MISSING_DOCUMENT_REASONS = ("missing", "deleted")
_MISSING_DATABASE_REASONS = ("Database does not exist.", "no_db_file")


class Silence(LivesyncUnreachable):
    """The server accepted a request and then did not answer in time."""


class AnswerTooLarge(LivesyncRefused):
    """The answer is larger than anything we ask for."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP response."""

    status: int
    body: bytes
    is_page: bool = False
    location: str = ""

    @property
    def is_success(self) -> bool:
        """Whether this is a success; a web page never is."""
        return 200 <= self.status < 300 and not self.is_page

    @property
    def error(self) -> str | None:
        """CouchDB's error name; None if the answer has none."""
        body = self.json()
        name = body.get("error") if isinstance(body, dict) else None
        return name if isinstance(name, str) and _ERROR_NAME.fullmatch(name) else None

    def json(self) -> object:
        """The body; None if it is not JSON."""
        return parse_json(self.body)


@dataclass(frozen=True, slots=True)
class Change:
    """A document that changed, and its leaves in any order; its content is not included."""

    id: str
    seq: str
    revs: tuple[str, ...]
    is_deleted: bool


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Some changes in order, without those of chunks, and the position of the next page."""

    rows: tuple[Change, ...]
    last_seq: str
    is_last: bool


def parse_page(answer: object, limit: int) -> ChangePage | None:
    """A page of changes; None if the answer is not one."""
    if not isinstance(answer, dict) or "last_seq" not in answer:
        return None
    results = answer.get("results")
    if not isinstance(results, list):
        return None
    rows = [row for row in map(parse_change, results) if row is not None]
    pending = answer.get("pending")
    is_last = pending == 0 if isinstance(pending, int) else len(results) < limit
    return ChangePage(tuple(rows), seq_text(answer["last_seq"]), is_last)


def seq_text(seq: object) -> str:
    """A position in the feed as text: opaque in CouchDB, a number elsewhere."""
    return seq if isinstance(seq, str) and is_unicode(seq) else json.dumps(seq)


def parse_change(row: object) -> Change | None:
    """A row of the feed; None for chunks, and for rows that no known server sends."""
    if not isinstance(row, dict) or not isinstance(row.get("id"), str):
        return None
    if row["id"].startswith(CHUNK_PREFIX) or not row["id"] or not is_unicode(row["id"]):
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


def parse_json(text: bytes) -> object:
    """The value; None if the text is not JSON."""
    try:
        return json.loads(text)
    except (RecursionError, ValueError):
        return None


def refusal(remote: Remote, answer: Answer) -> ObsidianRagError:
    """The error for an answer that is not a success."""
    status = answer.status
    if status in (401, 403):
        check = "JWT key and this machine's clock" if remote.jwt else "user name and password"
        return LivesyncRefused(
            f"CouchDB at {remote.url} refuses {remote.login_name}"
            f" for the database '{remote.database}' (HTTP {status}).",
            f"Check the {check}, and who may use the database.",
        )
    if status >= 500 or status in _RETRY_STATUSES:
        return LivesyncUnreachable(
            f"CouchDB at {remote.url} cannot answer now (HTTP {status}).",
            "If this continues, look at the server's log.",
        )
    if answer.location:
        host = _INVALID_IN_HOST.sub("?", _host(answer.location))[:100]
        return LivesyncRefused(
            f"{remote.url} redirects to {host}, but the password is sent to no other server.",
            "If that is your server, set livesync.couchdbUrl to its address.",
        )
    if answer.is_page:
        return LivesyncRefused(
            f"{remote.url} answers with a web page, not like CouchDB (HTTP {status}).",
            "Check livesync.couchdbUrl; there may be a proxy or a login page before the server.",
        )
    if is_missing_database(answer):
        return LivesyncRefused(
            f"CouchDB at {remote.url} has no database '{remote.database}'.",
            "Check livesync.dbName; another device may be rebuilding it just now.",
        )
    if status == 404:
        return unexpected_answer(remote)
    name = f", {answer.error}" if answer.error else ""
    return LivesyncRefused(
        f"CouchDB at {remote.url} refuses the request (HTTP {status}{name}).",
        "Check livesync.couchdbUrl and livesync.dbName, and look at the server's log.",
    )


def unexpected_answer(remote: Remote) -> LivesyncRefused:
    """The error for an answer that CouchDB would not send."""
    return LivesyncRefused(
        f"{remote.url} does not answer like CouchDB.",
        "Check livesync.couchdbUrl; another server or a proxy may answer there.",
    )


def is_missing_document(answer: Answer) -> bool:
    """Whether CouchDB itself reports a missing document in an existing database.

    If the 404 of a proxy, or of a database being rebuilt, counted as that, every note would be
    taken for deleted.
    """
    return _not_found_reason(answer) in _MISSING_DOCUMENT_REASONS


def is_missing_database(answer: Answer) -> bool:
    """Whether CouchDB itself reports that the database is missing."""
    return _not_found_reason(answer) in _MISSING_DATABASE_REASONS


def _not_found_reason(answer: Answer) -> str | None:
    body = answer.json() if answer.status == 404 else None
    if not isinstance(body, dict) or body.get("error") != "not_found":
        return None
    return str(body.get("reason"))


def _host(location: str) -> str:
    try:
        return urlsplit(location).hostname or "another server"
    except ValueError:
        return "another server"
