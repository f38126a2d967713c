"""Jobs with a real worker: order, progress, cancelling, and what happens when a process dies."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.embed.embedding_doubles import Answer, FakeOllama, fake_ollama
from tests.waiting import PATIENCE_S

from obsidian_rag import config, errors
from obsidian_rag.engine import Bus, Engine, Event, Job, run_index
from obsidian_rag.engine.events import EventKind
from obsidian_rag.engine.job import JobStatus, Precedence, RunOrder, job_fields
from obsidian_rag.engine.jobs import Jobs
from obsidian_rag.errors import Busy, NotFound, error_from
from obsidian_rag.index import Mode, Phase, Progress
from obsidian_rag.store import writer_lock

MakeVault = Callable[[Mapping[str, str | bytes]], Path]
MakeEngine = Callable[..., Engine]
NOTES = 400


class Living:
    """Jobs, and everything their bus has told."""

    def __init__(self, made: config.Config) -> None:
        self.config = made
        self.events: list[Event] = []
        self._heard = threading.Condition()
        bus = Bus()
        bus.subscribe(self._hear)
        self.jobs = Jobs(made, bus)

    def _hear(self, event: Event) -> None:
        with self._heard:
            self.events.append(event)
            self._heard.notify_all()

    def until(self, is_awaited: Callable[[Event], bool]) -> Event:
        """The first event of that kind, of the past or to come."""
        with self._heard:
            assert self._heard.wait_for(lambda: any(map(is_awaited, self.events)), PATIENCE_S)
            return next(event for event in self.events if is_awaited(event))

    def until_begun(self, job: Job, attempt: int = 1) -> None:
        self.until(lambda event: told_of(event, job) == ("started", attempt))

    def until_stored(self) -> None:
        self.until(lambda event: event.data.get("phase") == "storing")

    def done(self, job: Job) -> Job:
        ended = self.jobs.wait(job.id, PATIENCE_S)
        assert ended.is_over
        return ended

    def story(self, job: Job) -> list[tuple[object, object]]:
        """(status, attempt) as the events of a job told them."""
        return [told for event in self.events if (told := told_of(event, job))]

    def outcome(self) -> Any:
        return json.loads((self.config.home / "sync-result.json").read_text())


def told_of(event: Event, job: Job) -> tuple[object, object] | None:
    if event.kind is EventKind.JOB and event.data["id"] == job.id:
        return event.data["status"], event.data["attempt"]
    return None


Live = Callable[..., Living]


@pytest.fixture
def live(engine: MakeEngine) -> Iterator[Live]:
    """Start jobs for a vault: `live(vault, settings)`."""
    made: list[Living] = []

    def make(vault: Path, settings: Mapping[str, object] | None = None) -> Living:
        made.append(Living(engine(vault, settings).config))
        made[-1].jobs.start()
        return made[-1]

    yield make
    for one in made:
        one.jobs.stop(0)
    assert workers() == []
    assert [thread for thread in threading.enumerate() if thread.name == "jobs"] == []


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    """An embedder that answers for 256 texts and then waits until it is released."""
    with fake_ollama() as fake:

        def hold(request: dict[str, Any]) -> Answer:
            if sum(len(batch) for batch in fake.inputs) > 256:
                fake.release.wait(PATIENCE_S)
            return fake.vectors(request)

        fake.on_embed = hold
        yield fake


def by(server: FakeOllama) -> dict[str, object]:
    return {
        "embedding.provider": "ollama",
        "embedding.model": "tiny",
        "embedding.dimensions": 8,
        "embedding.base_url": server.url,
    }


@pytest.fixture
def slow(live: Live, make_vault: MakeVault, server: FakeOllama) -> Living:
    """A run of this vault stops in the middle until the server is released."""
    notes = {f"{at:03}.md": f"# Note {at}\n\ntext of note {at}" for at in range(NOTES)}
    return live(make_vault(notes), by(server))


def workers() -> list[psutil.Process]:
    found = []
    for child in psutil.Process().children():
        try:
            if "engine.worker" in " ".join(child.cmdline()):
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


def kill_worker() -> None:
    (worker,) = workers()
    worker.send_signal(signal.SIGKILL)


def contents(engine: Engine) -> list[tuple[Any, ...]]:
    rows = engine.chunks.table.to_arrow().to_pylist()
    return sorted(
        (row["source_file"], row["chunk_index"], row["chunk_text"], row["vector"]) for row in rows
    )


@contextmanager
def in_thread(action: Callable[[], object]) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=action)
    thread.start()
    try:
        yield thread
    finally:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def sent(jobs: Jobs, kind: str) -> threading.Event:
    """Set once the worker can read a message of this kind."""
    link, event = jobs._link, threading.Event()
    send = link.send

    def spy(message: Mapping[str, object]) -> None:
        send(message)
        if message["type"] == kind:
            event.set()

    link.send = spy  # type: ignore[method-assign]
    return event


def test_a_job_is_started_told_of_and_completed(live: Live, make_vault: MakeVault) -> None:
    living = live(make_vault({"a.md": "text", "b.md": "more"}))
    job = living.jobs.request(Mode.FULL)
    assert (job.status, job.is_requested, job.attempt) == (JobStatus.STARTED, True, 0)
    done = living.done(job)
    assert (done.status, done.attempt, done.error) == (JobStatus.COMPLETED, 1, None)
    assert done.result is not None
    assert (done.result["indexed_files"], done.result["added"]) == (2, 2)
    assert done.finished_at is not None
    assert done.finished_at > done.created_at
    assert living.story(job) == [("started", 1), ("completed", 1)]
    told = [event.data for event in living.events if event.kind is EventKind.PROGRESS]
    assert all(data["job_id"] == job.id and data["mode"] == "full" for data in told)
    assert {"scanning", "parsing", "embedding", "storing"} <= {data["phase"] for data in told}
    assert done.progress is not None
    assert living.jobs.active is None
    assert living.jobs.last == done
    assert living.outcome()["status"] == "complete"


def test_a_job_as_events_and_tools_show_it(live: Live, make_vault: MakeVault) -> None:
    living = live(make_vault({"a.md": "text"}))
    done = living.done(living.jobs.request(Mode.FULL))
    assert living.events[-1].data == job_fields(done)
    shown = json.loads(json.dumps(job_fields(done)))
    assert shown.pop("result") == done.result
    assert shown.pop("progress").keys() == {"phase", "current", "total"}
    assert shown == {
        "id": done.id,
        "mode": "full",
        "link_id": None,
        "status": "completed",
        "requested": True,
        "attempt": 1,
        "created_at": done.created_at,
        "finished_at": done.finished_at,
        "error": None,
    }


def test_an_import_that_gave_way_goes_on_counting_and_its_wait_is_not_work() -> None:
    job = Job(RunOrder(Mode.SYNC, link_id="x"), is_requested=False, began=time.monotonic() - 10)
    job = job.with_progress(Progress(Phase.SCANNING, 900, 0)).with_progress(
        Progress(Phase.STORING, 300, 900)
    )
    waiting = job.interrupted()
    worked_s = waiting.worked_s
    assert worked_s >= 10
    assert (waiting.worked_s, waiting.stored) == (worked_s, job.stored)
    again = replace(waiting, began=time.monotonic()).with_progress(
        Progress(Phase.STORING, 100, 600)
    )
    assert again.stored == again.progress == Progress(Phase.STORING, 400, 900)
    assert again.worked_s >= worked_s
    assert replace(again, began=None).interrupted().stored_before == 400


def test_a_second_request_is_answered_with_the_job_under_way(
    slow: Living, server: FakeOllama
) -> None:
    first = slow.jobs.request(Mode.FULL)
    assert slow.jobs.request(Mode.SYNC).id == first.id
    slow.until_stored()
    found: list[Job] = []
    threads = [
        threading.Thread(target=lambda: found.append(slow.jobs.request(Mode.REINDEX)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {(job.id, job.order.mode, job.attempt) for job in found} == {(first.id, Mode.FULL, 1)}
    assert slow.jobs.active is not None
    assert slow.jobs.active.progress is not None
    server.release.set()
    slow.done(first)
    assert slow.jobs.request(Mode.SYNC).id != first.id


def test_a_request_for_a_vault_joins_the_import_that_the_daemon_began(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    jobs = Living(engine(make_vault({})).config).jobs
    begun = jobs.sync(None, "linked")
    edited = jobs.sync(["a.md"], "edited")
    assert jobs.request(Mode.SYNC, link_id="linked").id == begun.id
    assert jobs.request(Mode.SYNC, link_id="edited").id != edited.id


def test_what_waits_goes_by_precedence_and_an_import_is_last(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    jobs = Living(engine(make_vault({})).config).jobs
    asked = [
        jobs.sync(None, "first", Precedence.IMPORT),
        jobs.sync(None, "second", Precedence.IMPORT),
        jobs.sync(None, "known", Precedence.LOOK),
        jobs.sync(["a.md"], "known"),
        jobs.sync(None, "primary"),
        jobs.sync(["b.md"]),
        jobs.request(Mode.SYNC),
    ]
    waiting = [asked.index(job) for job in jobs._waiting]
    assert waiting == [3, 4, 5, 6, 2, 0, 1]


def test_a_request_waits_behind_the_watcher_s_job_and_comes_right_after_it(
    slow: Living, server: FakeOllama
) -> None:
    watched = slow.jobs.sync(None)
    slow.until_stored()
    assert slow.jobs.active is not None
    assert slow.jobs.active.id == watched.id
    asked = slow.jobs.request(Mode.FULL)
    later = slow.jobs.sync(["000.md"])
    assert slow.jobs.active.id == asked.id
    assert slow.jobs.wait(asked.id, 0).attempt == 0
    server.release.set()
    assert slow.done(later).order.paths == ("000.md",)
    ended = [
        event.data["id"]
        for event in slow.events
        if event.kind is EventKind.JOB and event.data["status"] == "completed"
    ]
    assert ended == [watched.id, asked.id, later.id]
    assert slow.jobs.last is not None
    assert slow.jobs.last.id == asked.id


def test_jobs_asked_for_before_the_start_are_done_after_it(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    living = Living(engine(make_vault({"a.md": "text"})).config)
    job = living.jobs.request(Mode.SYNC)
    assert not living.jobs.wait(job.id, 0).is_over
    living.jobs.start()
    living.jobs.start()
    assert len(workers()) <= 1
    assert living.done(job).status is JobStatus.COMPLETED
    living.jobs.stop(0)


def test_a_listener_may_ask_and_a_wait_ends_after_the_event(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    bus = Bus()
    jobs = Jobs(engine(make_vault({"a.md": "text"})).config, bus)
    seen: list[tuple[Job | None, Job | None]] = []
    bus.subscribe(lambda event: seen.append((jobs.active, jobs.last)))
    jobs.start()
    done = jobs.wait(jobs.request(Mode.FULL).id, PATIENCE_S)
    assert seen[0][0] is not None
    assert seen[0][0].id == done.id
    assert seen[-1] == (None, done)
    jobs.stop(0)


def test_a_waiting_job_is_cancelled_at_once(slow: Living, server: FakeOllama) -> None:
    watched = slow.jobs.sync(None)
    slow.until_stored()
    asked = slow.jobs.request(Mode.FULL)
    assert slow.jobs.cancel().status is JobStatus.CANCELLED
    assert slow.jobs.wait(asked.id, 0).status is JobStatus.CANCELLED
    assert slow.story(asked) == [("cancelled", 0)]
    again = slow.jobs.request(Mode.SYNC)
    assert again.id != asked.id
    server.release.set()
    assert slow.done(watched).status is JobStatus.COMPLETED
    assert slow.done(again).status is JobStatus.COMPLETED


def test_a_running_job_is_cancelled_at_its_next_stop_and_another_goes_on(
    slow: Living, server: FakeOllama
) -> None:
    job = slow.jobs.request(Mode.FULL)
    slow.until_stored()
    assert slow.jobs.cancel(job.id).status is JobStatus.STARTED
    slow.jobs.cancel()
    server.release.set()
    done = slow.done(job)
    assert done.status is JobStatus.CANCELLED
    assert done.result is not None
    assert done.result["is_cancelled"] is True
    indexed = done.result["indexed_files"]
    assert isinstance(indexed, int)
    assert 0 < indexed < NOTES
    assert slow.outcome()["status"] == "cancelled"
    after = slow.done(slow.jobs.request(Mode.SYNC))
    assert after.result is not None
    assert after.result["indexed_files"] == NOTES


def test_a_job_cancelled_as_soon_as_it_begins_is_cancelled(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    bus = Bus()
    notes = {f"{at:03}.md": f"text {at}" for at in range(20)}
    jobs = Jobs(engine(make_vault(notes)).config, bus)

    def cancel_at_once(event: Event) -> None:
        if event.kind is EventKind.JOB and event.data["status"] == "started":
            jobs.cancel()

    bus.subscribe(cancel_at_once)
    jobs.start()
    assert jobs.wait(jobs.request(Mode.SYNC).id, PATIENCE_S).status is JobStatus.CANCELLED
    jobs.stop(0)


def test_there_is_nothing_to_cancel_when_nothing_is_under_way(
    live: Live, make_vault: MakeVault
) -> None:
    living = live(make_vault({"a.md": "text"}))
    done = living.done(living.jobs.request(Mode.FULL))
    for job_id in (None, done.id, "unheard of"):
        with pytest.raises(NotFound):
            living.jobs.cancel(job_id)
    with pytest.raises(NotFound):
        living.jobs.wait("unheard of", 0)


@pytest.mark.slow
def test_a_job_whose_worker_is_killed_is_done_again_from_where_it_was(
    slow: Living, server: FakeOllama, engine: MakeEngine, tmp_path: Path
) -> None:
    job = slow.jobs.request(Mode.FULL)
    slow.until_stored()
    server.on_embed = server.vectors
    asked_before = len(server.inputs)
    kill_worker()
    done = slow.done(job)
    assert (done.status, done.attempt) == (JobStatus.COMPLETED, 2)
    assert slow.story(job) == [("started", 1), ("started", 2), ("completed", 2)]
    embedded_again = sum(len(batch) for batch in server.inputs[asked_before:])
    assert 0 < embedded_again < NOTES
    healed = contents(Engine(slow.config))
    clean = Engine(config.Config(tmp_path / "clean", slow.config.file, slow.config.settings))
    run_index(clean, Mode.FULL)
    assert healed == contents(clean)
    clean.close()


@pytest.mark.slow
def test_a_job_whose_worker_is_killed_twice_fails_and_the_next_one_works(
    slow: Living, server: FakeOllama
) -> None:
    (slow.config.home / "sync-result.json").write_text('{"last_sync": "long ago"}')
    job = slow.jobs.request(Mode.FULL)
    slow.until_stored()
    kill_worker()
    slow.until_begun(job, attempt=2)
    kill_worker()
    done = slow.done(job)
    assert (done.status, done.attempt) == (JobStatus.FAILED, 2)
    assert done.error is not None
    assert done.error.code == "INDEXER_FAILED"
    assert "exit code -9" in done.error.message
    assert done.error.suggestion
    assert slow.story(job) == [("started", 1), ("started", 2), ("failed", 2)]
    outcome = slow.outcome()
    assert (outcome["status"], outcome["mode"]) == ("failed", "full")
    assert outcome["error"] == {"code": "INDEXER_FAILED", "message": done.error.message}
    assert outcome["last_sync"] == "long ago"
    server.release.set()
    after = slow.done(slow.jobs.request(Mode.SYNC))
    assert (after.status, after.attempt) == (JobStatus.COMPLETED, 1)
    assert slow.outcome()["status"] == "complete"


def test_a_cancelled_job_whose_worker_dies_is_not_done_again(
    slow: Living, server: FakeOllama
) -> None:
    job = slow.jobs.request(Mode.FULL)
    slow.until_stored()
    slow.jobs.cancel()
    kill_worker()
    assert slow.done(job).status is JobStatus.CANCELLED
    assert slow.story(job) == [("started", 1), ("cancelled", 1)]


def test_a_worker_that_died_in_its_sleep_costs_no_attempt(
    live: Live, make_vault: MakeVault
) -> None:
    living = live(make_vault({"a.md": "text"}))
    living.done(living.jobs.request(Mode.FULL))
    (worker,) = workers()
    worker.send_signal(signal.SIGKILL)
    psutil.wait_procs([worker], timeout=PATIENCE_S)
    done = living.done(living.jobs.request(Mode.SYNC))
    assert (done.status, done.attempt) == (JobStatus.COMPLETED, 1)


def test_the_worker_stays_between_jobs(live: Live, make_vault: MakeVault) -> None:
    living = live(make_vault({"a.md": "text"}))
    living.done(living.jobs.request(Mode.FULL))
    before = workers()
    living.done(living.jobs.sync(["a.md"]))
    assert workers() == before


def test_an_interrupt_at_the_terminal_is_not_for_the_worker_and_its_niceness_counts(
    live: Live, make_vault: MakeVault
) -> None:
    living = live(make_vault({"a.md": "text"}))
    living.done(living.jobs.request(Mode.FULL))
    [worker] = workers()
    assert os.getpgid(worker.pid) != os.getpgid(0)
    # Linux shares its time among sessions first, and among the processes of each by niceness.
    assert os.getsid(worker.pid) == os.getsid(0)


@pytest.fixture
def broken_python(tmp_path: Path) -> Path:
    """An interpreter that writes down when it is started, and ends."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\ndate +%s.%N >> {tmp_path}/starts\nexit 3\n")
    program.chmod(0o700)
    return program


def test_a_worker_that_cannot_start_fails_the_job_but_is_not_tried_without_end(
    engine: MakeEngine,
    make_vault: MakeVault,
    monkeypatch: pytest.MonkeyPatch,
    broken_python: Path,
) -> None:
    living = Living(engine(make_vault({"a.md": "text"})).config)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(broken_python))
        living.jobs.start()
        for _ in range(3):
            done = living.done(living.jobs.request(Mode.FULL))
            assert (done.status, done.attempt) == (JobStatus.FAILED, 0)
            assert done.error is not None
            assert done.error.code == "INDEXER_FAILED"
        assert living.outcome()["status"] == "failed"
        starts = [float(at) for at in (broken_python.parent / "starts").read_text().split()]
        assert 2 <= len(starts) <= 2 + 3
        pauses = [later - before for before, later in pairwise(starts)]
        assert all(pause >= 0.1 * 2**at for at, pause in enumerate(pauses))
        patch.setattr(sys, "executable", str(broken_python / "nowhere"))
        assert living.done(living.jobs.request(Mode.FULL)).status is JobStatus.FAILED
    assert living.done(living.jobs.request(Mode.FULL)).status is JobStatus.COMPLETED
    living.jobs.stop(0)


def test_what_the_worker_could_not_do_has_its_own_code(live: Live, make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": "text"})
    living = live(vault)
    with writer_lock(living.config.home, "index"):
        busy = living.done(living.jobs.request(Mode.FULL))
    assert (busy.status, busy.attempt) == (JobStatus.FAILED, 1)
    assert isinstance(busy.error, Busy)
    assert f"process {os.getpid()}" in busy.error.message
    elsewhere = vault.rename(vault.with_name("elsewhere"))
    assert isinstance(living.done(living.jobs.request(Mode.FULL)).error, NotFound)
    elsewhere.rename(vault)
    assert living.done(living.jobs.request(Mode.FULL)).status is JobStatus.COMPLETED


@pytest.mark.parametrize("kind", errors.ObsidianRagError.__subclasses__())
def test_a_failure_told_by_its_code_is_the_same_failure(
    kind: type[errors.ObsidianRagError],
) -> None:
    if "code" in vars(kind):
        made = error_from(kind.code, "A sentence.", "A step.")
        assert (type(made), made.message, made.suggestion) == (kind, "A sentence.", "A step.")


def test_a_code_that_nobody_knows_is_the_indexer_s() -> None:
    assert error_from("FROM_THE_FUTURE", "A sentence.").code == "INDEXER_FAILED"


PARENT = """
import sys, threading
from obsidian_rag.config import load
from obsidian_rag.engine.events import Bus, EventKind
from obsidian_rag.engine.jobs import Jobs
from obsidian_rag.index import Mode
from obsidian_rag.engine.job import Precedence

bus = Bus()
bus.subscribe(lambda event: print(event.data.get("phase"), flush=True))
jobs = Jobs(load(), bus)
jobs.start()
jobs.request(Mode.FULL)
threading.Event().wait()
"""


def test_a_worker_does_not_outlive_a_killed_parent(
    engine: MakeEngine, make_vault: MakeVault, server: FakeOllama
) -> None:
    notes = {f"{at:03}.md": f"text of note {at}" for at in range(NOTES)}
    made = engine(make_vault(notes), by(server))
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        for line in parent.stdout:
            if line.strip() == "storing":
                break
        family = psutil.Process(parent.pid).children(recursive=True)
        assert family
        parent.kill()
    _, left = psutil.wait_procs(family, timeout=PATIENCE_S)
    assert left == []
    server.release.set()
    assert run_index(made, Mode.SYNC).indexed_files == NOTES


def test_stopping_waits_for_the_running_job_and_takes_no_other(
    slow: Living, server: FakeOllama
) -> None:
    running = slow.jobs.sync(None)
    slow.until_stored()
    waiting = slow.jobs.request(Mode.FULL)
    with in_thread(lambda: slow.jobs.stop(60)) as stopping:
        assert slow.done(waiting).status is JobStatus.CANCELLED
        with pytest.raises(Busy):
            slow.jobs.request(Mode.FULL)
        with pytest.raises(Busy):
            slow.jobs.sync(None)
        assert not slow.jobs.wait(running.id, 0).is_over
        assert stopping.is_alive()
        server.release.set()
    assert slow.done(running).status is JobStatus.COMPLETED
    assert workers() == []
    slow.jobs.stop(60)


def test_stopping_at_once_cancels_the_running_job(slow: Living, server: FakeOllama) -> None:
    job = slow.jobs.request(Mode.FULL)
    slow.until_stored()
    server.on_embed = server.vectors
    cancel_sent = sent(slow.jobs, "cancel")
    with in_thread(lambda: slow.jobs.stop(0)):
        assert cancel_sent.wait(PATIENCE_S)
        server.release.set()
    assert slow.done(job).status is JobStatus.CANCELLED
    assert slow.outcome()["status"] == "cancelled"


def test_stopping_does_not_wait_for_a_run_that_cannot_end(slow: Living, server: FakeOllama) -> None:
    job = slow.jobs.request(Mode.FULL)
    slow.until_stored()
    with in_thread(lambda: slow.jobs.stop(0)):
        assert slow.done(job).status is JobStatus.CANCELLED
    assert workers() == []
    server.release.set()
    engine = Engine(slow.config)
    assert run_index(engine, Mode.SYNC).indexed_files == NOTES
    engine.close()


def test_stopping_is_quick_right_after_the_start_and_needs_none(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"a.md": "text"})).config
    never_started = Jobs(made, Bus())
    job = never_started.request(Mode.FULL)
    never_started.stop(60)
    assert never_started.wait(job.id, 0).status is JobStatus.CANCELLED
    jobs = Jobs(made, Bus())
    jobs.start()
    jobs.request(Mode.FULL)
    jobs.stop(60)
    jobs.stop(60)
    jobs.start()
    assert workers() == []


def test_only_the_last_jobs_are_remembered_but_always_the_last_requested(
    live: Live, make_vault: MakeVault
) -> None:
    living = live(make_vault({"a.md": "text"}))
    asked = living.done(living.jobs.request(Mode.FULL))
    watched = [living.jobs.sync([]) for _ in range(25)]
    living.done(watched[-1])
    assert living.jobs.last == asked
    assert living.jobs.wait(asked.id, 0) == asked
    remembered = []
    for job in watched:
        try:
            remembered.append(living.jobs.wait(job.id, 0).id)
        except NotFound:
            continue
    assert remembered == [job.id for job in watched[-19:]]


def test_the_worker_s_log_is_for_its_owner_only_and_does_not_grow_without_end(
    live: Live, make_vault: MakeVault, home: Path
) -> None:
    (home / "logs").mkdir(parents=True)
    log = home / "logs" / "worker.log"
    log.write_text("x" * 1_100_000)
    living = live(make_vault({"a.md": "text"}))
    living.done(living.jobs.request(Mode.FULL))
    assert log.stat().st_size < 1_000_000
    log.write_text("x" * 1_100_000)
    living.done(living.jobs.sync(None))
    assert log.stat().st_size < 1_000_000
    log.unlink()
    (home / "logs").rmdir()
    living.jobs.stop(0)
    afresh = Living(living.config)
    afresh.jobs.start()
    afresh.done(afresh.jobs.request(Mode.SYNC))
    afresh.jobs.stop(0)
    assert (log.stat().st_mode & 0o777, log.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_log_that_cannot_be_written_does_not_keep_the_worker_from_working(
    engine: MakeEngine, make_vault: MakeVault, home: Path
) -> None:
    made = engine(make_vault({"a.md": "text"})).config
    (home / "logs").write_text("a file where the folder should be")
    living = Living(made)
    living.jobs.start()
    assert living.done(living.jobs.request(Mode.FULL)).status is JobStatus.COMPLETED
    living.jobs.stop(0)


def test_files_of_the_working_folder_do_not_pass_for_modules(
    live: Live, make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = make_vault({"a.md": "text", "lancedb.py": "raise SystemExit(7)"})
    monkeypatch.chdir(vault)
    living = live(vault)
    assert living.done(living.jobs.request(Mode.FULL)).status is JobStatus.COMPLETED
