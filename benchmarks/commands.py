"""What a command costs in CPU, beside bare Python in the same run.

Every command is run in turns with `python -c "import json, socket"`, on the sample vault with a
daemon. "Loaded" is the same command the long way, with typer and pydantic. Run by
`make bench NAME=commands`.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.daemon import daemon
from benchmarks.index import CACHE, ROOT, command, put_between

from obsidian_rag.config import save

MARKS = ("<!-- commands benchmark -->", "<!-- end of commands benchmark -->")
ROUNDS = 31
BARE = [sys.executable, "-c", "import json, socket"]
AT_ONCE = [str(Path(sys.executable).with_name("obsidian-rag"))]
LOADED = [
    sys.executable,
    "-c",
    "import sys; sys.argv[0] = 'obsidian-rag';"
    " from obsidian_rag.transports.cli.app import run; sys.exit(run())",
]
COMMANDS = {
    "--help": ["--help"],
    "search --help": ["search", "--help"],
    "--version": ["--version"],
    "search": ["search", "rain garden"],
    "search --json": ["search", "rain garden", "--json"],
    "read": ["read", "Rain garden"],
    "related": ["related", "Rain garden"],
    "status": ["status"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each command is run")
    parser.add_argument("--write", type=Path, help="put the table into this file")
    chosen = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=CACHE))
    try:
        text = measured(work, chosen.rounds)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(text)
    if chosen.write:
        put_between(chosen.write, MARKS, text)


def measured(work: Path, rounds: int) -> str:
    """The table."""
    shutil.copytree(ROOT / "samples" / "vault", work / "vault")
    home = work / "home"
    os.environ["OBSIDIAN_RAG_HOME"] = str(home)
    save({"vault_path": str(work / "vault")}, home / "config.json")
    command(home, "index")
    runs = {"bare": BARE}
    for name, arguments in COMMANDS.items():
        runs[name] = [*AT_ONCE, *arguments]
        runs[f"{name}, loaded"] = [*LOADED, *arguments]
    with daemon(home):
        taken = in_turns(runs, rounds)
    bare = statistics.median(taken["bare"])
    lines = [
        f'| CPU, median of {rounds}; bare: `python -c "import json, socket"`, {bare:.0f} ms '
        "| at once (target 5 × bare) | loaded |",
        "|---|---|---|",
    ]
    for name in COMMANDS:
        quick, slow = (statistics.median(taken[one]) for one in (name, f"{name}, loaded"))
        lines.append(
            f"| `obsidian-rag {name}` | {quick:.0f} ms = **{quick / bare:.1f} ×** "
            f"| {slow:.0f} ms = {slow / bare:.1f} × |"
        )
    return "\n".join(lines) + "\n"


def in_turns(runs: dict[str, list[str]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of CPU of each process, user and system; the first round is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, arguments in runs.items():
            used = cpu_ms(arguments)
            if number:
                taken[name].append(used)
    return taken


def cpu_ms(arguments: list[str]) -> float:
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{arguments} ended with {process.returncode}")
    return 1000 * (used.ru_utime + used.ru_stime)


if __name__ == "__main__":
    main()
