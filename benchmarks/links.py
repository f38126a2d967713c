"""Measure linked vaults: link and scan, first hits, the whole import, an edit meanwhile, a no-op.

    python benchmarks/links.py --files 100000
    python benchmarks/links.py --vault /path/to/mdn

Beside each number is its floor: a walk that stats every file and does nothing else.
"""

import argparse
import contextlib
import functools
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from obsidian_rag.config import load
from obsidian_rag.engine import Daemon, Engine, run_index
from obsidian_rag.engine.linking import add_link, link_status, sync_link
from obsidian_rag.engine.query import ask
from obsidian_rag.search import Filters, Request
from obsidian_rag.store import Queue

WORDS = (
    "river",
    "stone",
    "garden",
    "letter",
    "engine",
    "winter",
    "copper",
    "island",
    "lamp",
    "owl",
)
PATIENCE_S = 7200.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--vault", type=Path, help="link this folder instead of a made one")
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="links-"))
    try:
        root = options.vault or made_tree(work / "tree", options.files)
        for name, value in measured(work, root):
            print(f"| {name} | {value} |", flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def made_tree(root: Path, files: int) -> Path:
    say(f"making {files:,} files …")
    for number in range(files):
        folder = root / f"{number // 500:04}"
        if number % 500 == 0:
            folder.mkdir(parents=True)
        lines = (f"{WORDS[(number + at) % 10]} {number * 31 + at}" for at in range(40))
        text = f"# Note {number}\n\n{' '.join(lines)}\n\nSee [[Note {number // 2}]].\n"
        (folder / f"Note {number}.md").write_text(text)
    return root


def measured(work: Path, root: Path) -> Iterator[tuple[str, str]]:
    primary = work / "primary"
    primary.mkdir()
    (primary / "Pond.md").write_text("# Pond\n\nnewts\n")
    home = work / "home"
    home.mkdir()
    settings = {"vault_path": str(primary), "watcher": {"debounce_s": 0.05, "collect_s": 0.0}}
    (home / "config.json").write_text(json.dumps(settings))
    config = load(environ={"OBSIDIAN_RAG_HOME": str(home)})
    stat_walk(root)
    files, walk_s = stat_walk(root)
    yield "files, stat walk (floor)", f"{files:,}, {walk_s:.2f} s"
    daemon = Daemon(config)
    with contextlib.closing(Engine(config)) as engine:
        run_index(engine, "sync")
    daemon.start()
    try:
        yield from importing(daemon, root, walk_s)
    finally:
        daemon.stop()
    with contextlib.closing(Engine(config)) as engine:
        (_, linked) = engine.vaults
        began = time.perf_counter()
        sync_link(engine, linked.link_id)
        took = time.perf_counter() - began
        yield "no-op sync of the link (target 2 s)", f"{took:.2f} s = {took / walk_s:.1f} × floor"


def importing(daemon: Daemon, root: Path, walk_s: float) -> Iterator[tuple[str, str]]:
    engine = daemon.engine
    wait(lambda: daemon.live.health.state == "healthy")
    memory = Peak()
    began = time.perf_counter()
    link = add_link(engine, str(root))
    scanned: float | None = None
    while not (scanned and engine_has(engine, link.link_id)):
        if scanned is None and Queue(engine.database).size(link.link_id):
            scanned = time.perf_counter() - began
        assert time.perf_counter() - began < PATIENCE_S
        time.sleep(0.05)
    first = time.perf_counter() - began
    yield "link and scan (target 3 ×)", f"{scanned:.2f} s = {scanned / walk_s:.1f} × floor"
    yield "first hit of the link (target 10 s)", f"{first:.1f} s"
    yield "an edit of the primary vault meanwhile (target 500 ms)", edits(daemon)
    wait(lambda: link_status(engine, link.link_id, limit=0).health.error is None)
    totals = link_status(engine, link.link_id, limit=0).totals
    took = time.perf_counter() - began
    yield (
        "whole import",
        f"{took:.0f} s, {totals.indexed / took:.0f} files/s, {totals.chunks:,} chunks",
    )
    yield "peak memory, daemon and worker (target 1 GB)", f"{memory.stop() / 1e6:.0f} MB"
    for name, filters in (
        ("all vaults", Filters()),
        ("one vault", Filters(vaults=((link.name,),))),
    ):
        taken = sorted(asked(engine, filters, turn) for turn in range(50))
        yield f"search, {name}, p50 / p95", f"{taken[25]:.0f} / {taken[47]:.0f} ms"


def engine_has(engine: Engine, link_id: str) -> bool:
    request = Request("note", limit=5, filters=Filters(vaults=((link_id,),)))
    return bool(ask(engine, request).answer.hits)


def edits(daemon: Daemon) -> str:
    """From a saved note to its word in an answer, some times while the import goes on."""
    taken = []
    for turn in range(5):
        note = daemon.engine.vaults.primary.root / f"New {turn}.md"
        began = time.perf_counter()
        note.write_text(f"# New {turn}\n\nzymurgy{turn}\n")
        wait(functools.partial(has_note, daemon.engine, note.name, f"zymurgy{turn}"))
        taken.append(time.perf_counter() - began)
        time.sleep(1.0)
    return ", ".join(f"{seconds * 1000:.0f}" for seconds in sorted(taken)) + " ms"


def has_note(engine: Engine, name: str, word: str) -> bool:
    request = Request(word, limit=1, filters=Filters(vaults=(("primary",),)))
    return any(hit.source_file == name for hit in ask(engine, request).answer.hits)


def asked(engine: Engine, filters: Filters, turn: int) -> float:
    began = time.perf_counter()
    ask(engine, Request(f"{WORDS[turn % 10]} {turn * 31}", filters=filters))
    return (time.perf_counter() - began) * 1000


def stat_walk(root: Path) -> tuple[int, float]:
    began, files = time.perf_counter(), 0
    todo = [str(root)]
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
                elif entry.name.endswith(".md"):
                    entry.stat()
                    files += 1
    return files, time.perf_counter() - began


class Peak:
    """The most memory that this process and its children held at once."""

    def __init__(self) -> None:
        self._most = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        process = psutil.Process()
        while not self._over.wait(0.5):
            with contextlib.suppress(psutil.Error):
                family = (process, *process.children(recursive=True))
                self._most = max(self._most, sum(one.memory_info().rss for one in family))

    def stop(self) -> int:
        self._over.set()
        self._thread.join()
        return self._most


def wait(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
