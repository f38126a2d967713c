"""Measure linked vaults: link and scan, first hits, the whole import, an edit meanwhile, a no-op.

    python -m benchmarks.links --files 100000 --write docs/performance.md
    python -m benchmarks.links --vault /path/to/notes        one vault of your own instead

Each vault is linked beside the sample vault, in a daemon. The floor is a walk that stats every file
and does nothing else. Last, five linked vaults of 450,000 chunks in all are searched.
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
from benchmarks.index import CACHE, ROOT, put_between, shared_vaults

from obsidian_rag.config import Config, load
from obsidian_rag.engine import Daemon, Engine, run_index
from obsidian_rag.engine.linking import add_link, link_status, sync_link
from obsidian_rag.engine.query import ask
from obsidian_rag.search import Filters, Request
from obsidian_rag.store import Queue

MARKS = ("<!-- links benchmark -->", "<!-- end of links benchmark -->")
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
VAULTS, SECTIONS = 5, 20
PATIENCE_S = 7200.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000, help="of the made vault")
    parser.add_argument("--vault", type=Path, help="link this folder, and no other")
    parser.add_argument("--chunks", type=int, default=450_000, help="of five vaults; 0 for none")
    parser.add_argument("--write", type=Path, help="put the tables into this file")
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=CACHE))
    try:
        text = imports(work, options.vault, options.files)
        if options.vault is None and options.chunks:
            text += "\n" + five_vaults(work / "five", options.chunks)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(text)
    if options.write:
        put_between(options.write, MARKS, text)


def imports(work: Path, vault: Path | None, files: int) -> str:
    """A table with a column for each vault that is linked."""
    if vault is not None:
        roots = {vault.name: vault}
    else:
        name, mdn = list(shared_vaults())[-1]
        roots = {name: mdn, f"{files:,} made notes": made_tree(work / "made" / "Notes", files)}
    columns = []
    for number, (name, root) in enumerate(roots.items()):
        say(f"{name} …")
        columns.append(dict(measured(work / str(number), root)))
    rows = [f"| {row} | {' | '.join(one[row] for one in columns)} |" for row in columns[0]]
    return "\n".join([f"| | {' | '.join(roots)} |", f"|---|{'---|' * len(roots)}", *rows, ""])


def five_vaults(work: Path, chunks: int) -> str:
    """Search over all of five vaults, and over one of them."""
    config = installed(work)
    notes = chunks // (VAULTS * SECTIONS)
    with contextlib.closing(Engine(config)) as engine:
        for number in range(VAULTS):
            say(f"vault {number + 1} of {VAULTS} …")
            link = add_link(engine, str(made_sections(work / f"Vault {number}", notes, number)))
            sync_link(engine, link.link_id)
        counted = engine.chunks.count()
        lines = [f"| search over {counted:,} chunks of {VAULTS} linked vaults | p50 / p95 |"]
        lines.append("|---|---|")
        for name, filters in (
            ("all vaults (target p95 60 ms)", Filters()),
            ("one vault (target: not slower)", Filters(vaults=((link.name,),))),
        ):
            taken = sorted(asked(engine, filters, turn) for turn in range(200))
            lines.append(f"| {name} | {taken[100]:.0f} / {taken[190]:.0f} ms |")
    return "\n".join([*lines, ""])


def made_sections(root: Path, notes: int, seed: int) -> Path:
    """Long notes of many sections."""
    root.mkdir(parents=True)
    for number in range(notes):
        parts = [f"# Note {seed}-{number}\n"]
        for at in range(SECTIONS):
            words = (
                f"{WORDS[(seed + number + at + one) % 10]} {number * 31 + one}" for one in range(60)
            )
            parts.append(f"## Part {at}\n\n{' '.join(words)}\n")
        (root / f"Note {number}.md").write_text("\n".join(parts))
    return root


def installed(work: Path) -> Config:
    """A data folder that has the sample vault indexed."""
    shutil.copytree(ROOT / "samples" / "vault", work / "Sample")
    home = work / "home"
    home.mkdir(mode=0o700)
    watcher = {"debounce_s": 0.05, "collect_s": 0.0}
    settings = {"vault_path": str(work / "Sample"), "watcher": watcher}
    (home / "config.json").write_text(json.dumps(settings))
    config = load(environ={"OBSIDIAN_RAG_HOME": str(home)})
    with contextlib.closing(Engine(config)) as engine:
        run_index(engine, "sync")
    return config


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
    config = installed(work)
    stat_walk(root)
    files, walk_s = stat_walk(root)
    yield "files, stat walk (floor)", f"{files:,}, {walk_s:.2f} s"
    daemon = Daemon(config)
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
        yield (
            "**no-op sync of the link** (target 2 s)",
            f"{took:.2f} s = {took / walk_s:.1f} × floor",
        )


def importing(daemon: Daemon, root: Path, walk_s: float) -> Iterator[tuple[str, str]]:
    engine = daemon.engine
    wait(lambda: daemon.live.health.state == "healthy")
    # The worker takes a second to start, once in a daemon's life; its first look is over then.
    wait(lambda: daemon.live.jobs.latest is not None)
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
    yield (
        "**link and scan**, until its files wait (target 3 × floor)",
        f"{scanned:.2f} s = {scanned / walk_s:.1f} × floor",
    )
    yield "**first hit** of the link (target 10 s)", f"{first:.1f} s"
    yield (
        "**an edit of the primary vault meanwhile**, save to searchable (target 500 ms)",
        edits(daemon),
    )
    meanwhile: list[float] = []
    while link_status(engine, link.link_id, limit=0).health.error is not None:
        meanwhile.append(asked(engine, Filters(), len(meanwhile)))
        time.sleep(0.5)  # a question is work, too, for the same two cores
    totals = link_status(engine, link.link_id, limit=0).totals
    took = time.perf_counter() - began
    yield (
        "whole import",
        f"{took:.0f} s, {totals.indexed / took:.0f} files/s, {totals.chunks:,} chunks",
    )
    yield "peak memory of daemon, worker and readers (target 1 GB)", f"{memory.stop() / 1e6:.0f} MB"
    everywhere = [asked(engine, Filters(), turn) for turn in range(100)]
    one = [asked(engine, Filters(vaults=((link.name,),)), turn) for turn in range(100)]
    yield "search, all vaults, p50 / p95", f"{pair(everywhere)} ms"
    yield "search, one vault, p50 / p95", f"{pair(one)} ms"
    yield (
        "**search while the import goes on**, all vaults, p50 / p95 (target p95 3 × afterwards)",
        f"{pair(meanwhile)} ms of {len(meanwhile)}"
        f" = {share(meanwhile, 95) / share(everywhere, 95):.1f} × afterwards",
    )


def engine_has(engine: Engine, link_id: str) -> bool:
    request = Request("note", limit=5, filters=Filters(vaults=((link_id,),)))
    return bool(ask(engine, request).answer.hits)


def edits(daemon: Daemon) -> str:
    """From a saved note to its word in an answer, some times while the import goes on."""
    taken = []
    for turn in range(9):
        note = daemon.engine.vaults.primary.root / f"New {turn}.md"
        began = time.perf_counter()
        note.write_text(f"# New {turn}\n\nzymurgy{turn}\n")
        wait(functools.partial(has_note, daemon.engine, note.name, f"zymurgy{turn}"))
        taken.append(time.perf_counter() - began)
        time.sleep(1.0)
    taken.sort()
    median, worst = taken[len(taken) // 2] * 1000, taken[-1] * 1000
    return f"median {median:.0f}, worst of {len(taken)} {worst:.0f} ms"


def has_note(engine: Engine, name: str, word: str) -> bool:
    request = Request(word, limit=1, filters=Filters(vaults=((engine.vaults.primary.link_id,),)))
    return any(hit.source_file == name for hit in ask(engine, request).answer.hits)


def asked(engine: Engine, filters: Filters, turn: int) -> float:
    began = time.perf_counter()
    ask(engine, Request(f"{WORDS[turn % 10]} {turn * 31}", filters=filters))
    return (time.perf_counter() - began) * 1000


def share(taken: list[float], percent: int) -> float:
    """The time within which so many of a hundred were answered."""
    return sorted(taken)[len(taken) * percent // 100] if taken else 0.0


def pair(taken: list[float]) -> str:
    return f"{share(taken, 50):.0f} / {share(taken, 95):.0f}"


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
                # What processes share counts once.
                held = sum(one.memory_full_info().pss for one in family)
                self._most = max(self._most, held)

    def stop(self) -> int:
        self._over.set()
        self._thread.join()
        return self._most


def wait(is_so: Callable[[], bool]) -> None:
    """Look now and then: a question is work, too, for the same two cores."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
