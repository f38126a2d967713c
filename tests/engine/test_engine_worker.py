"""The worker process as its parent sees it: lines in, lines out, and how it ends."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from tests.embed.embedding_doubles import Answer, FakeOllama, fake_ollama
from tests.engine.soundness import assert_sound, stored_files
from tests.search.indexed import indexed
from tests.waiting import PATIENCE_S, until

from obsidian_rag import config
from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode
from obsidian_rag.relations import related_notes
from obsidian_rag.tools import OWNER, call

MakeVault = Callable[[Mapping[str, str | bytes]], Path]
MakeEngine = Callable[..., Engine]
SERVE = "from obsidian_rag.engine.worker import serve; serve()"
# A library that talks: in Python, past Python, and in a process of its own.
NOISY = """
import os, sys
import obsidian_rag.embed as embed

class Noisy(embed.HashEmbedder):
    def embed_documents(self, texts):
        print('{"type": "complete"}', flush=True)
        os.write(1, b"loading shards\\n")
        os.system("echo a child speaks")
        return super().embed_documents(texts)

embed.HashEmbedder = Noisy
"""
# A library with a mistake in it.
CLUMSY = """
import obsidian_rag.embed as embed

class Clumsy(embed.HashEmbedder):
    def embed_documents(self, texts):
        if any("fragile" in text for text in texts):
            raise LookupError(*texts)
        return super().embed_documents(texts)

embed.HashEmbedder = Clumsy
"""
# One that has not to wait long until it is quiet.
QUICK = f"import obsidian_rag.index.upkeep as upkeep; upkeep.MIN_IDLE_S = 0.05; {SERVE}"


class Worker:
    """A real worker, and the parent's side of its pipes."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def send(self, **message: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def run(self, job_id: str = "1", mode: str = "sync", paths: list[str] | None = None) -> None:
        self.send(type="run", job_id=job_id, mode=mode, paths=paths)

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the worker has ended"
        found: dict[str, Any] = json.loads(line)
        return found

    def end_of_run(self) -> dict[str, Any]:
        while (line := self.read())["type"] == "progress":
            continue
        return line

    def hang_up(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(PATIENCE_S)


@contextmanager
def working(
    made: config.Config, program: str = SERVE, *, is_early: bool = False
) -> Iterator[Worker]:
    """A worker that is ready; one that gets stuck is killed, which ends the test.

    With `is_early` it gets an order before its settings.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(PATIENCE_S, process.kill)
    watchdog.start()
    worker = Worker(process)
    try:
        settings = made.settings.model_dump(mode="json", by_alias=True)
        if is_early:
            worker.send(type="relate", paths=["a.md"], link_id=None)
        worker.send(type="configure", home=str(made.home), file=str(made.file), settings=settings)
        assert worker.read() == {"type": "ready"}
        yield worker
    finally:
        watchdog.cancel()
        watchdog.join()
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


@contextmanager
def holding(engine: MakeEngine, vault: Path) -> Iterator[tuple[Engine, FakeOllama]]:
    """An installation whose embedder does not answer until it is released."""
    with fake_ollama() as server:

        def hold(request: dict[str, Any]) -> Answer:
            server.release.wait(PATIENCE_S)
            return server.vectors(request)

        server.on_embed = hold
        settings = {
            "embedding.provider": "ollama",
            "embedding.model": "tiny",
            "embedding.dimensions": 8,
            "embedding.base_url": server.url,
        }
        yield engine(vault, settings), server


def until_embedding(worker: Worker, server: FakeOllama) -> None:
    while worker.read().get("phase") != "parsing":
        continue
    until(lambda: server.requests)


def test_a_run_tells_its_progress_and_ends_with_the_fields_of_a_result(
    engine: MakeEngine, make_vault: MakeVault, home: Path
) -> None:
    made = engine(make_vault({"a.md": "text", "b.md": "more", "bad.md": b"\xff"}))
    with working(made.config) as worker:
        worker.run(mode="full")
        phases = set()
        while (line := worker.read())["type"] == "progress":
            assert set(line) == {"type", "phase", "current", "total"}
            phases.add(line["phase"])
    assert {"scanning", "parsing", "embedding", "storing"} <= phases
    assert line.pop("type") == "complete"
    assert set(line) == set(run_index(made, Mode.SYNC).fields)
    assert (line["indexed_files"], line["added"], line["is_cancelled"]) == (2, 2, False)
    assert [error["file"] for error in line["errors"]] == ["bad.md"]


def test_one_worker_does_many_runs_and_a_run_of_some_paths_looks_at_no_others(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"a.md": "text"}))
    with working(made.config) as worker:
        worker.run("1", "full")
        assert worker.end_of_run()["added"] == 1
        make_vault({"b.md": "more", "c.md": "most"})
        worker.run("2", paths=["b.md"])
        assert worker.end_of_run()["added"] == 1
        assert stored_files(made) == ["a.md", "b.md"]
        worker.run("3", "reindex")
        assert worker.end_of_run()["indexed_files"] == 3
        assert worker.hang_up() == 0
    made.chunks.close()
    assert_sound(made)


def test_a_few_notes_are_related_before_their_run(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"a.md": "# A\nsourdough and rye\n", "b.md": "# B\nroses\n"}))
    with working(made.config) as worker:
        worker.run("1", "full")
        worker.end_of_run()
        make_vault({"c.md": "# C\nsourdough and rye\n"})
        worker.send(type="relate", paths=["c.md"], link_id=None)
        assert worker.read() == {"type": "related", "paths": ["c.md"], "written": 1, "removed": 0}
        assert related_notes(made.relations, note="a.md").notes[0].found.card.path == "c.md"
        assert stored_files(made) == ["a.md", "b.md"]
        worker.run("2", paths=["c.md"])
        assert worker.end_of_run()["added"] == 1
    made.chunks.close()
    assert_sound(made)


def test_notes_that_are_saved_before_the_settings_come_are_left_to_their_run(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"a.md": "text"}))
    with working(made.config, is_early=True) as worker:
        worker.run(mode="full")
        assert worker.end_of_run()["added"] == 1


def test_the_parent_s_settings_count_and_not_those_of_the_file(
    engine: MakeEngine, make_vault: MakeVault, home: Path
) -> None:
    made = engine(make_vault({"a.md": "text"}))
    made.config.file.write_text('{"vault_path": "/nowhere", "embedding": {"provider": "ollama"}}')
    with working(made.config) as worker:
        worker.run()
        assert worker.end_of_run()["indexed_files"] == 1


def test_an_expected_failure_is_told_with_its_code_and_the_worker_lives_on(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    vault = make_vault({"a.md": "text"})
    made = engine(vault)
    elsewhere = vault.rename(vault.with_name("elsewhere"))
    with working(made.config) as worker:
        worker.run("1")
        failure = worker.end_of_run()
        assert set(failure) == {"type", "code", "message", "recoverable", "suggestion"}
        assert (failure["type"], failure["code"]) == ("error", "NOT_FOUND")
        elsewhere.rename(vault)
        worker.run("2")
        assert worker.end_of_run()["indexed_files"] == 1


def test_an_unexpected_failure_is_told_by_its_kind_only_and_the_worker_lives_on(
    engine: MakeEngine, make_vault: MakeVault, home: Path
) -> None:
    made = engine(make_vault({"a.md": "fragile words"}))
    with working(made.config, CLUMSY + SERVE) as worker:
        worker.run("1")
        failure = worker.end_of_run()
        assert (failure["type"], failure["code"]) == ("error", "INDEXER_FAILED")
        assert "LookupError" in failure["message"]
        assert "fragile" not in failure["message"]
        outcome = json.loads((home / "sync-result.json").read_text())
        assert (outcome["status"], outcome["error"]["code"]) == ("failed", "INDEXER_FAILED")
        make_vault({"a.md": "sturdy words"})
        worker.run("2")
        assert worker.end_of_run()["indexed_files"] == 1
        worker.hang_up()
        assert worker.process.stderr is not None
        log = worker.process.stderr.read()
        assert "LookupError" in log
        assert "fragile" not in log
    assert_sound(made)


def test_what_libraries_print_goes_to_the_log_and_not_between_the_lines(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"a.md": "text"}))
    with working(made.config, NOISY + SERVE) as worker:
        worker.run()
        assert worker.end_of_run()["indexed_files"] == 1
        worker.hang_up()
        assert worker.process.stderr is not None
        log = worker.process.stderr.read()
    for words in ('{"type": "complete"}', "loading shards", "a child speaks"):
        assert words in log


def test_progress_is_told_ten_times_a_second_at_most(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({f"{number}.md": f"text {number}" for number in range(2000)}))
    told: Counter[str] = Counter()
    with working(made.config) as worker:
        worker.run("1", "full")
        worker.end_of_run()
        worker.run("2", "full")  # hashes every note, which is quick
        while (line := worker.read())["type"] == "progress":
            told[line["phase"]] += line["current"] != line["total"]
    assert line["unchanged"] == 2000
    assert 0 < max(told.values()) <= line["duration_ms"] / 100 + 2


def test_a_cancelled_run_ends_with_its_result_and_a_late_cancel_hits_no_other(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    # So many that they are not all embedded before the cancel is read, however late that is.
    vault = make_vault({f"{number}.md": f"text {number}" for number in range(200)})
    with holding(engine, vault) as (made, server), working(made.config) as worker:
        worker.run("1")
        until_embedding(worker, server)
        worker.send(type="cancel", job_id="another")
        worker.send(type="cancel", job_id="1")
        worker.send(type="cancel", job_id="1")
        server.release.set()
        first = worker.end_of_run()
        assert (first["type"], first["is_cancelled"]) == ("complete", True)
        assert first["indexed_files"] < 200
        worker.run("2")
        worker.send(type="cancel", job_id="1")
        second = worker.end_of_run()
        assert (second["is_cancelled"], second["indexed_files"]) == (False, 200)


def test_it_is_the_parent_who_decides_and_not_a_signal(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"a.md": "text"}))
    with working(made.config) as worker:
        for number in (signal.SIGINT, signal.SIGTERM):
            worker.process.send_signal(number)
        worker.run()
        assert worker.end_of_run()["indexed_files"] == 1
        assert worker.hang_up() == 0


def test_searches_go_first(engine: MakeEngine, make_vault: MakeVault) -> None:
    made = engine(make_vault({"a.md": "text"}))
    with working(made.config) as worker:
        theirs = psutil.Process(worker.process.pid).nice()
        assert theirs == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)


def test_a_run_whose_parent_goes_ends_tidily(engine: MakeEngine, make_vault: MakeVault) -> None:
    # So many that they are not all embedded before the end of the pipe is read.
    vault = make_vault({f"{number}.md": f"text {number}" for number in range(600)})
    with holding(engine, vault) as (made, server):
        with working(made.config) as worker:
            worker.run()
            until_embedding(worker, server)
            assert worker.process.stdin is not None
            worker.process.stdin.close()
            server.release.set()
            assert worker.process.wait(PATIENCE_S) == 0
        assert json.loads((made.config.home / "sync-result.json").read_text())["status"] == (
            "cancelled"
        )
        assert run_index(made, Mode.SYNC).indexed_files == 600
        assert_sound(made)


def test_a_run_that_cannot_end_is_left_behind_when_the_parent_goes(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    with holding(engine, make_vault({"a.md": "text"})) as (made, server):
        with working(made.config) as worker:
            worker.run()
            until_embedding(worker, server)
            assert worker.hang_up() == 1
        server.release.set()
        assert run_index(made, Mode.SYNC).indexed_files == 1


def test_a_parent_that_goes_before_it_said_anything_leaves_nobody_behind() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SERVE], stdin=subprocess.DEVNULL, timeout=PATIENCE_S
    )
    assert done.returncode == 0


def test_an_index_that_another_process_replaced_is_taken_up(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"a.md": "text", "b.md": "more"}))
    with working(made.config) as worker:
        worker.run("1", "full")
        worker.end_of_run()
        make_vault({"b.md": "changed", "c.md": "new"})
        run_index(made, Mode.REINDEX)
        make_vault({"b.md": "changed again, and longer"})
        worker.run("2")
        assert worker.end_of_run()["changed"] == 1
    made.chunks.close()
    assert stored_files(made) == ["a.md", "b.md", "c.md"]
    assert_sound(made)


def test_books_that_another_process_replaced_are_taken_up(
    engine: MakeEngine, make_vault: MakeVault, home: Path
) -> None:
    made = engine(make_vault({"a.md": "text", "b.md": "more"}))
    with working(made.config) as worker:
        worker.run("1", "full")
        worker.end_of_run()
        for file in home.glob("state.db*"):
            file.rename(file.with_name(f"old-{file.name}"))
        run_index(made, Mode.FULL)
        make_vault({"c.md": "new"})
        worker.run("2")
        assert worker.end_of_run()["indexed_files"] == 3
        worker.hang_up()
    made.close()
    assert stored_files(made) == ["a.md", "b.md", "c.md"]
    assert_sound(made)


def test_a_damaged_database_does_not_keep_a_worker_from_starting_and_healing_it(
    engine: MakeEngine, make_vault: MakeVault, home: Path
) -> None:
    made = engine(make_vault({"a.md": "text"}))
    run_index(made, Mode.FULL)
    made.close()
    (home / "state.db").write_bytes(b"this is no database, but it is long enough " * 100)
    with working(made.config) as worker:
        worker.run("1")
        assert worker.end_of_run()["code"] == "INDEX_CORRUPTED"
        worker.run("2", "reindex")
        assert worker.end_of_run()["indexed_files"] == 1
    assert_sound(made)


def test_a_worker_with_nothing_to_do_brings_the_search_indexes_up_to_date(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    vault = make_vault({f"{at}.md": f"# Note {at}\n\nrain and sedge {at}" for at in range(12)})
    made = engine(vault)
    run_index(made, Mode.FULL)
    for at in range(0, 12, 2):
        (vault / f"{at}.md").write_text(f"rain {at}")
    with working(made.config, QUICK) as worker:
        worker.run()
        assert worker.end_of_run()["changed"] == 6
        until(lambda: made.database.get("commits_since_maintenance") == "0")
        worker.run("2", mode="full")
        assert worker.end_of_run()["unchanged"] == 12
    with closing(indexed(vault.with_name("clean"), vault)) as clean:
        assert found(made) == found(clean)


def found(engine: Engine) -> list[tuple[object, ...]]:
    data: Any = call(engine, "obsidian_rag_search", {"query": "rain"}, OWNER)["data"]
    return [(hit["source_file"], hit["score"]) for hit in data["results"]]
