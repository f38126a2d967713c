"""The client of a database, against a real server."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.livesync.pouch import MAX_DOCUMENT_SIZE, Server
from tests.livesync.proxy import FaultyProxy, Request
from tests.waiting import PATIENCE_S, until

from obsidian_rag.errors import LivesyncRefused, LivesyncUnreachable
from obsidian_rag.livesync.couchdb.couch import BulkRow, Couch
from obsidian_rag.livesync.couchdb.remote import Remote

LOSER, WINNER = "1-" + "0" * 32, "1-" + "f" * 32


@pytest.fixture
def nowhere(pouch: Server) -> Iterator[Couch]:
    """A client of a database that the server does not have."""
    client = Couch(pouch.new_remote(), timeout_s=PATIENCE_S)
    yield client
    client.close()


def written(couch: Couch, *ids: str) -> list[str]:
    """Revisions of new documents."""
    rows = couch.bulk_docs([{"_id": doc_id, "type": "leaf"} for doc_id in ids])
    assert [row.error for row in rows] == [None] * len(ids)
    return [str(row.rev) for row in rows]


def delete(couch: Couch, doc_id: str) -> str:
    found = couch.get(doc_id)
    assert found is not None
    [row] = couch.bulk_docs([{"_id": doc_id, "_rev": found["_rev"], "_deleted": True}])
    assert row.rev is not None
    return row.rev


def make_conflict(couch: Couch, doc_id: str) -> None:
    leaves = [{"_id": doc_id, "_rev": rev, "from": rev[2]} for rev in (LOSER, WINNER)]
    rows = couch.bulk_docs(leaves, new_edits=False)
    assert rows == [BulkRow(doc_id, LOSER), BulkRow(doc_id, WINNER)]


def test_a_database_is_made_once_and_stays(nowhere: Couch, pouch: Server) -> None:
    assert nowhere.info() is None
    nowhere.create()
    written(nowhere, "a")
    nowhere.create()
    info = nowhere.info()
    assert info is not None
    assert (info["db_name"], info["doc_count"]) == (nowhere.remote.database, 1)
    pouch.request("DELETE", f"/{nowhere.remote.database}")


@pytest.mark.parametrize(
    "ask",
    [
        lambda couch: couch.get("a"),
        lambda couch: couch.get_local("a"),
        lambda couch: couch.put_local("a", {}),
        lambda couch: couch.all_docs(["a"]),
        lambda couch: couch.list_ids(start="", end="z", limit=1),
        lambda couch: couch.winners(["a"]),
        lambda couch: couch.bulk_docs([{"_id": "a"}]),
        lambda couch: couch.changes("0", limit=1),
    ],
)
def test_a_missing_database_is_never_an_empty_one(
    nowhere: Couch, ask: Callable[[Couch], object]
) -> None:
    with pytest.raises(LivesyncRefused) as caught:
        ask(nowhere)
    assert nowhere.remote.database in caught.value.message


def test_a_document_is_what_was_written(couch: Couch) -> None:
    [rev] = written(couch, "notes/hello.md")
    expected = {"_id": "notes/hello.md", "_rev": rev, "type": "leaf"}
    assert couch.get("notes/hello.md") == expected
    assert couch.get("notes/hello.md", rev=rev, conflicts=False) == expected


def test_a_document_that_is_missing_or_deleted_is_none(couch: Couch) -> None:
    [first] = written(couch, "a")
    gone = delete(couch, "a")
    assert couch.get("a") is None
    assert couch.get("never") is None
    assert couch.get("a", rev="7-" + "a" * 32) is None
    assert couch.get("a", rev=first) is not None
    tombstone = couch.get("a", rev=gone)
    assert tombstone is not None
    assert tombstone["_deleted"] is True


@pytest.mark.parametrize(
    "doc_id",
    [
        "a/b c.md",
        "a+b",
        "a%2Fb",
        "100%",
        "#a?b=c&d",
        "/_hidden.md",
        "ä/漢字/😀.md",
        "e\u0301",
        "a\\b",
        "a\u2028b",
        "f:3a1b",
        "i:.obsidian/app.json",
        ".",
        "..",
        "../x",
        "a//b/",
        "'\"<>",
    ],
)
def test_an_id_survives_the_address(couch: Couch, doc_id: str) -> None:
    written(couch, doc_id, "bystander")
    found = couch.get(doc_id)
    assert found is not None
    assert found["_id"] == doc_id
    assert list(couch.all_docs([doc_id])) == [doc_id]
    assert (doc_id, found["_rev"]) in couch.list_ids(start=doc_id, end=doc_id, limit=5)
    # CouchDB gives no promise about the order of what was written at once.
    assert {row.id for row in couch.changes("0", limit=5).rows} == {doc_id, "bystander"}


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.text(min_size=1, max_size=30).filter(lambda text: text[0] != "_" and "\0" not in text))
def test_any_id_survives_the_address(couch: Couch, doc_id: str) -> None:
    couch.bulk_docs([{"_id": doc_id}])
    found = couch.get(doc_id)
    assert found is not None
    assert found["_id"] == doc_id


@pytest.mark.parametrize(
    "doc_id", ["", "_all_docs", "_local/a", "_changes", "half \ud800", "x" * 100_000]
)
def test_an_id_that_no_document_has_is_never_asked_for(far_couch: Couch, doc_id: str) -> None:
    assert far_couch.get(doc_id) is None
    assert far_couch.all_docs([doc_id]) == {}
    assert far_couch.winners([doc_id]) == []
    with pytest.raises(LivesyncRefused):
        far_couch.get("a", rev="1-" + "x" * 100_000)


def test_a_local_document_is_read_and_replaced_and_not_replicated(couch: Couch) -> None:
    name = "obsydian_livesync_milestone"
    assert couch.get_local(name) is None
    couch.put_local(name, {"type": "milestoneinfo", "created": 1})
    found = couch.get_local(name)
    assert found is not None
    couch.put_local(name, {**found, "created": 2})
    again = couch.get_local(name)
    assert again is not None
    assert (again["_id"], again["created"]) == (f"_local/{name}", 2)
    assert couch.changes("0", limit=10).rows == ()


def test_a_local_document_may_have_any_name(couch: Couch) -> None:
    couch.put_local("a/b+c%==", {"x": "ä"})
    found = couch.get_local("a/b+c%==")
    assert found is not None
    assert found["x"] == "ä"


def test_a_local_document_that_changed_meanwhile_is_not_overwritten_if_the_server_checks(
    couch: Couch, pouch: Server
) -> None:
    if pouch.is_couchdb:
        pytest.skip("CouchDB lets the last writer of a local document win")
    couch.put_local("a", {"by": "us"})
    with pytest.raises(LivesyncRefused):
        couch.put_local("a", {"by": "someone who did not look"})


def test_all_docs_gives_only_what_is_there(couch: Couch) -> None:
    written(couch, "h:a", "h:b", "h:c")
    delete(couch, "h:b")
    found = couch.all_docs(["h:c", "h:b", "h:a", "h:never", "h:a"])
    assert {doc_id: document["_id"] for doc_id, document in found.items()} == {
        "h:a": "h:a",
        "h:c": "h:c",
    }
    assert couch.all_docs([]) == {}


def test_a_deleted_chunk_can_be_written_again(couch: Couch) -> None:
    written(couch, "h:a")
    delete(couch, "h:a")
    written(couch, "h:a")
    assert list(couch.all_docs(["h:a"])) == ["h:a"]


def test_many_keys_are_asked_for_a_hundred_at_a_time(far_couch: Couch, proxy: FaultyProxy) -> None:
    ids = [f"h:{number}" for number in range(250)]
    written(far_couch, *ids)
    proxy.requests.clear()
    assert list(far_couch.all_docs(ids)) == ids
    sizes = [len(json.loads(request.body)["keys"]) for request in proxy.requests]
    assert sizes == [100, 100, 50]


def test_ids_are_listed_in_a_range(couch: Couch) -> None:
    revs = dict(zip("abcde", written(couch, *"abcde"), strict=True))
    listed = couch.list_ids(start="b", end="d", limit=10)
    assert listed == [(doc_id, revs[doc_id]) for doc_id in "bcd"]
    assert couch.list_ids(start="b", end="d", limit=2) == listed[:2]
    assert couch.list_ids(start="x", end="z", limit=2) == []


def test_a_winner_has_its_rivals_and_any_revision_can_be_had(couch: Couch) -> None:
    make_conflict(couch, "a")
    [winner] = couch.winners(["a"])
    assert winner == {"_id": "a", "_rev": WINNER, "from": "f", "_conflicts": [LOSER]}
    assert couch.get("a") == winner
    assert couch.all_docs(["a"]) == {"a": winner}
    loser = couch.get("a", rev=LOSER)
    assert loser is not None and (loser["_rev"], loser["from"]) == (LOSER, "0")


def test_winners_include_tombstones_but_not_what_never_was(couch: Couch) -> None:
    written(couch, "a", "b")
    gone = delete(couch, "a")
    found = couch.winners(["never", "a", "b"])
    assert [document["_id"] for document in found] == ["a", "b"]
    assert (found[0]["_rev"], found[0]["_deleted"]) == (gone, True)


@pytest.mark.parametrize(
    "said",
    [
        {"error": "not_found", "reason": "no such host"},
        {"error": "not_found"},
        {"error": "no_route", "reason": "missing"},
        {"reason": "deleted"},
    ],
)
def test_a_404_for_another_reason_is_not_a_missing_document(
    far_couch: Couch, proxy: FaultyProxy, said: dict[str, str]
) -> None:
    proxy.answer(404, "", json.dumps(said).encode())
    for name in ("a", "notes/a.md"):
        with pytest.raises(LivesyncRefused):
            far_couch.get(name)
        with pytest.raises(LivesyncRefused):
            far_couch.get_local(name)
    with pytest.raises(LivesyncRefused):
        far_couch.info()


def test_each_document_of_a_batch_gets_its_row(couch: Couch) -> None:
    [first] = written(couch, "b")
    rows = couch.bulk_docs([{"_id": "a"}, {"_id": "b"}, {"_id": "c"}])
    assert [(row.id, row.error) for row in rows] == [("a", None), ("b", "conflict"), ("c", None)]
    assert [bool(row.rev) for row in rows] == [True, False, True]
    [again] = couch.bulk_docs([{"_id": "b", "_rev": first}])
    assert (again.error, str(again.rev)[:2]) == (None, "2-")
    assert couch.bulk_docs([]) == []


def test_a_revision_of_our_own_is_written_beside_the_other(couch: Couch) -> None:
    [base] = written(couch, "a")
    child = "2-" + "b" * 32
    number, _, digest = base.partition("-")
    ours = {
        "_id": "a",
        "_rev": child,
        "_revisions": {"start": 2, "ids": [child[2:], digest]},
    }
    written_by_another = {"_id": "a", "_rev": base, "by": "another"}
    [theirs] = couch.bulk_docs([written_by_another])
    assert number == "1"
    assert couch.bulk_docs([ours], new_edits=False) == [BulkRow("a", child)]
    [winner] = couch.winners(["a"])
    rivals = winner["_conflicts"]
    assert isinstance(rivals, list)
    assert {winner["_rev"], *rivals} == {child, theirs.rev}


def test_a_batch_has_at_most_200_documents_and_a_mebibyte(
    far_couch: Couch, proxy: FaultyProxy
) -> None:
    many = [{"_id": f"h:{number}"} for number in range(450)]
    large = [{"_id": f"h:large{number}", "data": "ä" * 200_000} for number in range(4)]
    rows = far_couch.bulk_docs([*many, *large])
    assert [row.id for row in rows] == [document["_id"] for document in (*many, *large)]
    assert {row.error for row in rows} == {None}
    batches = [json.loads(request.body)["docs"] for request in proxy.requests]
    assert [len(batch) for batch in batches] == [200, 200, 52, 2]
    assert all(len(request.body) < 1_100_000 for request in proxy.requests)


def test_a_document_that_is_too_large_alone_is_a_row_and_the_others_are_written(
    couch: Couch, pouch: Server
) -> None:
    if pouch.is_couchdb:
        pytest.skip("how large a document may be is up to the administrator of a CouchDB")
    too_large = {"_id": "h:b", "data": "x" * (MAX_DOCUMENT_SIZE + 1)}
    rows = couch.bulk_docs([{"_id": "h:a"}, too_large, {"_id": "h:c"}])
    assert [(row.id, row.error) for row in rows] == [
        ("h:a", None),
        ("h:b", "too_large"),
        ("h:c", None),
    ]
    assert sorted(couch.all_docs(["h:a", "h:b", "h:c"])) == ["h:a", "h:c"]


def test_a_batch_that_is_too_large_is_halved_until_the_server_takes_it(
    far_couch: Couch, proxy: FaultyProxy
) -> None:
    def is_too_large(request: Request) -> bool:
        return len(request.body) > 3000

    proxy.answer(413, is_too_large, b"<html>Too large</html>", "text/html")
    documents = [{"_id": f"h:{number}", "data": "x" * 500} for number in range(40)]
    rows = far_couch.bulk_docs(documents)
    assert [(row.id, row.error) for row in rows] == [(one["_id"], None) for one in documents]
    assert len(far_couch.all_docs([str(one["_id"]) for one in documents])) == 40


def test_a_document_that_the_server_rejects_does_not_take_the_others_with_it(
    couch: Couch,
) -> None:
    rows = couch.bulk_docs([{"_id": "a"}, {"_id": "_reserved"}, {"_id": "c"}, {"_id": "d"}])
    assert [bool(row.error) for row in rows] == [False, True, False, False]
    assert sorted(couch.all_docs(["a", "c", "d"])) == ["a", "c", "d"]


def test_a_document_with_half_a_character_is_a_row_and_the_others_are_written(
    couch: Couch,
) -> None:
    rows = couch.bulk_docs([{"_id": "a", "x": "\ud800"}, {"_id": "b"}])
    assert [row.error for row in rows] == ["not_unicode", None]


def test_changes_come_page_by_page_without_chunks(couch: Couch) -> None:
    entries = [f"note{number}.md" for number in range(7)]
    for entry in entries:
        written(couch, f"h:{entry}", entry)
    seen, since = [], "0"
    for _ in range(20):
        page = couch.changes(since, limit=3)
        seen += [row.id for row in page.rows]
        since = page.last_seq
        if page.is_last:
            break
    assert seen == entries
    assert couch.changes(since, limit=3).rows == ()
    assert couch.changes("", limit=100).rows == couch.changes("0", limit=100).rows


def test_a_change_names_every_leaf_and_says_whether_the_document_is_deleted(
    couch: Couch,
) -> None:
    make_conflict(couch, "a")
    written(couch, "b")
    gone = delete(couch, "b")
    rows = couch.changes("0", limit=10).rows
    assert [(row.id, set(row.revs), row.is_deleted) for row in rows] == [
        ("a", {WINNER, LOSER}, False),
        ("b", {gone}, True),
    ]
    assert couch.changes(rows[0].seq, limit=10).rows == rows[1:]


def test_a_wrong_password_is_refused_and_never_shown(remote: Remote) -> None:
    stranger = Couch(replace(remote, password="geheim-wrong"))
    with pytest.raises(LivesyncRefused) as caught:
        stranger.info()
    stranger.close()
    assert str(remote.user) in caught.value.message
    assert remote.database in caught.value.message
    shown = f"{caught.value!r} {caught.value.suggestion} {caught.value.__cause__!r}"
    assert "geheim" not in shown


@pytest.mark.parametrize("status", [401, 403])
def test_the_refused_user_is_named_even_if_a_proxy_answers(
    far_couch: Couch, proxy: FaultyProxy, status: int
) -> None:
    proxy.answer(status, "", b"<html>Who are you?</html>", "text/html")
    with pytest.raises(LivesyncRefused) as caught:
        far_couch.changes("0", limit=1)
    assert f"'{far_couch.remote.user}'" in caught.value.message
    assert far_couch.remote.database in caught.value.message


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 524])
def test_a_server_that_cannot_answer_now_is_unreachable(
    far_couch: Couch, proxy: FaultyProxy, status: int
) -> None:
    proxy.answer(status, "", b"<html>Later</html>", "text/html")
    with pytest.raises(LivesyncUnreachable):
        far_couch.bulk_docs([{"_id": "a"}])
    proxy.heal()
    written(far_couch, "a")


@pytest.mark.parametrize("status", [200, 201, 400, 404, 409, 412])
def test_a_web_page_is_never_an_answer(far_couch: Couch, proxy: FaultyProxy, status: int) -> None:
    proxy.answer(status, "", b"<!doctype html><title>Sign in</title>", "text/html; charset=utf-8")
    for ask in (
        lambda: far_couch.get("a"),
        lambda: far_couch.get_local("a"),
        far_couch.info,
        lambda: far_couch.all_docs(["a"]),
        lambda: far_couch.changes("0", limit=1),
        lambda: far_couch.winners(["a"]),
    ):
        with pytest.raises(LivesyncRefused):
            ask()


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"null", b"{", b"[" * 100_000, b"\xff"])
def test_an_answer_that_couchdb_would_not_give_is_refused(
    far_couch: Couch, proxy: FaultyProxy, content: bytes
) -> None:
    for status in (200, 404):
        proxy.answer(status, "", content)
        for ask in (
            lambda: far_couch.get("a"),
            far_couch.info,
            lambda: far_couch.all_docs(["a"]),
            lambda: far_couch.list_ids(start="", end="", limit=1),
            lambda: far_couch.changes("0", limit=1),
            lambda: far_couch.bulk_docs([{"_id": "a"}]),
            lambda: far_couch.winners(["a"]),
        ):
            with pytest.raises(LivesyncRefused):
                ask()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_named_and_not_followed(
    far_couch: Couch, proxy: FaultyProxy, status: int
) -> None:
    with FaultyProxy(proxy.port) as elsewhere:
        target = f"http://someone:else@127.0.0.1:{elsewhere.port}/db"
        proxy.answer(status, "", location=target)
        with pytest.raises(LivesyncRefused) as caught:
            far_couch.info()
        assert elsewhere.requests == []
    assert "127.0.0.1" in caught.value.message
    assert "else@" not in caught.value.message


def test_a_server_that_is_not_there_is_unreachable(far_couch: Couch, proxy: FaultyProxy) -> None:
    proxy.refuse()
    with pytest.raises(LivesyncUnreachable) as caught:
        far_couch.info()
    assert str(far_couch.remote.password) not in f"{caught.value!r} {caught.value.__cause__!r}"
    proxy.close()
    with pytest.raises(LivesyncUnreachable):
        far_couch.info()


def test_a_server_that_takes_too_long_is_unreachable(
    far_remote: Remote, proxy: FaultyProxy
) -> None:
    with contextlib.closing(Couch(far_remote, timeout_s=0.2)) as hasty:
        proxy.delay(2 * PATIENCE_S)
        with pytest.raises(LivesyncUnreachable):
            hasty.info()
        proxy.heal()

        def answers() -> bool:
            with contextlib.suppress(LivesyncUnreachable):
                return hasty.info() is not None
            return False

        # On a busy machine a server that is well may take longer than this client waits.
        until(answers, "an answer in time")


@pytest.mark.parametrize("n_bytes", [0, 1, 20, 200, 400])
def test_a_truncated_answer_is_not_an_answer(
    far_couch: Couch, proxy: FaultyProxy, n_bytes: int
) -> None:
    written(far_couch, *(f"h:{number}" for number in range(50)))
    proxy.cut_after(n_bytes)
    with pytest.raises(LivesyncUnreachable):
        far_couch.all_docs([f"h:{number}" for number in range(50)])
    proxy.heal()
    assert len(far_couch.all_docs([f"h:{number}" for number in range(50)])) == 50


def test_a_write_whose_answer_is_lost_is_not_repeated_and_shows_as_a_conflict(
    far_couch: Couch, proxy: FaultyProxy
) -> None:
    proxy.cut_after(0, "_bulk_docs")
    with pytest.raises(LivesyncUnreachable):
        far_couch.bulk_docs([{"_id": "a"}])
    assert sum("_bulk_docs" in request.line for request in proxy.requests) == 1
    proxy.heal()
    assert far_couch.bulk_docs([{"_id": "a"}]) == [BulkRow("a", None, "conflict")]


def test_a_connection_that_the_server_gave_up_is_made_again(
    far_couch: Couch, proxy: FaultyProxy
) -> None:
    for turn in range(5):
        assert far_couch.info() is not None
        proxy.cut()
        written(far_couch, f"note {turn}")
        proxy.cut()


def test_an_answer_without_end_is_given_up(far_couch: Couch, proxy: FaultyProxy) -> None:
    proxy.answer(200, "", b" " * (65 * 1024 * 1024))
    with pytest.raises(LivesyncRefused):
        far_couch.info()


def test_a_batch_whose_answer_is_too_large_is_asked_for_in_halves(
    far_couch: Couch, proxy: FaultyProxy
) -> None:
    ids = ["h:a", "h:b", "h:huge", "h:c"]
    written(far_couch, *ids)

    def is_too_much(request: Request) -> bool:
        return "_all_docs" in request.line and "h:huge" in json.loads(request.body)["keys"]

    proxy.answer(200, is_too_much, b" " * (65 * 1024 * 1024))
    assert sorted(far_couch.all_docs(ids)) == ["h:a", "h:b", "h:c"]


def test_headers_are_sent_as_told_but_ours_stay(far_remote: Remote, proxy: FaultyProxy) -> None:
    extra = {"CF-Access-Client-Id": "abc", "X-Umlaut": "ä", "accept-encoding": "br"}
    couch = Couch(replace(far_remote, headers=extra))
    assert couch.info() is not None
    couch.close()
    head = proxy.requests[-1].head.decode().lower()
    assert "cf-access-client-id: abc\r\n" in head
    assert "x-umlaut: ä\r\n" in head
    assert head.count("accept-encoding") == 1
    assert "accept-encoding: gzip\r\n" in head


def test_no_proxy_of_the_environment_gets_to_see_the_password(
    couch: Couch, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy.url)
    assert couch.info() is not None
    assert proxy.requests == []


def test_a_few_threads_share_one_client(couch: Couch) -> None:
    def work(number: int) -> list[str]:
        ids = [f"{number}-{turn}" for turn in range(10)]
        for doc_id in ids:
            written(couch, doc_id)
            assert couch.get(doc_id) is not None
        return ids

    with ThreadPoolExecutor(6) as pool:
        ids = [doc_id for part in pool.map(work, range(6)) for doc_id in part]
    assert sorted(couch.all_docs(ids)) == sorted(ids)


def test_a_closed_client_asks_nothing_and_starts_no_thread(far_couch: Couch) -> None:
    before = threading.active_count()
    assert far_couch.info() is not None
    far_couch.close()
    far_couch.close()
    with pytest.raises(LivesyncUnreachable):
        far_couch.info()
    assert threading.active_count() <= before + 2
