"""Documents made to hurt: nothing outside the vault is touched, and the others still sync."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.livesync.nodes import TestNode
from tests.livesync.pouch import Server
from tests.livesync.proxy import FaultyProxy, Request
from tests.livesync.third import ThirdClient

from obsidian_rag.errors import LivesyncPassphrase, LivesyncRefused
from obsidian_rag.livesync.codec.tweaks import Tweaks
from obsidian_rag.livesync.couchdb.remote import Remote

UNREADABLE = "LIVESYNC_UNREADABLE"
CHUNK = {"_id": "h:hostile", "type": "leaf", "data": "planted"}
BINARY = {"_id": "h:binary", "type": "leaf", "data": "cGxhbnRlZA=="}
Document = dict[str, Any]


class Attack:
    """A node, the folder around its vault, and whoever writes to its database."""

    def __init__(self, node: TestNode, server: Server, third: ThirdClient) -> None:
        self.node = node
        self.third = third
        self.server = server
        self.put(CHUNK, BINARY)

    def put(self, *documents: Document) -> None:
        address = f"/{self.node.remote.database}/_bulk_docs"
        status, said = self.server.request("POST", address, {"docs": documents})
        assert status in (201, 202), said
        assert isinstance(said, list) and not any(row.get("error") for row in said), said

    def sync(self) -> None:
        """Sync with a good document beside the bad ones, which must arrive."""
        around = self._around()
        self.third.save("good.md", b"good")
        self.node.sync()
        assert self.node.files()["good.md"] == b"good"
        assert self._around() == around

    def quarantined(self) -> dict[str, str]:
        return {one.doc_id: one.code for one in self.node.records.quarantined()}

    def _around(self) -> dict[str, bytes]:
        """Every file that is neither in the vault nor our own."""
        home = self.node.home
        return {
            str(file): file.read_bytes()
            for file in home.parent.rglob("*")
            if file.is_file() and not file.is_relative_to(home / "vault")
            if not file.name.startswith("state.db")
        }


@pytest.fixture
def attack(tmp_path: Path, remote: Remote, pouch: Server) -> Iterator[Attack]:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "private.md").write_bytes(b"private")
    node = TestNode(tmp_path / "device", remote)
    node.write("ours.md", "ours")
    node.sync()
    yield Attack(node, pouch, ThirdClient(pouch, remote.database))
    node.close()


def entry(path: str, **changes: Any) -> Document:
    return {
        "_id": f"/{path.lower()}" if path.startswith("_") else path.lower(),
        "path": path,
        "type": "plain",
        "ctime": 1_700_000_000_000,
        "mtime": 1_700_000_000_000,
        "size": 7,
        "children": ["h:hostile"],
        "eden": {},
    } | changes


PATHS = (
    "../outside/private.md",
    "../planted.md",
    "a/../../planted.md",
    "/planted.md",
    "/etc/planted.md",
    "C:/planted.md",
    "C:\\planted.md",
    "a\\..\\..\\planted.md",
    "stream.md:planted",
    "bell\x07.md",
    "line\nbreak.md",
    "del\x7f.md",
    "nul\x00.md",
    "./dot.md",
    "a/./dot.md",
    "a//double.md",
    "trailing/",
    "..",
    ".",
    ".hidden.md",
    ".git/hooks/post-checkout",
    ".obsidian/plugins/x/main.js",
    "a/.obsidian/plugins/x/main.js",
    "redflag.md",
    "RedFlag2.md",
    "flag_rebuild.md",
    "FLAG_FETCH.md",
    "livesync_log_1.md",
    "a" * 300 + ".md",
    "long/" * 500 + "a.md",
)


def test_paths_that_are_no_place_for_a_file_are_left_alone(attack: Attack) -> None:
    hostile = [entry(path) for path in PATHS]
    attack.put(*hostile)
    attack.sync()
    assert attack.node.files() == {"ours.md": b"ours", "good.md": b"good"}
    assert attack.quarantined() == {one["_id"]: UNREADABLE for one in hostile}


def test_an_id_that_no_text_can_hold_is_passed_over(attack: Attack) -> None:
    if attack.server.is_couchdb:
        pytest.skip("CouchDB itself takes no half of a character; only other servers hold one")
    attack.put(entry("half\ud800.md"))
    attack.sync()
    assert attack.node.files() == {"ours.md": b"ours", "good.md": b"good"}


BODIES: dict[str, Document] = {
    "a wrong size": {"size": 8},
    "a size below nothing": {"size": -1},
    "a size beyond all": {"size": 1e300},
    "a size in words": {"size": "seven"},
    "a size over the limit": {"size": 2**40},
    "missing chunks": {"children": ["h:hostile", "h:nowhere"]},
    "a note as its own child": {"children": ["bad.md"]},
    "a system document as a child": {"children": ["_design/x"]},
    "children that are no list": {"children": "h:hostile"},
    "children that are no texts": {"children": [1, None, ["h:hostile"]]},
    "no children": {"children": None},
    "a thousand times the same chunk": {"children": ["h:hostile"] * 1000},
    "more missing chunks than anyone can ask for": {
        "children": [f"h:{number}" for number in range(100_000)]
    },
    "a text as a binary": {"type": "newnote", "children": ["h:binary"]},
    "a type that is a list": {"type": ["plain"]},
    "a type that is an object": {"type": {"plain": "plain"}},
    "a type that is a number": {"type": 5},
    "no path": {"path": None},
    "an empty path": {"path": ""},
    "a path that is a list": {"path": ["bad.md"]},
    "the path of another document": {"path": "ours.md"},
    "a path whose id is another": {"path": "Other.md"},
    "a time in words": {"mtime": "yesterday"},
    "a deletion in words": {"deleted": "yes"},
    "an eden that is a list": {"eden": ["h:hostile"]},
    "an eden without data": {"eden": {"h:hostile": {"epoch": 1}}},
    "an encrypted path": {"path": "/\\:%=AAAA"},
    "nesting": {"x": json.loads("[" * 500 + "]" * 500)},
}


def test_documents_that_are_no_files_are_left_alone(attack: Attack) -> None:
    hostile = [entry(f"{name}.md") | body for name, body in BODIES.items()]
    attack.put(*hostile)
    attack.sync()
    assert attack.node.files() == {"ours.md": b"ours", "good.md": b"good"}
    assert attack.quarantined() == {one["_id"]: UNREADABLE for one in hostile}


def test_a_document_that_is_spoilt_later_spoils_no_file_and_is_taken_when_repaired(
    attack: Attack,
) -> None:
    paths = [f"{name}.md" for name in BODIES]
    for path in paths:
        attack.third.save(path, b"well")
    attack.node.sync()
    revs = {doc_id: one["_rev"] for doc_id, one in attack.third.entries().items()}
    attack.put(
        *(entry(f"{name}.md", _rev=revs[f"{name}.md"]) | body for name, body in BODIES.items())
    )
    attack.sync()
    files = attack.node.files()
    assert {files[path] for path in paths} == {b"well"}
    assert attack.quarantined() == dict.fromkeys(paths, UNREADABLE)
    for path in paths:
        attack.node.write(path, f"edited here: {path}")
    attack.sync()
    files = attack.node.files()
    assert all(files[path] == f"edited here: {path}".encode() for path in paths)
    for path in paths:
        attack.third.save(path, b"repaired")
    attack.sync()
    files = attack.node.files()
    assert {files[path] for path in paths} == {b"repaired"}
    assert {f"edited here: {path}".encode() for path in paths} <= set(files.values())
    assert attack.quarantined() == {}


def test_a_document_that_is_repaired_syncs(attack: Attack) -> None:
    attack.put(entry("bad.md", children=["h:later"]))
    attack.sync()
    assert attack.quarantined() == {"bad.md": UNREADABLE}
    attack.put(CHUNK | {"_id": "h:later"})
    attack.sync()
    assert attack.node.files()["bad.md"] == b"planted"
    assert attack.quarantined() == {}


def test_a_document_that_is_deleted_is_out_of_quarantine(attack: Attack) -> None:
    attack.put(entry("bad.md", size=99))
    attack.sync()
    attack.third.delete("bad.md")
    attack.sync()
    assert attack.quarantined() == {}


def test_documents_of_other_kinds_are_ignored(attack: Attack) -> None:
    attack.put(
        {"_id": "_design/evil", "language": "javascript", "path": "../planted.md"},
        *map(entry, ("i:.obsidian/plugins/x/main.js", "ix:device/x.md", "ps:device/x.md")),
        {"_id": "h:not-a-chunk", "type": "plain", "path": "planted.md"},
        {"_id": "news", "type": "newer-kind", "path": "planted.md"},
        {"_id": "syncinfo", "type": "syncinfo", "data": "planted"},
    )
    attack.sync()
    assert attack.node.files() == {"ours.md": b"ours", "good.md": b"good"}
    assert attack.quarantined() == {}


def test_a_file_in_the_place_of_another_kind_of_document_is_reported(attack: Attack) -> None:
    attack.put({"_id": "news.md", "type": "newer-kind"})
    attack.node.write("News.md", "ours")
    attack.sync()
    assert attack.quarantined() == {"news.md": UNREADABLE}
    (attack.node.root / "News.md").unlink()
    attack.sync()
    assert attack.quarantined() == {}


def test_nothing_is_written_through_a_symlink(attack: Attack, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (attack.node.root / "link").symlink_to(outside, target_is_directory=True)
    (attack.node.root / "private.md").symlink_to(outside / "private.md")
    (attack.node.root / "dangling.md").symlink_to(outside / "made.md")
    attack.put(*map(entry, ("link/private.md", "Link/new.md", "private.md", "dangling.md")))
    attack.sync()
    assert sorted(file.name for file in outside.iterdir()) == ["private.md"]
    reconciler = attack.node.sync()
    assert {"link", "private.md", "dangling.md"} <= set(reconciler.sync.disk.left_out)


def test_a_link_that_appears_after_the_look_leads_nowhere(attack: Attack, tmp_path: Path) -> None:
    reconciler = attack.node.node()._join()
    reconciler.scan()
    (attack.node.root / "link").symlink_to(tmp_path / "outside", target_is_directory=True)
    attack.put(entry("link/new.md"), entry("link/private.md"))
    reconciler.reconcile(["link/new.md", "link/private.md"])
    assert [file.name for file in (tmp_path / "outside").iterdir()] == ["private.md"]
    assert reconciler.owed == {"link/new.md", "link/private.md"}


def test_a_file_where_a_folder_must_be_is_reported(attack: Attack) -> None:
    attack.node.write("folder/inner.md", "inner")
    attack.put(entry("ours.md/below.md"), entry("folder", type="newnote", children=["h:binary"]))
    attack.sync()
    assert attack.node.files()["ours.md"] == b"ours"
    assert attack.node.files()["folder/inner.md"] == b"inner"
    assert set(attack.quarantined()) == {"ours.md/below.md", "folder"}


def test_two_files_that_differ_only_in_case_are_both_kept(attack: Attack) -> None:
    attack.node.write("OURS.md", "twin")
    reconciler = attack.node.sync()
    assert reconciler.sync.disk.left_out == {"OURS.md": "differs from another file only in case"}
    attack.third.save("OURS.md", b"spelled anew")
    attack.sync()
    assert attack.node.files()["ours.md"] == b"ours"
    assert attack.node.files()["OURS.md"] == b"twin"
    assert attack.quarantined() == {"ours.md": UNREADABLE}
    (attack.node.root / "OURS.md").unlink()
    attack.sync()
    assert attack.node.files() == {"OURS.md": b"spelled anew", "good.md": b"good"}


def test_a_document_whose_every_answer_is_spoilt_spoils_no_other(
    attack: Attack, far_remote: Remote, proxy: FaultyProxy, tmp_path: Path
) -> None:
    """Ten megabytes of brackets, which no parser of ours reads."""
    for name in ("deep.md", "one.md", "two.md", "three.md"):
        attack.third.save(name, name.encode())
    deep = b"[" * 5_000_000 + b"]" * 5_000_000

    def is_about_it(request: Request) -> bool:
        return b"deep.md" in request.body or "deep.md" in request.line

    proxy.answer(200, is_about_it, b'{"rows":[{"id":"deep.md","doc":' + deep + b"}]}")
    node = TestNode(tmp_path / "other", far_remote)
    try:
        node.sync()
        assert set(node.files()) == {"ours.md", "one.md", "two.md", "three.md"}
        assert [one.doc_id for one in node.records.quarantined()] == ["deep.md"]
        proxy.heal()
        node.sync()
        assert node.files()["deep.md"] == b"deep.md"
        assert node.records.quarantined() == []
    finally:
        node.close()


@pytest.fixture
def secretive(tmp_path: Path, remote: Remote) -> Iterator[TestNode]:
    tweaks = Tweaks(encrypt=True, use_path_obfuscation=True)
    node = TestNode(tmp_path / "secretive", remote, passphrase="secret", tweaks=tweaks)
    node.write("ours.md", "ours")
    node.sync()
    yield node
    node.close()


def test_a_chunk_that_no_passphrase_opens_spoils_no_other(
    secretive: TestNode, tmp_path: Path, pouch: Server
) -> None:
    """As when all that arrives at a moment is one broken file."""
    database = secretive.remote.database
    secretive.write("bad.md", "bad")
    secretive.sync()
    status, said = pouch.request("GET", f"/{database}/_all_docs?include_docs=true")
    assert status == 200 and isinstance(said, dict)
    reconciler = secretive.node()._join()
    encoded = reconciler.sync.member.codec.encode("bad.md", b"bad", ctime_ms=0, mtime_ms=0)
    spoilt = encoded.chunks[0]["_id"]
    chunk = next(row["doc"] for row in said["rows"] if row["id"] == spoilt)
    pouch.request("POST", f"/{database}/_bulk_docs", {"docs": [chunk | {"data": "%=" + "A" * 200}]})
    other = TestNode(
        tmp_path / "other", secretive.remote, passphrase="secret", tweaks=secretive.tweaks
    )
    try:
        doc_id = reconciler.sync.member.codec.path_to_id("bad.md")
        alone = other.node()._join()
        alone.scan()
        alone.reconcile([doc_id])
        assert [one.doc_id for one in other.records.quarantined()] == [doc_id]
        other.sync()
        assert other.files() == {"ours.md": b"ours"}
    finally:
        other.close()


def test_a_passphrase_that_opens_nothing_any_more_is_the_end(
    secretive: TestNode, pouch: Server
) -> None:
    reconciler = secretive.node()._join()
    reconciler.scan()
    database = secretive.remote.database
    status, said = pouch.request("GET", f"/{database}/_all_docs?include_docs=true")
    assert status == 200 and isinstance(said, dict)
    chunks = [row["doc"] for row in said["rows"] if row["id"].startswith("h:+")]
    spoilt = [chunk | {"data": "%=" + "A" * 200} for chunk in chunks]
    entries = [row["doc"] for row in said["rows"] if row["id"].startswith("f:")]
    spoilt += [one | {"path": "/\\:%=" + "A" * 200} for one in entries]
    pouch.request("POST", f"/{database}/_bulk_docs", {"docs": spoilt})
    with pytest.raises(LivesyncPassphrase):
        secretive.node().sync_once()
    assert secretive.files() == {"ours.md": b"ours"}


def test_a_refusal_by_the_server_is_not_blamed_on_a_document(
    attack: Attack, far_remote: Remote, proxy: FaultyProxy, tmp_path: Path
) -> None:
    node = TestNode(tmp_path / "other", far_remote)
    try:
        reconciler = node.node()._join()
        reconciler.scan()
        proxy.answer(403)
        with pytest.raises(LivesyncRefused):
            reconciler.reconcile(["ours.md", "good.md"])
        assert node.records.quarantined() == []
    finally:
        node.close()
