"""The living engine on a vault of about 15,000 notes: start, edits, searches under load, idling.

Each number stands beside a floor of the same run: a search in this process without a daemon, a
bare HTTP answer, the same search while nothing is indexed. Run by `make bench NAME=daemon`.
"""

import argparse
import itertools
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
from benchmarks.index import CACHE, put_between, shared_vaults

from obsidian_rag.config import load, save
from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode
from obsidian_rag.tools import call
from obsidian_rag.transports.daemon_client import RunningDaemon, find_daemon

MARKS = ("<!-- daemon benchmark -->", "<!-- end of daemon benchmark -->")
TOOL = "obsidian_rag_search"
EDITS, QUESTIONS, CLIENTS = 15, 200, 50
QUICK = {"debounce_s": 0, "collect_s": 0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="how long the load lasts")
    parser.add_argument("--idle", type=int, default=60, help="how long idling is watched")
    parser.add_argument("--write", type=Path, help="put the table into this file")
    chosen = parser.parse_args()
    os.environ.setdefault("LANCEDB_LOG", "error")
    CACHE.mkdir(parents=True, exist_ok=True)
    name, source = list(shared_vaults())[-1]
    work = Path(tempfile.mkdtemp(dir=CACHE))
    try:
        text = table(name, measured(work, source, chosen.seconds, chosen.idle))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(text)
    if chosen.write:
        put_between(chosen.write, MARKS, text)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measured(work: Path, source: Path, load_s: int, idle_s: int) -> list[tuple[str, str]]:
    root, home = work / "vault", work / "home"
    say("copying and indexing …")
    shutil.copytree(source, root)
    home.mkdir()
    os.environ["OBSIDIAN_RAG_HOME"] = str(home)
    configure(home, root, {})
    asked = questions(root)
    with closing(Engine(load())) as engine:
        run_index(engine, Mode.FULL)
        notes = engine.database.rows("SELECT count(*) FROM vault_file_manifest")[0][0]
        chunks = engine.chunks.count()
        here = timed(lambda question: call(engine, TOOL, {"query": question}), asked)
    rows = [("notes / chunks", f"{notes:,} / {chunks:,}")]
    with daemon(home) as (door, process, ready_s):
        say("idle …")
        settled(door)
        rows.append(("ready after the start (target 2 s)", f"{ready_s:.2f} s"))
        rows += idling(process, idle_s)
        say("edits with the default windows …")
        rows.append(default_edit(door, root))
        say("searches …")
        quiet = timed(lambda question: door.call(TOOL, {"query": question}), asked)
        bare = timed(lambda _: door.call("obsidian_rag_memory_recall", {"key": "none"}), asked)
        rows += [
            ("search in one process, no daemon, p50 / p95 (floor)", pair(here)),
            ("bare answer over HTTP, p50 / p95 (floor)", pair(bare)),
            ("**search over HTTP**, p50 / p95", f"{pair(quiet)} = {ratio(quiet, here)} × floor"),
        ]
        say("searches while a full index runs …")
        busy = while_indexing(door, asked)
        rows.append(
            (
                "**search while a full rebuild runs**, p50 / p95 (target 3 × idle)",
                f"{pair(busy)} = {ratio(busy, quiet)} × idle",
            )
        )
        say(f"{CLIENTS} clients …")
        rows += crowd(door, process, asked, load_s)
    configure(home, root, QUICK)
    with daemon(home) as (door, _, _):
        say("edits without windows …")
        settled(door)
        taken = sorted(edit(door, root, number) for number in range(EDITS))
        rows.append(
            (
                "**save to searchable**, both windows 0, median / worst of "
                f"{EDITS} (target 500 ms)",
                f"{statistics.median(taken):.0f} / {taken[-1]:.0f} ms",
            )
        )
    return rows


def configure(home: Path, root: Path, watcher: dict[str, int]) -> None:
    save({"vault_path": str(root), "watcher": watcher}, home / "config.json")


@contextmanager
def daemon(
    home: Path, python: str = sys.executable
) -> Iterator[tuple[RunningDaemon, psutil.Process, float]]:
    """A daemon in a process of its own, and how long it took to be ready."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [python, "-m", "obsidian_rag", "serve"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "http://" in line:
            break
    door = find_daemon(home)
    assert door is not None
    door.call("obsidian_rag_memory_recall", {"key": "none"})
    ready_s = time.perf_counter() - started
    try:
        yield door, psutil.Process(process.pid), ready_s
    finally:
        process.terminate()
        process.communicate(timeout=60)


def settled(door: RunningDaemon) -> None:
    """Wait until the sync of the start is over and the vault is watched."""
    while True:
        data = door.call("obsidian_rag_status", {})["data"]
        if data["last_job"] and not data["active_job"] and data["is_watching"]:
            return
        time.sleep(0.2)


def questions(root: Path) -> list[str]:
    chance = random.Random(4)
    notes = sorted(root.rglob("*.md"))
    made: list[str] = []
    while len(made) < QUESTIONS:
        words = chance.choice(notes).read_text("utf-8", "replace").split()
        long = [word for word in words if word.isalpha() and len(word) > 3]
        if len(long) > 20:
            made.append(" ".join(chance.sample(long, 6)))
    return made


def timed(ask: Callable[[str], object], asked: list[str]) -> list[float]:
    """Milliseconds of each question, warm."""
    for question in asked[:20]:
        ask(question)
    return sorted(clocked(ask, question) for question in asked)


def clocked(work: Callable[..., object], *given: object) -> float:
    """Milliseconds of a call."""
    started = time.perf_counter()
    work(*given)
    return (time.perf_counter() - started) * 1000


def p95(taken: list[float]) -> float:
    return sorted(taken)[int(len(taken) * 0.95)]


def pair(taken: list[float]) -> str:
    return f"{statistics.median(taken):.1f} / {p95(taken):.1f} ms"


def ratio(taken: list[float], floor: list[float]) -> str:
    return f"{p95(taken) / p95(floor):.1f}"


def idling(process: psutil.Process, seconds: int) -> list[tuple[str, str]]:
    before, started = cpu_seconds(process), time.monotonic()
    time.sleep(seconds)
    share = (cpu_seconds(process) - before) / (time.monotonic() - started)
    own = megabytes(process)
    worker = sum(map(megabytes, process.children(recursive=True)))
    return [
        ("memory of the idle daemon (target 250 MB)", f"{own:.0f} MB"),
        ("memory of its idle worker", f"{worker:.0f} MB"),
        (f"CPU of both, idle for {seconds} s (target 1 %)", f"{share:.2%}"),
    ]


def cpu_seconds(process: psutil.Process) -> float:
    """What a process and those below it have used so far."""
    return sum(sum(one.cpu_times()[:2]) for one in family(process))


def family(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def megabytes(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / 1e6


def edit(door: RunningDaemon, root: Path, number: int) -> float:
    """Milliseconds from a saved file to the first answer that has its words."""
    word = f"quokka{number}{random.randrange(10**6)}"
    note = root / f"Benchmark {number}.md"
    started = time.perf_counter()
    note.write_text(f"# Benchmark {number}\nThe {word} was here.\n")
    while True:
        results = door.call(TOOL, {"query": word, "max_results": 1})["data"]["results"]
        if results and word in results[0]["chunk_text"]:
            return (time.perf_counter() - started) * 1000


def default_edit(door: RunningDaemon, root: Path) -> tuple[str, str]:
    taken = sorted(edit(door, root, 100 + number) for number in range(3))
    return (
        "save to searchable, windows of 2 and 5 s, worst of 3 (target 7,300 ms)",
        f"{taken[-1]:,.0f} ms",
    )


def while_indexing(door: RunningDaemon, asked: list[str]) -> list[float]:
    """Searches for as long as a rebuild of the whole index lasts."""
    door.call("obsidian_rag_index", {"mode": "reindex"})
    taken = []
    for number, question in enumerate(itertools.cycle(asked)):
        taken.append(clocked(answered, door, question))
        # Now and then: a status takes as long as some questions.
        if number % 10 == 9 and not door.call("obsidian_rag_status", {})["data"]["active_job"]:
            break
    return taken


def answered(door: RunningDaemon, question: str) -> None:
    assert door.call(TOOL, {"query": question})["data"] is not None


def crowd(
    door: RunningDaemon, process: psutil.Process, asked: list[str], seconds: int
) -> list[tuple[str, str]]:
    before, seen = megabytes(process), list[float]()
    taken, errors = clients(door, asked, seconds, lambda: seen.append(megabytes(process)))
    third = max(1, len(seen) // 3)
    memory = f"{before:.0f} → {max(seen[:third]):.0f} → {max(seen[-third:]):.0f} MB"
    return [
        (
            f"{CLIENTS} clients at once for {seconds} s: answers, errors (target none)",
            f"{len(taken):,} = {len(taken) / seconds:.0f}/s, {errors}",
        ),
        ("their p95, every client waiting for the others", f"{p95(taken):.0f} ms"),
        ("memory before, in the first third, in the last third", memory),
    ]


def clients(
    door: RunningDaemon,
    asked: list[str],
    seconds: float,
    each_second: Callable[[], object] = lambda: None,
) -> tuple[list[float], int]:
    """Milliseconds of each answer to many clients at once, and how many were none."""
    end = time.monotonic() + seconds
    taken: list[float] = []
    errors: list[Exception] = []

    def ask(number: int) -> None:
        chance = random.Random(number)
        while time.monotonic() < end:
            try:
                taken.append(clocked(answered, door, chance.choice(asked)))
            except Exception as error:  # noqa: BLE001  (whatever it is, it is counted)
                errors.append(error)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        each_second()
        time.sleep(1)
    return taken, len(errors)


def table(name: str, rows: list[tuple[str, str]]) -> str:
    lines = [f"| | {name.replace('__', '/')} |", "|---|---|"]
    return "\n".join([*lines, *(f"| {label} | {value} |" for label, value in rows)]) + "\n"


if __name__ == "__main__":
    main()
