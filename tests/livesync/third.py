"""A third client that speaks the protocol by hand, without the code that we test.

It is always connected: what it edits or deletes is the winner that it sees, or an older revision
when it plays a device that was away (`branch`). It cuts files differently and names its chunks
differently than we do, as other versions of LiveSync may.
"""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tests.livesync.pouch import Server

Document = dict[str, Any]
_TEXT = (".md", ".txt", ".canvas")
_PIECE = 24


@dataclass(frozen=True, slots=True)
class Leaf:
    """One living revision."""

    rev: str
    path: str
    content: bytes
    is_deleted: bool


class ThirdClient:
    """Another device of the network, with the database as its vault."""

    def __init__(self, server: Server, database: str) -> None:
        self._server = server
        self._database = database
        self._late: list[Document] = []
        self._clock_ms = 1_700_000_000_000

    def entries(self) -> dict[str, Document]:
        """The winners of all files, by id; deleted ones too."""
        rows = self._ask("GET", "/_all_docs?include_docs=true&conflicts=true")["rows"]
        return {
            row["id"]: row["doc"] for row in rows if row["doc"].get("type") in ("plain", "newnote")
        }

    def leaf(self, document: Mapping[str, Any]) -> Leaf:
        """What a revision holds."""
        keys = {"keys": list(dict.fromkeys(document["children"]))}
        rows = self._ask("POST", "/_all_docs?include_docs=true", keys)["rows"]
        data = {row["id"]: row["doc"]["data"] for row in rows if row.get("doc")}
        data |= {late["_id"]: late["data"] for late in self._late}
        pieces = [data[child] for child in document["children"]]
        content = b"".join(
            piece.encode() if document["type"] == "plain" else base64.b64decode(piece)
            for piece in pieces
        )
        return Leaf(document["_rev"], document["path"], content, bool(document.get("deleted")))

    def leaves(self, document: Mapping[str, Any]) -> list[Leaf]:
        """The winner and its rivals."""
        rivals = [self._get(document["_id"], rev=rev) for rev in document.get("_conflicts", ())]
        return [self.leaf(one) for one in (document, *rivals)]

    def save(
        self, path: str, content: bytes, *, is_late: bool = False, is_timed: bool = True
    ) -> None:
        """Write a file as a child of the winner; its chunks now, or only with `deliver`."""
        winner = self._winner(path)
        parent = {"_rev": winner["_rev"]} if winner else {}
        self._write(self._entry(path, content, is_late, is_timed) | parent)

    def delete(self, path: str) -> None:
        """Say in the entry that the file is deleted."""
        winner = self._winner(path)
        assert winner is not None
        self._write(_plain(winner) | {"deleted": True, "mtime": self._now()})

    def bury(self, path: str, rev: str) -> None:
        """Say in a rival revision that the file is deleted."""
        rival = self._get(path.lower(), rev=rev)
        self._write(_plain(rival) | {"deleted": True, "mtime": self._now()})

    def history(self, path: str) -> list[str]:
        """The revisions of the winner's branch that the server still has, the newest first."""
        document = self._get(path.lower(), revs_info="true")
        return [one["rev"] for one in document["_revs_info"] if one["status"] == "available"]

    def revision(self, path: str, rev: str) -> Leaf:
        """What an older revision holds."""
        return self.leaf(self._get(path.lower(), rev=rev))

    def branch(self, path: str, content: bytes, parent: str) -> None:
        """Write a file as a child of an older revision, as a device that was away does."""
        number, _, above = parent.partition("-")
        name = hashlib.md5(content + parent.encode()).hexdigest()
        entry = self._entry(path, content, False, True) | {
            "_rev": f"{int(number) + 1}-{name}",
            "_revisions": {"start": int(number) + 1, "ids": [name, above]},
        }
        self._ask("POST", "/_bulk_docs", {"docs": [entry], "new_edits": False})

    def deliver(self) -> None:
        """Write the chunks that are still owed."""
        if self._late:
            self._ask("POST", "/_bulk_docs", {"docs": self._late})
        self._late = []

    def update_seq(self) -> object:
        """How far the database is."""
        return self._ask("GET", "")["update_seq"]

    def order(self) -> list[str]:
        """The files in the order in which they were last written."""
        rows = self._ask("GET", "/_changes")["results"]
        return [row["id"] for row in rows if not row["id"].startswith("h:")]

    def _entry(self, path: str, content: bytes, is_late: bool, is_timed: bool) -> Document:
        is_text = path.endswith(_TEXT)
        if is_text:
            text = content.decode()
            pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
        else:
            parts = [content[at : at + _PIECE] for at in range(0, len(content), _PIECE)]
            pieces = [base64.b64encode(part).decode() for part in parts]
        chunks = [
            {"_id": f"h:3rd{hashlib.md5(piece.encode()).hexdigest()}", "type": "leaf"}
            | {"data": piece}
            for piece in pieces
        ]
        if is_late:
            self._late += chunks
        else:
            self._ask("POST", "/_bulk_docs", {"docs": chunks})
        now = self._now() if is_timed else self._clock_ms
        return {
            "_id": path.lower(),
            "path": path,
            "type": "plain" if is_text else "newnote",
            "ctime": now,
            "mtime": now,
            "size": len(content),
            "children": [chunk["_id"] for chunk in chunks],
            "eden": {},
        }

    def _now(self) -> int:
        self._clock_ms += 2000
        return self._clock_ms

    def _winner(self, path: str) -> Document | None:
        status, document = self._server.request("GET", self._address(path.lower()))
        if status == 404:
            return None
        assert status == 200 and isinstance(document, dict), document
        return document

    def _get(self, doc_id: str, **query: str) -> Document:
        asked = "&".join(f"{name}={value}" for name, value in query.items())
        status, document = self._server.request("GET", f"{self._address(doc_id)}?{asked}")
        assert status == 200 and isinstance(document, dict), document
        return document

    def _write(self, document: Document) -> None:
        status, said = self._server.request("PUT", self._address(document["_id"]), document)
        assert status in (201, 202), said

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        status, said = self._server.request(method, f"/{self._database}{path}", body)
        assert 200 <= status < 300, said
        return said

    def _address(self, doc_id: str) -> str:
        return f"/{self._database}/{quote(doc_id, safe='')}"


def _plain(document: Document) -> Document:
    return {key: value for key, value in document.items() if key != "_conflicts"}
