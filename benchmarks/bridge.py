"""Measure what `obsidian-rag mcp` costs itself until it has answered `initialize`.

    python -m benchmarks.bridge --write docs/performance.md

The floor is a Python that imports json and socket. All take turns; a number is the median of its
CPU, user and system, without that of the daemon.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

from benchmarks.index import CACHE, ROOT, put_between

MARKS = ("<!-- bridge benchmark -->", "<!-- end of bridge benchmark -->")
OURS = [sys.executable, "-m", "obsidian_rag"]
CLIENT = {"name": "benchmark", "version": "1"}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
FIRST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", type=Path, help="put the table into this file")
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=CACHE))
    environ = {**os.environ, "OBSIDIAN_RAG_HOME": str(work)}
    (work / "config.json").write_text(json.dumps({"vault_path": str(ROOT / "samples/vault")}))
    try:
        subprocess.run([*OURS, "index"], env=environ, check=True, capture_output=True)
        text = table(measured(environ, options.rounds))
    finally:
        subprocess.run([*OURS, "serve", "--stop"], env=environ, check=True, capture_output=True)
        shutil.rmtree(work)
    print(text)
    if options.write:
        put_between(options.write, MARKS, text)


def measured(environ: Mapping[str, str], rounds: int) -> dict[str, float]:
    """The median CPU of each, in seconds."""
    bare = [sys.executable, "-c", "import json, socket"]
    ways: dict[str, Callable[[], object]] = {
        'bare `python -c "import json, socket"` (floor)': lambda: subprocess.run(bare, check=True),
        "`obsidian-rag mcp`, by a running daemon": lambda: greeted(environ),
        "`obsidian-rag mcp --no-daemon`": lambda: greeted(environ, "--no-daemon"),
    }
    greeted(environ)  # starts the daemon
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            before = cpu_of_children()
            way()
            taken[name].append(cpu_of_children() - before)
    return {name: median(seconds) for name, seconds in taken.items()}


def greeted(environ: Mapping[str, str], *flags: str) -> None:
    with subprocess.Popen(
        [*OURS, "mcp", *flags],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(FIRST + "\n")
        server.stdin.flush()
        assert "result" in json.loads(server.stdout.readline())


def cpu_of_children() -> float:
    """Of those that have ended; a daemon in the background is nobody's child."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def table(found: Mapping[str, float]) -> str:
    floor = next(iter(found.values()))
    rows = [f"| {name} | {1000 * took:.0f} | {took / floor:.1f} |" for name, took in found.items()]
    return "\n".join(["| | CPU, ms | × the floor |", "|---|---|---|", *rows, ""])


if __name__ == "__main__":
    main()
