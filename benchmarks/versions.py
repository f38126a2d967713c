"""This code beside an older checkout of it, through the doors that both have.

A machine that is shared changes its speed within seconds, by half and more. So both daemons live
at once and answer each question one after the other, every command runs for both in turn, and a
fixed piece of work is clocked between them: where its row does not say 1.00, the machine speaks.
The checkout needs a `.venv` of its own. Run by `make bench NAME=versions OLD=folder`.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from benchmarks.daemon import (
    CLIENTS,
    QUICK,
    TOOL,
    clients,
    clocked,
    configure,
    cpu_seconds,
    daemon,
    edit,
    family,
    megabytes,
    p95,
    questions,
    say,
    settled,
    while_indexing,
)
from benchmarks.index import CACHE, bytes_below, command, put_between, shared_vaults

from obsidian_rag.transports.daemon_client import RunningDaemon

MARKS = ("<!-- versions benchmark -->", "<!-- end of versions benchmark -->")
COMMANDS, WARM, QUESTIONS, NOTES, EDITS = 3, 20, 100, 50, 15
IDLE_S, CROWDS, CROWD_S = 60, 4, 8
# Rows of each side's own benchmark of related notes, of which the first number counts.
RELATIONS = {
    "**index, beyond parsing**": "first index of related notes, beyond parsing, s",
    "**load**": "load related notes, s",
    "load, and tie": "load related notes and tie all by their links, s",
    "**related notes with": "related notes in one process, p50, ms",
    "**one edit**": "one edit of related notes, ms",
    "one edit and": "one edit and the first answer after it, ms",
}
MEASURE_RELATIONS = """
import json, pathlib, sys
from benchmarks.relations import CACHE, measured
CACHE.mkdir(parents=True, exist_ok=True)
print(json.dumps(measured(pathlib.Path(sys.argv[1]), 50)))
"""
# A median of a few turns differs by that much from the next one.
NOISE = 1.05


@dataclass
class Side:
    """One of the two codes, with a copy of the vault and a data folder of its own."""

    name: str
    python: str
    work: Path
    taken: dict[str, list[float]] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.work / "home"

    @property
    def root(self) -> Path:
        return self.work / "vault"

    def add(self, name: str, values: Sequence[float]) -> None:
        self.taken.setdefault(name, []).append(statistics.median(values))

    def add_pair(self, name: str, values: list[float]) -> None:
        self.add(f"{name}, p50, ms", values)
        self.add(f"{name}, p95, ms", [p95(values)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", type=Path, required=True, help="the older checkout")
    parser.add_argument("--vault", type=Path, help="instead of the larger shared vault")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each")
    parser.add_argument("--relations", action="store_true", help="related notes alone")
    parser.add_argument("--write", type=Path, help="put the table into this file")
    chosen = parser.parse_args()
    os.environ.setdefault("LANCEDB_LOG", "error")
    CACHE.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=CACHE))
    old = Side("old", str(chosen.old.resolve() / ".venv/bin/python"), work / "old")
    new = Side("new", sys.executable, work / "new")
    try:
        for side in (old, new):
            shutil.copytree(chosen.vault or list(shared_vaults())[-1][1], side.root)
        for number in range(chosen.rounds):
            say(f"round {number + 1} of {chosen.rounds} …")
            # Who begins alternates: a machine that warms up favours the second.
            sides = (old, new) if number % 2 == 0 else (new, old)
            for side in sides:
                relations(side)
            if not chosen.relations:
                compare(sides)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    text = table(old, new)
    print(text)
    if chosen.write:
        put_between(chosen.write, MARKS, text)


def compare(sides: Sequence[Side]) -> None:
    """Everything once, in data folders made for it."""
    try:
        for side in sides:
            side.home.mkdir()
            configure(side.home, side.root, QUICK)
            side.add("full index, s", [command(side.home, "index", python=side.python)])
            side.add("data folder, MB", [bytes_below(side.home) / 1e6])
        for words in (("sync",), ("status",), ("search", "how to ask")):
            run(sides, *words)
        with ExitStack() as running:
            doors, processes = {}, {}
            for side in sides:
                os.environ["OBSIDIAN_RAG_HOME"] = str(side.home)
                door, process, ready_s = running.enter_context(daemon(side.home, side.python))
                settled(door)
                side.add("daemon ready after the start, s", [ready_s])
                doors[side.name], processes[side.name] = door, process
            idle(sides, processes)
            ask(sides, doors)
            crowd(sides, doors)
            for side in sides:
                rebuild(side, doors[side.name], processes[side.name])
    finally:
        for side in sides:
            shutil.rmtree(side.home, ignore_errors=True)
            for note in side.root.glob("Benchmark *.md"):
                note.unlink()


def relations(side: Side) -> None:
    """What `make bench NAME=relations` says of speed, by the side's own code."""
    found = subprocess.run(
        [side.python, "-c", MEASURE_RELATIONS, str(side.root)],
        cwd=Path(side.python).parents[2],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    for label, value in json.loads(found.stdout):
        number = re.search(r"[\d.]+", value)
        for start, name in RELATIONS.items():
            if label.startswith(start) and number:
                side.add(name, [float(number[0])])


def run(sides: Sequence[Side], *words: str) -> None:
    taken = in_turns(
        sides, COMMANDS, lambda side, _: command(side.home, *words, python=side.python)
    )
    for side in sides:
        side.add(f"`obsidian-rag {words[0]}`, whole process, s", taken[side.name])


def in_turns(
    sides: Sequence[Side], count: int, measure: Callable[[Side, int], float]
) -> dict[str, list[float]]:
    """What each side took each time, one right after the other."""
    taken: dict[str, list[float]] = {side.name: [] for side in sides}
    for number in range(count):
        for side in sides if number % 2 == 0 else reversed(sides):
            taken[side.name].append(measure(side, number))
    return taken


def idle(sides: Sequence[Side], processes: Mapping[str, psutil.Process]) -> None:
    """Both at the same time: neither has anything to do."""
    before = {side.name: cpu_seconds(processes[side.name]) for side in sides}
    started = time.monotonic()
    time.sleep(IDLE_S)
    passed = time.monotonic() - started
    for side in sides:
        used = cpu_seconds(processes[side.name]) - before[side.name]
        side.add("CPU of the idle daemon and its worker, %", [100 * used / passed])


def crowd(sides: Sequence[Side], doors: Mapping[str, RunningDaemon]) -> None:
    """Many clients at once, at each daemon in turn."""
    asked = questions(sides[0].root)

    def answers(side: Side, _: int) -> float:
        taken, errors = clients(doors[side.name], asked, CROWD_S)
        assert not errors
        return statistics.mean(taken)

    taken = in_turns(sides, CROWDS, answers)
    for side in sides:
        side.add(f"an answer to each of {CLIENTS} clients at once, ms", taken[side.name])


def ask(sides: Sequence[Side], doors: Mapping[str, RunningDaemon]) -> None:
    """Questions, related notes and edits, while both daemons live."""
    root = sides[0].root
    asked = questions(root)[:QUESTIONS]
    every = [str(note.relative_to(root)) for note in sorted(root.rglob("*.md"))]
    notes = every[:: max(1, len(every) // NOTES)][:NOTES]
    work: dict[str, list[float]] = {side.name: [] for side in sides}

    def call(side: Side, tool: str, arguments: dict[str, object]) -> float:
        return clocked(doors[side.name].call, tool, arguments)

    def search(side: Side, number: int) -> float:
        work[side.name].append(clocked(fixed_work))
        return call(side, TOOL, {"query": asked[number]})

    def related(side: Side, number: int) -> float:
        return call(side, "obsidian_rag_related", {"note": notes[number]})

    def save(side: Side, number: int) -> float:
        taken = edit(doors[side.name], side.root, number)
        settled(doors[side.name])  # its related notes come after the answer
        return taken

    in_turns(sides, WARM, search)
    searches = in_turns(sides, len(asked), search)
    in_turns(sides, WARM, related)
    relations = in_turns(sides, len(notes), related)
    edits = in_turns(sides, EDITS, save)
    for side in sides:
        side.add("a fixed piece of work, neither's, ms", work[side.name])
        side.add_pair("search over HTTP", searches[side.name])
        side.add_pair("related notes over HTTP", relations[side.name])
        side.add("save to searchable, ms", edits[side.name])


def rebuild(side: Side, door: RunningDaemon, process: psutil.Process) -> None:
    """One after the other: two at once would share the cores."""
    started = time.perf_counter()
    side.add_pair("search while a rebuild runs", while_indexing(door, questions(side.root)))
    side.add("that rebuild, s", [time.perf_counter() - started])
    settled(door)
    memory = sum(map(megabytes, family(process)))
    side.add("memory of the daemon and its worker, MB", [memory])


def fixed_work() -> None:
    """Some milliseconds of what Python does all day."""
    seen = {}
    for number in range(20_000):
        seen[number % 997] = str(number)


def table(old: Side, new: Side) -> str:
    lines = ["| | old | new | ratio |", "|---|---|---|---|"]
    for name, before in old.taken.items():
        after = new.taken[name]
        ratio = statistics.median(after) / statistics.median(before)
        shown = f"**{ratio:.2f}**" if ratio > NOISE else f"{ratio:.2f}"
        lines.append(f"| {name} | {spread(before)} | {spread(after)} | {shown} |")
    return "\n".join(lines) + "\n"


def spread(values: list[float]) -> str:
    """The median, and the least and the most."""
    least, median, most = map(shown, (min(values), statistics.median(values), max(values)))
    return f"{median} ({least} to {most})"


def shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
