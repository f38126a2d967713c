"""Following a database: what arrives, what happens when the connection goes, and how to stop."""

import json
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.livesync.pouch import Server
from tests.livesync.proxy import FaultyProxy
from tests.waiting import PATIENCE_S, TRIES, until

from obsidian_rag.errors import LivesyncRefused, LivesyncUnreachable, ObsidianRagError
from obsidian_rag.livesync.couchdb.answers import Change, parse_json, parse_page, seq_text
from obsidian_rag.livesync.couchdb.couch import Couch
from obsidian_rag.livesync.couchdb.feed import Backoff
from obsidian_rag.livesync.couchdb.remote import Remote

# A server is lost that is silent for two and a half heartbeats, so this is no shorter: on a busy
# machine it would be lost where a test means it to be there.
HEARTBEAT_S = 1.0
# A stop is heard at once, whatever the feed is waiting for.
SOON_S = 1.0


@dataclass
class Listener:
    """A thread that follows a database, as the node does."""

    couch: Couch
    since: str = "0"
    stop: threading.Event = field(default_factory=threading.Event)
    seen: "queue.Queue[Change]" = field(default_factory=queue.Queue)
    ticks: "queue.Queue[float]" = field(default_factory=queue.Queue)
    reports: "queue.Queue[LivesyncUnreachable | None]" = field(default_factory=queue.Queue)
    error: ObsidianRagError | None = None

    def __enter__(self) -> "Listener":
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> float:
        """Stop, and say how long that took."""
        began = time.monotonic()
        self.stop.set()
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()
        return time.monotonic() - began

    def pauses(self) -> Iterator[float]:
        """The seconds from one tick to the next, so many times."""
        before = self.ticks.get(timeout=PATIENCE_S)
        for _ in range(TRIES):
            now = self.ticks.get(timeout=PATIENCE_S)
            yield now - before
            before = now

    def ids(self, count: int) -> list[str]:
        """The next so many changes, and no other."""
        found = [self.seen.get(timeout=PATIENCE_S).id for _ in range(count)]
        assert self.seen.empty()
        return found

    def _run(self) -> None:
        try:
            for change in self.couch.follow(self.since, self.stop, self.reports.put):
                if change is None:
                    self.ticks.put(time.monotonic())
                else:
                    self.seen.put(change)
        except ObsidianRagError as error:
            self.error = error


def write(couch: Couch, *ids: str) -> None:
    rows = couch.bulk_docs([{"_id": doc_id} for doc_id in ids])
    assert {row.error for row in rows} == {None}


def feeds(proxy: FaultyProxy, kind: str = "continuous") -> list[str]:
    return [one.line for one in proxy.requests if f"feed={kind}" in one.line]


def reading_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "livesync-feed"]


@pytest.fixture
def eager(far_remote: Remote) -> Iterator[Couch]:
    """A client that soon notices a silence, through the proxy."""
    client = Couch(far_remote, timeout_s=PATIENCE_S, heartbeat_s=HEARTBEAT_S)
    yield client
    client.close()


def threads_leave() -> None:
    until(lambda: not reading_threads(), "the reading threads to leave")


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    yield
    threads_leave()


def test_what_was_there_and_what_another_client_writes_arrives(couch: Couch, pouch: Server) -> None:
    write(couch, "before.md")
    with Listener(couch) as listener:
        assert listener.ids(1) == ["before.md"]
        path = f"/{couch.remote.database}/after.md"
        assert pouch.request("PUT", path, {"type": "plain"})[0] in (201, 202)
        change = listener.seen.get(timeout=PATIENCE_S)
    assert (change.id, len(change.revs), change.is_deleted) == ("after.md", 1, False)


def test_a_feed_goes_on_where_another_stopped(couch: Couch) -> None:
    write(couch, "a", "b", "c")
    with Listener(couch) as first:
        seen = [first.seen.get(timeout=PATIENCE_S) for _ in range(3)]
    with Listener(couch, since=seen[1].seq) as second:
        write(couch, "d")
        assert second.ids(2) == [seen[2].id, "d"]


def test_a_deletion_arrives_as_one(couch: Couch) -> None:
    [row] = couch.bulk_docs([{"_id": "a"}])
    with Listener(couch) as listener:
        listener.ids(1)
        couch.bulk_docs([{"_id": "a", "_rev": row.rev, "_deleted": True}])
        assert listener.seen.get(timeout=PATIENCE_S).is_deleted


def test_chunks_are_dropped_but_not_asked_for_again(eager: Couch, proxy: FaultyProxy) -> None:
    with Listener(eager) as listener:
        write(eager, "a.md", *(f"h:{number}" for number in range(100)))
        assert listener.ids(1) == ["a.md"]
        last = eager.changes("0", limit=1000).last_seq
        # The first heartbeats may have come before the chunks, on a busy machine even between.
        seen = listener.ticks.qsize()
        until(lambda: listener.ticks.qsize() > seen + 2, "heartbeats after the chunks")
        proxy.requests.clear()

        def asks_again() -> bool:
            proxy.cut()
            return bool(feeds(proxy, kind=""))

        # On a busy machine the server may have been silent for so long that the feed is just coming
        # back, in either way of asking; so one cut need not be enough.
        until(asks_again, "another feed")
        write(eager, "b.md")
        assert listener.ids(1) == ["b.md"]
    if last.isdigit():
        assert f"since={last}&" in feeds(proxy, kind="")[0]


def test_the_feed_asks_for_no_documents_and_no_compression(
    eager: Couch, proxy: FaultyProxy
) -> None:
    write(eager, "a")
    with Listener(eager) as listener:
        listener.ids(1)
    [request] = [one for one in proxy.requests if "_changes" in one.line]
    assert "include_docs" not in request.line
    assert "heartbeat=1000" in request.line
    assert b"accept-encoding: identity\r\n" in request.head.lower()


def test_many_changes_arrive_once_and_in_order_at_a_slow_reader(couch: Couch) -> None:
    ids = [f"note{number:05}.md" for number in range(3000)]
    write(couch, *ids)
    stop = threading.Event()
    seen: list[str] = []
    with closing(couch.follow("0", stop)) as rows:
        for change in rows:
            if change is not None:
                seen.append(change.id)
            if len(seen) == 1000:
                write(couch, "late.md")
            if seen and seen[-1] == "late.md":
                break
    assert seen == [*ids, "late.md"]


def test_ids_with_odd_line_ends_are_not_torn(couch: Couch) -> None:
    ids = ["a\u2028b", "c\u0085d", "e\x0bf", "g\rh"]
    write(couch, *ids)
    with Listener(couch) as listener:
        assert listener.ids(4) == ids


def test_now_gives_only_what_comes_later(couch: Couch) -> None:
    write(couch, "before")
    with Listener(couch, since="now") as listener:
        listener.ticks.get(timeout=PATIENCE_S)
        write(couch, "after")
        assert listener.ids(1) == ["after"]


def test_now_stays_the_same_position_after_a_lost_connection(
    far_couch: Couch, couch: Couch, proxy: FaultyProxy
) -> None:
    write(couch, "before")
    with Listener(far_couch, since="now") as listener:
        until(lambda: feeds(proxy), "the feed")
        proxy.refuse()
        write(couch, "while it was gone")
        proxy.heal()
        assert listener.ids(1) == ["while it was gone"]


def test_while_nothing_happens_there_is_a_tick_a_second(couch: Couch) -> None:
    with Listener(couch) as listener:
        assert any(0.9 <= pause_s <= 2 for pause_s in listener.pauses())


def test_a_heartbeat_is_a_tick(remote: Remote) -> None:
    with (
        closing(Couch(remote, timeout_s=PATIENCE_S, heartbeat_s=0.2)) as couch,
        Listener(couch) as listener,
    ):
        assert any(pause_s < 0.9 for pause_s in listener.pauses())


def test_stop_ends_a_waiting_feed_at_once_and_leaves_no_thread(couch: Couch) -> None:
    def seconds() -> float:
        with Listener(couch) as listener:
            listener.ticks.get(timeout=PATIENCE_S)
            assert len(reading_threads()) == 1
            took_s = listener.leave()
        threads_leave()
        return took_s

    assert any(seconds() < SOON_S for _ in range(TRIES))


def test_stop_before_the_start_asks_nothing(far_couch: Couch, proxy: FaultyProxy) -> None:
    stop = threading.Event()
    stop.set()
    assert list(far_couch.follow("0", stop)) == []
    assert proxy.requests == []


@pytest.mark.parametrize("since", ["0", "now"])
def test_stop_ends_a_feed_that_the_server_does_not_answer(
    far_couch: Couch, proxy: FaultyProxy, since: str
) -> None:
    proxy.delay(2 * PATIENCE_S)

    def seconds() -> float:
        proxy.requests.clear()
        with Listener(far_couch, since=since) as listener:
            until(lambda: proxy.requests, "the question")
            took_s = listener.leave()
        threads_leave()
        return took_s

    assert any(seconds() < SOON_S for _ in range(TRIES))


def test_stop_ends_a_feed_that_waits_to_try_again(far_couch: Couch, proxy: FaultyProxy) -> None:
    proxy.refuse()

    def seconds() -> float:
        with Listener(far_couch) as listener:
            for _ in range(2):
                assert listener.reports.get(timeout=PATIENCE_S) is not None
            return listener.leave()

    assert any(seconds() < SOON_S for _ in range(TRIES))


def test_a_reader_that_leaves_takes_the_thread_with_it(couch: Couch) -> None:
    write(couch, "a")
    with closing(couch.follow("0", threading.Event())) as rows:
        assert next(change for change in rows if change is not None).id == "a"
        assert len(reading_threads()) == 1
    threads_leave()


def test_a_closed_client_ends_its_feeds(couch: Couch) -> None:
    with Listener(couch) as listener:
        listener.ticks.get(timeout=PATIENCE_S)
        couch.close()
        listener.thread.join(PATIENCE_S)
        assert not listener.thread.is_alive()


def test_a_feed_that_is_cut_comes_back_and_loses_nothing(
    far_couch: Couch, couch: Couch, proxy: FaultyProxy
) -> None:
    with Listener(far_couch) as listener:
        for turn in range(3):
            write(couch, f"{turn}-connected")
            assert listener.ids(1) == [f"{turn}-connected"]
            proxy.refuse()
            write(couch, f"{turn}-gone")
            proxy.heal()
            assert listener.ids(1) == [f"{turn}-gone"]


def test_trouble_is_reported_and_so_is_its_end(far_couch: Couch, proxy: FaultyProxy) -> None:
    with Listener(far_couch) as listener:
        assert listener.reports.get(timeout=PATIENCE_S) is None
        proxy.refuse()
        assert isinstance(listener.reports.get(timeout=PATIENCE_S), LivesyncUnreachable)
        proxy.heal()
        until(lambda: None in listener.reports.queue, "the good news")
        listener.ticks.get(timeout=PATIENCE_S)
    told = list(listener.reports.queue)
    assert told.count(None) == 1
    assert told[-1] is None


@pytest.mark.parametrize("n_bytes", [1, 260, 330])
def test_a_row_that_is_cut_arrives_whole_later(
    far_couch: Couch, couch: Couch, proxy: FaultyProxy, n_bytes: int
) -> None:
    ids = [f"note{number}.md" for number in range(6)]
    write(couch, *ids)
    proxy.cut_after(n_bytes, "feed=continuous")
    with Listener(far_couch) as listener:
        until(lambda: len(feeds(proxy)) > 1, "the second connection")
        proxy.heal()
        proxy.cut()
        assert listener.ids(len(ids)) == ids


@pytest.mark.parametrize("status", [503, 429])
def test_a_server_in_trouble_is_waited_for(
    far_couch: Couch, couch: Couch, proxy: FaultyProxy, status: int
) -> None:
    write(couch, "a")
    proxy.answer(status, "_changes")
    with Listener(far_couch) as listener:
        assert listener.reports.get(timeout=PATIENCE_S) is not None
        assert listener.seen.empty()
        proxy.heal()
        assert listener.ids(1) == ["a"]


@pytest.mark.parametrize(
    ("status", "content", "content_type"),
    [
        (401, b'{"error":"unauthorized"}', "application/json"),
        (403, b'{"error":"forbidden"}', "application/json"),
        (404, b'{"error":"not_found","reason":"no_db_file"}', "application/json"),
        (200, b"<html>Sign in</html>", "text/html"),
        (302, b"", "text/plain"),
    ],
)
def test_a_refusal_ends_the_feed_with_its_reason(
    far_couch: Couch, proxy: FaultyProxy, status: int, content: bytes, content_type: str
) -> None:
    proxy.answer(status, "_changes", content, content_type, location="http://elsewhere.example/")
    with Listener(far_couch) as listener:
        listener.thread.join(PATIENCE_S)
        assert isinstance(listener.error, LivesyncRefused)


def test_a_database_that_vanishes_ends_the_feed(pouch: Server) -> None:
    gone = Couch(pouch.new_remote())
    with Listener(gone) as listener:
        listener.thread.join(PATIENCE_S)
        assert isinstance(listener.error, LivesyncRefused)
    gone.close()


def test_where_something_holds_the_feed_back_we_poll(
    eager: Couch, couch: Couch, proxy: FaultyProxy
) -> None:
    write(couch, "before")
    proxy.hold("feed=continuous")
    with Listener(eager) as listener:
        assert listener.ids(1) == ["before"]
        until(lambda: feeds(proxy, "longpoll"), "a long poll")
        write(couch, "h:chunk", "after")
        assert listener.ids(1) == ["after"]
        write(couch, "again")
        assert listener.ids(1) == ["again"]
    assert len(feeds(proxy)) == 1
    assert list(listener.reports.queue) == [None]


def test_stop_ends_a_poll_at_once(eager: Couch, proxy: FaultyProxy) -> None:
    proxy.hold("feed=continuous")

    def seconds() -> float:
        proxy.requests.clear()
        with Listener(eager) as listener:
            until(lambda: feeds(proxy, "longpoll"), "a long poll")
            return listener.leave()

    assert any(seconds() < SOON_S for _ in range(TRIES))


def test_a_poll_that_is_cut_is_asked_again(eager: Couch, couch: Couch, proxy: FaultyProxy) -> None:
    proxy.hold("feed=continuous")
    with Listener(eager) as listener:
        until(lambda: feeds(proxy, "longpoll"), "a long poll")
        proxy.refuse()
        write(couch, "a")
        proxy.heal()
        assert listener.ids(1) == ["a"]


def test_a_server_that_does_not_wait_is_not_flooded_with_polls(
    eager: Couch, proxy: FaultyProxy
) -> None:
    proxy.hold("feed=continuous")
    proxy.answer(200, "feed=longpoll", b'{"results":[],"last_seq":"0","pending":0}')
    with Listener(eager) as listener:
        until(lambda: feeds(proxy, "longpoll"), "a long poll")
        before = len(feeds(proxy, "longpoll"))
        for _ in range(3):
            listener.ticks.get(timeout=PATIENCE_S)
        assert len(feeds(proxy, "longpoll")) - before <= 8


def test_a_server_that_ends_every_feed_at_once_is_not_flooded(
    far_couch: Couch, proxy: FaultyProxy
) -> None:
    proxy.answer(200, "feed=continuous", b'{"last_seq":"0"}\n')
    began = time.monotonic()
    with Listener(far_couch) as listener:
        for _ in range(5):
            assert listener.reports.get(timeout=PATIENCE_S) is None
            assert listener.reports.get(timeout=PATIENCE_S) is not None
    # At least half a second after each.
    assert time.monotonic() - began >= 2


def test_pauses_double_up_to_a_minute_and_begin_again_after_success() -> None:
    backoff = Backoff(chance=lambda: 0.0)
    assert [backoff.pause_s() for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    backoff.reset()
    assert backoff.pause_s() == 1


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=20))
def test_chance_shortens_a_pause_by_half_at_most(chances: list[float]) -> None:
    left = iter(chances)
    backoff = Backoff(chance=lambda: next(left))
    for turn in range(len(chances)):
        longest = min(60.0, 2.0**turn)
        assert longest / 2 <= backoff.pause_s() <= longest


@pytest.mark.parametrize(
    ("seq", "text"),
    [(7, "7"), ("23-g1AAAA", "23-g1AAAA"), ([12, "abc"], '[12, "abc"]')],
)
def test_a_position_in_the_feed_is_text(seq: object, text: str) -> None:
    assert seq_text(seq) == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.just("half \ud800"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "seq", "changes", "rev", "deleted"]), inner)
    ),
    max_leaves=10,
)


@given(st.lists(JSON), JSON)
def test_no_row_of_a_hostile_server_does_harm(results: list[object], last_seq: object) -> None:
    answer = parse_json(json.dumps({"results": results, "last_seq": last_seq}).encode())
    page = parse_page(answer, limit=10)
    assert page is not None
    for row in page.rows:
        assert row.id
        assert not row.id.startswith("h:")
        assert row.id.encode() and row.seq.encode()
        assert all(isinstance(rev, str) for rev in row.revs)


@pytest.mark.parametrize(
    ("answer", "is_last"),
    [
        ({"results": [{}, {}], "last_seq": 2}, False),
        ({"results": [{}], "last_seq": 1}, True),
        ({"results": [{}, {}], "last_seq": "2-g1", "pending": 0}, True),
        ({"results": [{}, {}], "last_seq": "2-g1", "pending": 3}, False),
        ({"results": [], "last_seq": "2-g1", "pending": 3}, False),
    ],
)
def test_a_page_says_whether_it_is_the_last(answer: object, is_last: bool) -> None:
    page = parse_page(answer, limit=2)
    assert page is not None
    assert page.is_last is is_last


@pytest.mark.parametrize(
    "answer", [None, [], {}, {"results": []}, {"last_seq": 1}, {"results": {}, "last_seq": 1}]
)
def test_anything_but_a_page_of_changes_is_none(answer: object) -> None:
    assert parse_page(answer, limit=10) is None
