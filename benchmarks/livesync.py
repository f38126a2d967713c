"""A LiveSync node on 5,000 notes against pouchdb-server: first sync, reconnect, and live changes.

The floor is the server's own time: the same documents written and read by bare requests. Each
sync runs in a process of its own, whose largest memory is told. Run by `make bench NAME=livesync`.
"""

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.index import CACHE, made_vault, put_between, shared_vaults
from tests.livesync.nodes import TestNode
from tests.livesync.pouch import running_server

from obsidian_rag.livesync.codec.documents import Codec
from obsidian_rag.livesync.codec.tweaks import Tweaks
from obsidian_rag.livesync.couchdb.couch import Couch
from obsidian_rag.livesync.couchdb.remote import Remote

MARKS = ("<!-- livesync benchmark -->", "<!-- end of livesync benchmark -->")
NOTES, EDITS = 5000, 20
PATIENCE_S = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=NOTES)
    parser.add_argument("--write", type=Path, help="put the table into this file")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        child(chosen.child)
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=CACHE))
    try:
        text = table(chosen.notes, measured(work, chosen.notes))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(text)
    if chosen.write:
        put_between(chosen.write, MARKS, text)


def child(home: Path) -> None:
    """Sync one device once, and say how long it took and how much memory."""
    told = json.loads((home / "remote.json").read_text(encoding="utf-8"))
    node = TestNode(home, Remote(**told))
    started = time.perf_counter()
    reconciler = node.sync()
    took = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps([took, peak, reconciler.sync.state.chunks_fetched]))


def synced(home: Path, remote: Remote) -> tuple[float, float, int]:
    home.mkdir(parents=True, exist_ok=True)
    told = {key: getattr(remote, key) for key in ("url", "database", "user", "password")}
    (home / "remote.json").write_text(json.dumps(told), encoding="utf-8")
    command = [sys.executable, "-m", "benchmarks.livesync", "--child", str(home)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    took, peak, chunks = json.loads(done.stdout)
    return took, peak, chunks


def measured(work: Path, notes: int) -> list[tuple[str, str]]:
    source = made_vault(11_000, next(iter(shared_vaults()))[1])
    some = sorted(source.rglob("*.md"))[:notes]
    root = work / "one" / "vault"
    for file in some:
        target = root / file.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
    megabytes = sum(file.stat().st_size for file in some) / 1e6
    (work / "server").mkdir()
    with running_server(work / "server") as server:
        floor_write, floor_read = bare(server.new_remote(), root)
        remote = server.new_remote()
        push, push_peak, _ = synced(work / "one", remote)
        pull, pull_peak, _ = synced(work / "two", remote)
        again, _, chunks = synced(work / "two", remote)
        assert chunks == 0, "an unchanged vault fetched chunks"
        live = latencies(work, remote)
    return [
        (
            f"first sync, sending {len(some):,} notes ({megabytes:.0f} MB)",
            f"{push:.1f} s, {push / floor_write:.1f} × the server's own {floor_write:.1f} s",
        ),
        (
            "first sync, taking them",
            f"{pull:.1f} s, {pull / floor_read:.1f} × the server's own {floor_read:.1f} s",
        ),
        ("largest memory, sending / taking", f"{push_peak / 1e6:.0f} / {pull_peak / 1e6:.0f} MB"),
        ("reconnect of an unchanged vault", f"{again:.2f} s, no chunk fetched"),
        (
            f"a change, until it is on the other device ({len(live)} edits)",
            f"median {statistics.median(live) * 1000:.0f} ms, worst {max(live) * 1000:.0f} ms",
        ),
    ]


def bare(remote: Remote, root: Path) -> tuple[float, float]:
    """Seconds that the server takes for the same documents, made beforehand."""
    codec = Codec(Tweaks(), None, None)
    chunks: dict[str, dict[str, object]] = {}
    entries = []
    for file in root.rglob("*.md"):
        path = file.relative_to(root).as_posix()
        encoded = codec.encode(path, file.read_bytes(), ctime_ms=1, mtime_ms=1)
        chunks |= {str(chunk["_id"]): chunk for chunk in encoded.chunks}
        entries.append(encoded.entry)
    couch = Couch(remote)
    try:
        couch.create()
        write = timed(lambda: (couch.bulk_docs(list(chunks.values())), couch.bulk_docs(entries)))
        ids = [*chunks, *(str(entry["_id"]) for entry in entries)]
        return write, timed(lambda: couch.all_docs(ids))
    finally:
        couch.close()


def timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def latencies(work: Path, remote: Remote) -> list[float]:
    """Seconds from the word that a file is quiet to its arrival on the other device."""
    one, two = TestNode(work / "one", remote), TestNode(work / "two", remote)
    stop = threading.Event()
    nodes = [device.node() for device in (one, two)]
    threads = [threading.Thread(target=node.run, args=(stop,)) for node in nodes]
    found = []
    try:
        for thread in threads:
            thread.start()
        until(lambda: all(node.state.is_connected for node in nodes))
        for number in range(EDITS):
            text = f"# Edit {number}\nat {time.time_ns()}\n"
            one.write("Live.md", text)
            started = time.perf_counter()
            nodes[0].changed()
            file = two.root / "Live.md"
            until(lambda: file.exists() and file.read_text(encoding="utf-8") == text)  # noqa: B023
            found.append(time.perf_counter() - started)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        one.close()
        two.close()
    return found


def until(is_so: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > give_up:
            raise TimeoutError("the change did not arrive")
        time.sleep(0.005)


def table(notes: int, rows: list[tuple[str, str]]) -> str:
    lines = [f"| LiveSync, {notes:,} notes, pouchdb-server on loopback | |", "|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {value} |" for name, value in rows)]) + "\n"


if __name__ == "__main__":
    main()
