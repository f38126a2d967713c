"""This code beside an older checkout of it, in turns, through the doors that both have.

One run of each says little: the same code differs from itself by a fifth from one minute to the
next. So both take turns, and the medians are compared. The checkout needs a `.venv` of its own.
Run by `make bench-versions OLD=folder`.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.daemon import (
    QUICK,
    TOOL,
    configure,
    daemon,
    edit,
    megabytes,
    p95,
    questions,
    say,
    settled,
    timed,
    while_indexing,
)
from benchmarks.index import CACHE, bytes_below, command, put_between, shared_vaults

MARKS = ("<!-- versions benchmark -->", "<!-- end of versions benchmark -->")
COMMANDS, QUESTIONS, NOTES, EDITS = 3, 100, 50, 7
# A median of a few turns differs by that much from the next one.
NOISE = 1.05

Values = dict[str, list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", type=Path, required=True, help="the older checkout")
    parser.add_argument("--vault", type=Path, help="instead of the larger shared vault")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each")
    parser.add_argument("--write", type=Path, help="put the table into this file")
    chosen = parser.parse_args()
    os.environ.setdefault("LANCEDB_LOG", "error")
    CACHE.mkdir(parents=True, exist_ok=True)
    pythons = {"old": str(chosen.old.resolve() / ".venv/bin/python"), "new": sys.executable}
    work = Path(tempfile.mkdtemp(dir=CACHE))
    try:
        root = work / "vault"
        shutil.copytree(chosen.vault or list(shared_vaults())[-1][1], root)
        taken: dict[str, Values] = {"old": {}, "new": {}}
        for number in range(chosen.rounds):
            # Who begins alternates: a machine that warms up favours the second.
            for side in ("old", "new") if number % 2 == 0 else ("new", "old"):
                say(f"round {number + 1} of {chosen.rounds}: {side} …")
                turn(pythons[side], root, work / "home", taken[side])
    finally:
        shutil.rmtree(work, ignore_errors=True)
    text = table(taken["old"], taken["new"])
    print(text)
    if chosen.write:
        put_between(chosen.write, MARKS, text)


def turn(python: str, root: Path, home: Path, taken: Values) -> None:
    """Everything once, in a data folder of its own."""
    home.mkdir()
    os.environ["OBSIDIAN_RAG_HOME"] = str(home)
    configure(home, root, QUICK)
    asked = questions(root)[:QUESTIONS]
    notes = [str(note.relative_to(root)) for note in sorted(root.rglob("*.md"))]
    try:
        add(taken, "full index, s", [command(home, "index", python=python)])
        add(taken, "data folder, MB", [bytes_below(home) / 1e6])
        for words in (("sync",), ("status",), ("search", "how to ask")):
            again = [command(home, *words, python=python) for _ in range(COMMANDS)]
            add(taken, f"`obsidian-rag {words[0]}`, whole process, s", again)
        with daemon(home, python) as (door, process, ready_s):
            settled(door)
            add(taken, "daemon ready after the start, s", [ready_s])
            search = timed(lambda question: door.call(TOOL, {"query": question}), asked)
            pair(taken, "search over HTTP", search)
            chosen = notes[:: max(1, len(notes) // NOTES)][:NOTES]
            related = timed(lambda note: door.call("obsidian_rag_related", {"note": note}), chosen)
            pair(taken, "related notes over HTTP", related)
            edits = [edit(door, root, number) for number in range(EDITS)]
            add(taken, "save to searchable, ms", edits)
            started = time.perf_counter()
            pair(taken, "search while a rebuild runs", while_indexing(door, asked))
            add(taken, "that rebuild, s", [time.perf_counter() - started])
            settled(door)
            worker = sum(megabytes(one) for one in process.children(recursive=True))
            add(taken, "memory of the daemon and its worker, MB", [megabytes(process) + worker])
    finally:
        shutil.rmtree(home, ignore_errors=True)
        for note in root.glob("Benchmark *.md"):
            note.unlink()


def add(taken: Values, name: str, values: Sequence[float]) -> None:
    taken.setdefault(name, []).append(statistics.median(values))


def pair(taken: Values, name: str, values: list[float]) -> None:
    add(taken, f"{name}, p50, ms", values)
    add(taken, f"{name}, p95, ms", [p95(values)])


def table(old: Mapping[str, list[float]], new: Mapping[str, list[float]]) -> str:
    lines = ["| | old | new | ratio |", "|---|---|---|---|"]
    for name, before in old.items():
        ratio = statistics.median(new[name]) / statistics.median(before)
        shown = f"**{ratio:.2f}**" if ratio > NOISE else f"{ratio:.2f}"
        lines.append(f"| {name} | {spread(before)} | {spread(new[name])} | {shown} |")
    return "\n".join(lines) + "\n"


def spread(values: list[float]) -> str:
    """The median, and the least and the most."""
    least, median, most = min(values), statistics.median(values), max(values)
    return f"{median:.3g} ({least:.3g} to {most:.3g})"


if __name__ == "__main__":
    main()
